"""RTop-kF from clicks: a click is a label of 1 over the chance that the user looked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop import checks, data, environments, simulation
from rankloop.rankers import RTopKF


@pytest.mark.parametrize("learning_rate", ["adagrad", "camera-ready"])
def test_a_click_is_a_label_over_the_examination(learning_rate: str) -> None:
    rng = np.random.default_rng(1)
    X, chances = rng.random((6, 3)), [1.0, 0.5, 0.25]
    arguments: dict[str, Any] = {"n_features": 3, "k": 3, "learning_rate": learning_rate, "surrogate": "kl"}
    from_clicks = RTopKF(**arguments, estimator="horvitz-thompson", examination=chances)
    from_labels = RTopKF(**arguments, estimator="horvitz-thompson", max_grade=4)
    for clicks in ([1, 0, 1], [0, 1, 0], [0, 0, 0]):
        one = from_clicks.rank(X, rng=np.random.default_rng(5))
        other = from_labels.rank(X, rng=np.random.default_rng(5))
        np.testing.assert_array_equal(one.items, other.items)
        from_clicks.learn(one, clicks)
        from_labels.learn(other, np.array(clicks) / chances)
        np.testing.assert_array_equal(from_clicks.state.w, from_labels.state.w)
    assert from_clicks.state.w.any()


def test_it_takes_part_in_clicked_queries() -> None:
    queries = data.synthetic_letor(n_queries=40, n_features=4, seed=1).with_dtype("float32")
    checks.check_same_story(
        lambda: RTopKF(n_features=4, examination=1.0),
        lambda: environments.ClickedQueries(queries, clicks="navigational"),
        rounds=300,
    )


def test_it_learns_from_the_click_on_the_first_document() -> None:
    queries = data.synthetic_letor(n_queries=80, n_features=4, seed=1).with_dtype("float32")
    ranker = RTopKF(n_features=4, examination=1.0)
    users = environments.ClickedQueries(queries, clicks="informational")
    simulation.play(ranker, users, rounds=20_000, seed=1)
    assert users.greedy_values(ranker.state.w).mean() > users.greedy_values(np.zeros(4)).mean() + 0.15


@pytest.mark.parametrize("wrong", [0.0, 1.5, [1.0], [1.0, 0.0], [1.0, np.nan], "often"])
def test_an_examination_that_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="examination"):
        RTopKF(n_features=3, k=2, examination=wrong)


def test_more_than_a_click_is_refused() -> None:
    ranker = RTopKF(n_features=2, examination=0.5)
    shown = ranker.rank(np.eye(2), rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="feedback"):
        ranker.learn(shown, [2.0])
