"""Sorting by falling score is numpy's stable argsort of the negated scores, on both sides of the switch of method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankloop.kernels import sorting

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


def test_room_for_a_short_list_leaves_out_the_radix_sort() -> None:
    assert [sorting.scratch(n).dtype for n in BOTH_SIDES] == [np.int64, np.uint64]
