"""The calibrated squared loss: each step is 2 X^T (s - G(R) / Z(R)), and its scores become the normalised gains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import surrogates
from rankloop.rankers import CalibratedSquared
from tests.rankers.one_step import keyed, project

GRADES = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 0.07, 1.07])


@settings(max_examples=60)
@given(st.lists(GRADES, min_size=1, max_size=9), st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
@pytest.mark.parametrize("radius", [0.5, 1e6])
def test_one_step_is_the_gradient_in_the_ball(
    radius: float, grades: list[float], d: int, seed: int, single: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(grades), d)).astype(np.float32 if single else np.float64)
    R = np.array(grades)
    ranker = CalibratedSquared(n_features=d, learning_rate=0.3, radius=radius)
    w = ranker.state.w[:] = project(rng.normal(size=d), radius)
    s = X.astype(np.float64) @ w
    shown = ranker.rank(X, rng=rng)
    np.testing.assert_array_equal(shown.items, np.argsort(-s, kind="stable"))
    ranker.learn(shown, R[shown.items])
    step = X.astype(np.float64).T @ surrogates.CalibratedSquared().gradient(s, R)
    np.testing.assert_allclose(ranker.state.w, project(w - 0.3 * step, radius), rtol=1e-10, atol=1e-10)


def test_where_nothing_is_relevant_the_target_is_zero() -> None:
    ranker = CalibratedSquared(n_features=2, learning_rate=0.25)
    ranker.state.w[:] = [1.0, -2.0]
    ranker.learn(ranker.rank(np.eye(2), rng=keyed(1)), [0.0, 0.0])
    np.testing.assert_allclose(ranker.state.w, [0.5, -1.0], rtol=1e-14)


@pytest.mark.judges("2016-134")
def test_its_scores_become_the_mean_normalised_gains() -> None:
    # Theorem 5.1: its minimiser is E[G(R) / Z(R)], whose order is the best for NDCG; not that of E[R], here.
    ranker, rng = CalibratedSquared(n_features=3, learning_rate=(1.0, 1.0)), np.random.default_rng(1)
    lists = np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.5, 0.0, 0.2]])
    target = surrogates.CalibratedSquared().target(lists).mean(axis=0)
    for R in lists[rng.integers(0, 4, 20_000)]:
        shown = ranker.rank(np.eye(3), rng=rng)
        ranker.learn(shown, R[shown.items])
    np.testing.assert_allclose(ranker.state.w, target, atol=0.02)


@pytest.mark.parametrize("grade", [1001.0, 2000.0, 1e300])
def test_a_label_whose_gain_is_infinite_is_refused_and_changes_nothing(grade: float) -> None:
    ranker = CalibratedSquared(n_features=2)
    ticket = ranker.rank(np.eye(2), rng=keyed(1))
    with pytest.raises(ValueError, match="feedback"):
        ranker.learn(ticket, [grade, 0.0])
    assert not ranker.state.w.any()
