"""Rows of features: dense against numpy, sparse against dense, and sums in float32 in their order; bit by bit."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop import data, environments, rankers
from rankloop.features import sparse_rows
from rankloop.kernels import rows
from rankloop.kernels.jit import loop
from tests.sparse_lists import rows as random_rows

SEEDS = st.integers(0, 2**32 - 1)


@numba.njit
def both(features: Any, w: Any, weights: Any, scores: Any, out: Any) -> None:
    rows.score(features, w, scores)
    rows.combine(features, weights, out)


@numba.njit
def others(features: Any, i: Any, w: Any, row: Any, least: Any, most: Any) -> Any:
    rows.copy_row(features, i, row)
    rows.bounds(features, least, most)
    return rows.plain_dot(features, i, w)


@given(st.integers(1, 6), st.integers(1, 40), SEEDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_and_their_transpose_are_products_of_matrices(dtype: Any, n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    w, v = rng.normal(size=d), rng.normal(size=n + 3)
    scores, out = np.full(n + 3, np.nan), np.full(d, np.nan)
    both(X, w, v, scores, out)
    exact = X.astype(np.float64)
    np.testing.assert_allclose(scores[:n], exact @ w, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(out, exact.T @ v[:n], rtol=1e-12, atol=1e-13)
    assert np.isnan(scores[n:]).all(), "what lies beyond the list is not touched"


@given(st.integers(1, 12), st.integers(1, 40), SEEDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_give_the_bits_of_dense_ones(dtype: Any, n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = random_rows(rng, n, d, dtype)
    w, v, i = rng.normal(size=d), rng.normal(size=n), int(rng.integers(n))
    found = []
    for features in (X, sparse_rows(X)):
        scores, out, row, least, most = np.empty(n), *(np.full(d, np.nan) for _ in range(4))
        both(features, w, v, scores, out)
        total = others(features, i, w, row, least, most)
        found.append([part.tobytes() for part in (scores, out, row, most - least, np.float64(total))])
    assert found[0] == found[1]


# Sums in float32: in a fixed order, the same for sparse rows, and in float64 where they are too large.


SIZES = [(1, 1), (3, 5), (5, 15), (4, 16), (9, 17), (7, 46), (6, 136)]


@loop
def made(features, w, weights, scratch, scores, combined, mean):  # type: ignore[no-untyped-def]
    rows.narrow_score(features, w, scratch, scores)
    rows.narrow_combine(features, weights, scratch, combined)
    rows.average(features, weights.copy(), scratch, mean)


def all_of(features, w, weights):  # type: ignore[no-untyped-def]
    n, d = features.shape
    found = np.empty(n), np.empty(d), np.empty(d)
    made(features, w, weights, rows.narrow_scratch(d), *found)
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
    for kind in (features, sparse_rows(features)):
        scores, combined, mean = all_of(kind, w, weights)
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
    rows.score(features, w, scores)
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
