"""The benchmark of DBGD and MGD compares like with like."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import duels
from benchmarks.numpy_mgd import PlainMGD
from rankloop import rankers
from tests.rankers.test_mgd import tried

D = 5


@pytest.mark.parametrize("n_candidates", [1, 9])
def test_numpy_takes_the_same_steps(n_candidates: int) -> None:
    ours = rankers.MGD(n_features=D, n_candidates=n_candidates, n_positions=4)
    rng = np.random.default_rng(1)
    plain = PlainMGD(n_features=D, n_candidates=n_candidates, rng=rng)
    plain.w[:] = ours.state.w[:] = rng.normal(size=D)  # no two documents with equal scores
    start = ours.state.w.copy()
    for _ in range(20):
        X = rng.random((8, D))
        shown = ours.rank(X, rng=rng)
        u = tried(shown.memo[1][0], D, n_candidates)
        left, worth = plain.weights(X, u), np.empty((n_candidates + 1, 4))
        for j, item in enumerate(shown.items[:4]):
            worth[:, j] = plain.credit(left, item)
            left[:, item] = 0.0
        np.testing.assert_allclose(worth, shown.memo[0], rtol=1e-9)
        clicks = rng.integers(0, 2, 4).astype(float)
        plain.learn(u, worth, clicks)
        ours.learn(shown, clicks)
        np.testing.assert_allclose(plain.w, ours.state.w, rtol=1e-9)
    assert np.abs(plain.w - start).max() > 1e-3


def test_numpy_draws_lists_of_different_documents_and_learns() -> None:
    plain = PlainMGD(n_features=D, n_candidates=3, rng=np.random.default_rng(1))
    X, grades = np.random.default_rng(2).random((8, D)), np.arange(8) % 5
    items, worth = plain.multileave(plain.weights(X, plain.directions()), 8)
    assert sorted(items.tolist()) == list(range(8))
    np.testing.assert_allclose(worth.sum(axis=0), 1.0)
    assert plain.play([(X, grades)], [0] * 30, np.array([0.0, 0.2, 0.4, 0.8, 1.0])) > 0
    assert plain.w.any()


def test_every_contender_plays() -> None:
    people = duels.users(n_documents=12, n_features=D)
    for contender in duels.contenders("MGD", people).values():
        contender(3)()
    rates = dict.fromkeys((duels.FUSED, duels.STEPWISE, duels.NUMPY, duels.BARE), 2.0)
    (table,) = duels.tables([duels.DuelRates("MGD", rates)])
    assert table.row_count == 1  # type: ignore[union-attr]
