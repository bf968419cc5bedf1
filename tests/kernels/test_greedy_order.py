"""The greedy order: by falling score, ties in random order, the same for short lists and for long ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rankloop.kernels import sorting
from tests.kernels.splitmix import MASK


@numba.njit
def greedy_order(scores: Any, n: int, key: Any, first: int, items: Any, scratch: Any) -> None:
    sorting.greedy_order(scores, n, key, first, items, scratch)


def order(scores: Any, key: int, *, first: int = 1, spare: int = 0) -> NDArray[np.int64]:
    n = len(scores)
    items = np.full(n + spare, -1)
    padded = np.append(np.asarray(scores, dtype=np.float64), np.full(spare, np.inf))
    greedy_order(padded, n, np.uint64(key), first, items, sorting.scratch(n + spare))
    assert (items[n:] == -1).all()
    return items[:n]


@numba.njit
def greedy_top(scores: Any, n: int, m: int, key: Any, items: Any, scratch: Any) -> None:
    sorting.greedy_top(scores, n, m, key, 1, items, scratch)


LENGTHS = st.one_of(st.integers(1, 9), st.sampled_from([48, 49, 90, 127, 128, 129, 130, 337]))


@pytest.mark.judges("2016-095")
@given(LENGTHS, st.integers(1, 6), st.integers(0, MASK), st.integers(0, 2**32 - 1), st.integers(0, 300))
def test_scores_fall_and_every_item_is_there(n: int, grades: int, key: int, seed: int, spare: int) -> None:
    scores = np.random.default_rng(seed).integers(-grades, grades, n) / 2.0
    items = order(scores, key, spare=spare)
    np.testing.assert_array_equal(np.sort(items), np.arange(n))
    assert (np.diff(scores[items]) <= 0).all()


@given(LENGTHS, st.integers(0, MASK), st.integers(0, 2**32 - 1))
def test_without_ties_the_key_does_not_matter(n: int, key: int, seed: int) -> None:
    scores = np.random.default_rng(seed).permutation(n).astype(np.float64)
    np.testing.assert_array_equal(order(scores, key), np.argsort(-scores))


@pytest.mark.parametrize(
    ("scores", "tied"),
    [
        ([0.0, 0.0], [0, 1]),
        ([0.0, 0.0, 0.0], [0, 1, 2]),
        ([0.0, 0.0, 0.0, 0.0], [0, 1, 2, 3]),
        ([2.0, 1.0, 1.0, 1.0, 0.0], [1, 2, 3]),
        ([1.0, 5.0, 1.0, 7.0, 1.0], [0, 2, 4]),
        ([0.0, -0.0, 0.0], [0, 1, 2]),  # the sign of zero is no reason to stand higher
    ],
    ids=str,
)
def test_tied_items_come_in_every_order_equally_often(scores: list[float], tied: list[int]) -> None:
    seen: Counter[tuple[int, ...]] = Counter()
    for key in np.random.default_rng(len(scores)).integers(0, 1 << 63, 8_000):
        items = order(scores, int(key))
        seen[tuple(item for item in items.tolist() if item in tied)] += 1
    assert len(seen) == np.prod(np.arange(1, len(tied) + 1))
    assert stats.chisquare(list(seen.values())).pvalue > 1e-4


def test_two_runs_of_ties_are_broken_apart_from_each_other() -> None:
    seen: Counter[tuple[int, ...]] = Counter()
    for key in np.random.default_rng(5).integers(0, 1 << 63, 8_000):
        seen[tuple(order([1.0, 0.0, 1.0, 0.0, 0.0], int(key)).tolist())] += 1
    assert len(seen) == 12
    assert stats.chisquare(list(seen.values())).pvalue > 1e-4


@pytest.mark.parametrize("n", [100, 200])
def test_in_a_long_list_of_ties_every_item_is_everywhere(n: int) -> None:
    # On both sides of the length where the way of sorting changes.
    times = np.zeros((n, n))
    n_keys = 20 * n
    for key in np.random.default_rng(n).integers(0, 1 << 63, n_keys):
        times[order(np.zeros(n), int(key)), np.arange(n)] += 1
    for corner in (times[0], times[-1], times[:, 0], times[:, -1]):
        assert stats.chisquare(corner).pvalue > 1e-4


def test_numbers_before_the_first_are_left_to_others() -> None:
    # Ties draw on the numbers first + 1 to first + n - 1 of the key; exploring draws on others.
    from tests.kernels.splitmix import uniforms

    n, first = 5, 3
    for key in range(200):
        numbers = uniforms(key, first + n)
        expected = list(range(n))
        for i in range(1, n):
            j = int(numbers[first + i] * (i + 1))
            expected[i], expected[j] = expected[j], expected[i]
        assert order(np.zeros(n), key, first=first).tolist() == expected


@given(LENGTHS, st.integers(1, 17), st.integers(1, 2_000), st.integers(0, MASK), st.integers(0, 2**32 - 1))
def test_the_top_is_the_beginning_of_the_whole_order(
    n: int, m: int, grades: int, key: int, seed: int
) -> None:
    scores = np.random.default_rng(seed).integers(-grades, grades, n) / 2.0
    items = np.full(n, -1)
    m = min(m, n)
    greedy_top(scores, n, m, np.uint64(key), items, sorting.scratch(n))
    np.testing.assert_array_equal(items[:m], order(scores, key)[:m])
