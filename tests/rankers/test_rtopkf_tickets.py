"""RTop-kF with rankings open at once, tickets from elsewhere, and tickets and states that lie."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop.base import Ranking
from rankloop.rankers import RTopKF
from tests.rankers.one_step import FORMS, Learner, a_list, keyed
from tests.rankers.tampering import wrong_items


def test_an_open_ranking_keeps_what_it_was_shown_with() -> None:
    # Labels that come late are weighed with the scores, chances, guesses and smoothing of their own round.
    for name, estimator, variate in FORMS:
        learner = Learner(name, 2, estimator, variate)
        learner.ranker = RTopKF(
            n_features=3,
            surrogate=name,
            k=2,
            learning_rate=(0.01, 0.5),
            exploration=(0.5, 0.5),
            radius=1e6,
            estimator=estimator,
            control_variate=variate,
            epsilon=(0.6, 0.5),
        )
        learner.at(np.array([0.3, -0.1, 0.2]), labels_seen=(3.0, 2.0))
        X, R = a_list(4, 3, seed=8)
        late, greedy = learner.show(X, 12)
        z = learner.z(X, late.items, greedy, R[late.items[:2]])
        X_as_it_was = X.copy()
        for key in range(3):
            learner.learn(learner.ranker.rank(*a_list(5, 3, seed=key)[:1], rng=keyed(key)), np.ones(5))
        X[:] = 99.0  # whoever asked may use the memory for the next request
        before = learner.ranker.state.w.copy()
        after = learner.learn(late, R)
        assert learner.ranker.state.t[0] == 4
        np.testing.assert_allclose(after, before - 0.01 * 4**-0.5 * z, rtol=1e-10, atol=1e-10)
        assert (X_as_it_was != X).any()


ELSEWHERE = """
import sys
import numpy as np
from rankloop.base import Ranking
from rankloop.rankers import RTopKF

folder = sys.argv[1]
ranker = RTopKF(n_features=4, surrogate="smooth_dcg", k=3, estimator="horvitz-thompson", control_variate="mean")
with np.load(f"{folder}/state.npz") as saved:
    ranker.load(saved)
for i in (2, 0, 1):
    with np.load(f"{folder}/ticket{i}.npz") as saved:
        ticket = Ranking.load(saved)
    ranker.learn(ticket, [1.0, 0.0, 4.0][: len(ticket.items)])
np.savez(f"{folder}/after.npz", **ranker.save())
"""


def test_tickets_are_learnt_in_another_process(tmp_path: Path) -> None:
    ranker = RTopKF(
        n_features=4, surrogate="smooth_dcg", k=3, estimator="horvitz-thompson", control_variate="mean"
    )
    rng = np.random.default_rng(6)
    for _ in range(5):
        ranker.learn(ranker.rank(rng.random((6, 4)), rng=rng), [1.0, 2.0, 0.0])
    np.savez(tmp_path / "state.npz", **ranker.save())
    tickets = [ranker.rank(rng.random((n, 4)), rng=rng) for n in (1, 6, 2)]
    for i, ticket in enumerate(tickets):
        np.savez(tmp_path / f"ticket{i}.npz", **ticket.save())
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], check=True)
    for i in (2, 0, 1):
        ranker.learn(tickets[i], [1.0, 0.0, 4.0][: len(tickets[i].items)])
    with np.load(tmp_path / "after.npz") as after:
        for part, value in ranker.save().items():
            np.testing.assert_array_equal(after[part], value)


def _memo(change: Callable[[Any], Any], part: int = 0) -> Callable[[Ranking], Ranking]:
    def tampered(ticket: Ranking) -> Ranking:
        memo = [piece.copy() for piece in ticket.memo]
        memo[part] = change(memo[part])
        return dataclasses.replace(ticket, memo=tuple(memo))

    return tampered


@pytest.mark.parametrize(
    "tamper",
    [
        *wrong_items(3),
        pytest.param(lambda t: dataclasses.replace(t, memo=()), id="no memo"),
        pytest.param(lambda t: dataclasses.replace(t, memo=t.memo[:3]), id="memo too short"),
        pytest.param(lambda t: dataclasses.replace(t, memo=(*t.memo, t.memo[0])), id="memo too long"),
        pytest.param(lambda t: dataclasses.replace(t, propensities=None), id="no propensities"),
        pytest.param(_memo(lambda part: part[:-1], 1), id="fewer rows"),
        pytest.param(_memo(lambda part: part.astype(np.float32), 3), id="float32"),
        pytest.param(_memo(lambda part: part[:, :-1], 2), id="fewer features"),
    ],
)
def test_a_ticket_that_was_tampered_with_is_refused_and_changes_nothing(
    tamper: Callable[[Ranking], Ranking],
) -> None:
    ranker = RTopKF(n_features=2, k=3, estimator="horvitz-thompson")
    ticket = ranker.rank(np.eye(3)[:, :2], rng=keyed(1))
    with pytest.raises(ValueError, match=r"ranking|items|feedback"):
        ranker.learn(tamper(ticket), [1.0, 0.0, 0.0])
    assert not ranker.state.w.any()
    assert ranker.state.t[0] == 0


def _set(place: int, value: float) -> Callable[[Any], Any]:
    def change(part: Any) -> Any:
        part.flat[place] = value
        return part

    return change


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(_memo(_set(0, 50.0)), id="more items than shown"),
        pytest.param(_memo(_set(0, -1.0)), id="negative number of items"),
        pytest.param(_memo(_set(1, 0.0)), id="no exploration"),
        pytest.param(_memo(_set(0, np.nan)), id="NaN items"),
        pytest.param(_memo(_set(0, np.nan), 1), id="NaN score"),
        pytest.param(_memo(_set(0, np.inf), 3), id="infinite feature"),
    ],
)
def test_a_ticket_with_numbers_that_cannot_be_is_refused_or_does_no_harm(
    tamper: Callable[[Ranking], Ranking],
) -> None:
    # One label came back. A kernel that believes a ticket of 50 items reads on, beyond the end of the feedback.
    ranker = RTopKF(n_features=2, k=3, estimator="horvitz-thompson", exploration=0.5)
    ticket = ranker.rank(np.array([[0.5, 0.25]]), rng=keyed(1))
    try:
        ranker.learn(tamper(ticket), [1.0])
    except ValueError:
        assert ranker.state.t[0] == 0
    assert np.isfinite(ranker.state.w).all()
    assert ranker.state.labels[1] <= 1.0, "it counted more labels than came back"


@pytest.mark.parametrize(
    ("part", "given"),
    [
        ("t", [-1]),
        ("w", [np.nan, 0.0]),
        ("w", [0.0, 11.0]),  # out of the ball
        ("labels", [1.0, -1.0]),
        ("labels", [5.0, 1.0]),  # a mean above the highest grade
        ("w", [0.0]),
    ],
    ids=str,
)
def test_a_state_that_cannot_be_is_refused_and_changes_nothing(part: str, given: Any) -> None:
    # Round 0 to the power -2/3 is infinite, and so would be the step.
    ranker = RTopKF(
        n_features=2, learning_rate="camera-ready", control_variate="mean", radius=10.0, max_grade=4
    )
    ranker.learn(ranker.rank(np.eye(2), rng=keyed(1)), [3.0])
    before = ranker.save()
    with pytest.raises(ValueError, match="saved state"):
        ranker.load(before | {part: np.array(given, dtype=before[part].dtype)})
    for name, value in ranker.save().items():
        np.testing.assert_array_equal(before[name], value)
