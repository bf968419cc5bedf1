"""Sorting by falling score is numpy's stable argsort; equal scores come in random order where that is asked for."""

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

# Sorting by falling score is numpy's stable argsort of the negated scores, on both sides of the switch of method.


AWKWARD = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, np.inf, -np.inf]
BOTH_SIDES = (sorting.COUNT_UP_TO, sorting.COUNT_UP_TO + 1)


def by_falling_score(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    items = np.full(len(scores), -1, np.int64)
    sorting.by_falling_score(scores, len(scores), items, sorting.scratch(len(scores)))
    return items


def reference(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.argsort(-scores, kind="stable")


@given(
    st.lists(
        st.one_of(st.sampled_from(AWKWARD), st.floats(allow_nan=False), st.integers(-3, 3).map(float)),
        max_size=2 * sorting.COUNT_UP_TO,
    )
)
def test_is_a_stable_sort_of_any_numbers(scores: list[float]) -> None:
    given_scores = np.array(scores, dtype=np.float64)
    before = given_scores.copy()
    np.testing.assert_array_equal(by_falling_score(given_scores), reference(given_scores))
    np.testing.assert_array_equal(given_scores, before)


@given(st.integers(1, 1000), st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5, 1000]))
def test_keeps_the_order_of_ties_at_every_length(n: int, seed: int, n_values: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.choice(np.append(rng.standard_normal(n_values) * 10.0 ** rng.integers(-300, 300), -0.0), n)
    np.testing.assert_array_equal(by_falling_score(scores), reference(scores))


SHAPES = {
    "random": lambda rng, n: rng.standard_normal(n),
    "rising": lambda rng, n: np.arange(n, dtype=np.float64),
    "falling": lambda rng, n: -np.arange(n, dtype=np.float64),
    "equal": lambda rng, n: np.full(n, 0.1),
    "signed zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, -0.0),
    "one byte differs": lambda rng, n: 1.0 + rng.integers(0, 200, n) * 2.0**-52,
    "one far above": lambda rng, n: np.append(rng.random(n), 1e300)[-n:] if n else np.empty(0),
    "one far below": lambda rng, n: np.append(-1e300, rng.random(n))[:n],
    "wider than a number": lambda rng, n: rng.choice([-1.7e308, 1.7e308, 0.0, 1.0], n),
    "narrower than a number": lambda rng, n: rng.integers(0, 9, n) * 5e-324,
    "infinite": lambda rng, n: rng.choice([-np.inf, np.inf, 0.0, 1.0], n),
    "infinite only": lambda rng, n: np.full(n, np.inf),
    "small crowds": lambda rng, n: (
        rng.permutation(np.repeat(rng.random(n // 8 + 1), 8)[:n]) + rng.random(n) * 1e-12
    ),
    "large crowds": lambda rng, n: (
        rng.permutation(np.repeat(rng.random(n // 99 + 1), 99)[:n]) + rng.random(n) * 1e-12
    ),
    "tied crowds": lambda rng, n: rng.permutation(np.repeat(rng.random(n // 5 + 1), 5)[:n]),
    "learnt": lambda rng, n: rng.binomial(500, rng.random(n)) + 70 * rng.random(n),
}


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, *BOTH_SIDES, 255, 256, 257, 1000, 5000])
@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_at_the_lengths_where_the_method_changes(n: int, shape: str) -> None:
    scores = SHAPES[shape](np.random.default_rng(n), n)
    np.testing.assert_array_equal(by_falling_score(scores), reference(scores))


@pytest.mark.parametrize("n", BOTH_SIDES)
def test_what_was_in_the_scratch_does_not_matter(n: int) -> None:
    scores = np.random.default_rng(1).integers(0, 9, n).astype(np.float64)
    scratch = sorting.scratch(n)
    items = np.empty(n, np.int64)
    for rubbish in (0, 1, 2**64 - 1):
        scratch.view(np.uint64)[...] = rubbish
        items[...] = -7
        sorting.by_falling_score(scores, len(scores), items, scratch)
        np.testing.assert_array_equal(items, reference(scores))


@given(st.integers(1, 300), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_ties_may_begin_with_any_index(n: int, n_values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, first = rng.integers(0, n_values, n).astype(np.float64), int(rng.integers(n))
    items, turned = np.full(n, -1, np.int64), np.empty(n)
    sorting.by_falling_score_from(first, scores, n, turned, items, sorting.scratch(n))
    expected = sorted(range(n), key=lambda i: (-scores[i], (i - first) % n))
    assert items.tolist() == expected


@given(st.lists(st.one_of(st.sampled_from(AWKWARD), st.floats(allow_nan=False)), max_size=200))
def test_a_sorted_copy_is_numpys_sort(values: list[float]) -> None:
    given_values = np.array(values, dtype=np.float64)
    before = given_values.copy()
    np.testing.assert_array_equal(sorting.sorted_copy(given_values), np.sort(given_values))
    np.testing.assert_array_equal(given_values, before)


# The greedy order: by falling score, ties in random order, the same for short lists and for long ones.


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
