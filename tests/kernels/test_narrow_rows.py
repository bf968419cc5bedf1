"""Sums in float32: in a fixed order, the same for sparse rows, and in float64 where they are too large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop import data, environments, rankers
from rankloop.features import sparse_rows
from rankloop.kernels import rows as feature_rows
from rankloop.kernels import rows as narrow_rows
from rankloop.kernels.jit import loop

SIZES = [(1, 1), (3, 5), (5, 15), (4, 16), (9, 17), (7, 46), (6, 136)]


@loop
def made(features, w, weights, scratch, scores, combined, mean):  # type: ignore[no-untyped-def]
    narrow_rows.narrow_score(features, w, scratch, scores)
    narrow_rows.narrow_combine(features, weights, scratch, combined)
    narrow_rows.average(features, weights.copy(), scratch, mean)


def all_of(features, w, weights):  # type: ignore[no-untyped-def]
    n, d = features.shape
    found = np.empty(n), np.empty(d), np.empty(d)
    made(features, w, weights, narrow_rows.narrow_scratch(d), *found)
    return found


def lanes_of(row: np.ndarray, w: np.ndarray) -> float:
    """Sixteen lanes, what is left over in the last of them, added in pairs; all in float32."""
    d, lanes = len(row), np.zeros(16, np.float32)
    whole = d - d % 16
    for j in range(d):
        lanes[j % 16 if j < whole else 16 - d + j] += row[j] * w[j]
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return float(lanes[0])


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_every_sum_is_in_its_order(n: int, d: int) -> None:
    rng = np.random.default_rng(d)
    features = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)).astype(np.float32)
    w, weights = rng.normal(size=d), rng.normal(size=n)
    scores, combined, mean = all_of(features, w, weights)
    narrow = w.astype(np.float32)
    assert scores.tolist() == [lanes_of(row, narrow) for row in features]
    total = np.zeros(d, np.float32)
    for weight, row in zip(weights.astype(np.float32), features, strict=True):
        total += weight * row
    assert combined.tolist() == total.tolist()
    by_four = np.zeros(d)
    for i in range(0, n - 3, 4):
        by_four += ((features[i] + features[i + 1]) + (features[i + 2] + features[i + 3])).astype(float)
    for row in features[n - n % 4 :]:
        by_four += row
    assert mean.tolist() == (by_four / n).tolist()
    for dense, sparse in zip(
        (scores, combined, mean), all_of(sparse_rows(features), w, weights), strict=True
    ):
        assert dense.tolist() == sparse.tolist()


def test_what_is_too_large_for_float32_is_summed_in_float64() -> None:
    features = np.full((6, 20), 3e38, np.float32)
    w, weights = np.full(20, 1.5), np.full(6, 2.0)
    for rows in (features, sparse_rows(features)):
        scores, combined, mean = all_of(rows, w, weights)
        assert scores == pytest.approx(20 * 1.5 * 3e38)
        assert combined == pytest.approx(6 * 2.0 * 3e38)
        assert mean == pytest.approx(3e38)


def test_a_feature_that_all_rows_share_is_its_own_mean() -> None:
    for n in (1, 3, 7, 118):
        features = np.tile(np.random.default_rng(n).normal(size=33).astype(np.float32), (n, 1))
        assert all_of(features, np.zeros(33), np.zeros(n))[2].tolist() == features[0].tolist()


def test_rows_in_float64_are_added_up_as_everywhere_else() -> None:
    features, rng = np.random.default_rng(1).normal(size=(5, 20)), np.random.default_rng(2)
    w, weights = rng.normal(size=20), rng.normal(size=5)
    scores, combined, _ = all_of(features, w, weights)
    assert scores.tolist() == [float(one) for one in _wide(features, w, np.empty(5))]
    assert combined == pytest.approx(features.T @ weights)


@loop
def _wide(features, w, scores):  # type: ignore[no-untyped-def]
    feature_rows.score(features, w, scores)
    return scores


@pytest.mark.parametrize("settings", [{"surrogate": "squared", "learning_rate": "camera-ready"}, {"k": 2}])
def test_ndcg_is_that_of_sums_in_float64(settings: dict[str, Any]) -> None:
    queries = data.synthetic_letor(n_queries=60, n_features=46, seed=1)
    stream = environments.QueryStream(queries, measure="ndcg@10")
    differences = []
    for seed in range(6):
        pair = [(rankers.RTopKF(n_features=46, **settings), kind) for kind in (np.float32, np.float64)]
        coins = [np.random.default_rng(seed) for _ in pair]
        users, total = np.random.default_rng(seed), [0.0, 0.0]
        for _ in range(400):
            context = stream.arrive(rng=users)
            for way, (ranker, kind) in enumerate(pair):
                shown = ranker.rank(context.astype(kind), rng=coins[way])
                total[way] += stream.value(shown)
                ranker.learn(shown, stream.respond(shown, rng=users)[: ranker.params.units.size])
        differences.append((total[0] - total[1]) / 400)
    assert np.std(differences) < 0.03
    assert abs(np.mean(differences)) < 0.01
