"""Random words are SplitMix64, and what is made of them is as even as chance allows."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankloop.kernels import random
from tests.kernels.splitmix import MASK, words

# The first outputs of SplitMix64 for this seed, as printed wherever the generator is explained.
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]
UNLIKELY = 1e-4  # a right generator fails one of these tests in ten thousand; the seeds are fixed


def keys(n: int, seed: int) -> list[np.uint64]:
    return list(np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64))


def test_published_words() -> None:
    assert words(1234567, 5) == PUBLISHED
    assert [int(random.word(np.uint64(1234567), i)) for i in range(5)] == PUBLISHED


@given(st.integers(0, MASK), st.integers(0, 40))
def test_any_word_of_any_key(key: int, i: int) -> None:
    assert int(random.word(np.uint64(key), i)) == words(key, i + 1)[i]


@given(st.integers(0, MASK), st.integers(0, 40))
def test_uniform_is_the_upper_53_bits(key: int, i: int) -> None:
    number = random.uniform(np.uint64(key), i)
    assert number == (words(key, i + 1)[i] >> 11) / 2**53
    assert 0.0 <= number < 1.0


@given(st.integers(0, MASK), st.integers(1, 2**31))
def test_below_is_the_floor_of_uniform_times_n(key: int, n: int) -> None:
    number = random.below(np.uint64(key), 3, n)
    assert number == int((words(key, 4)[3] >> 11) / 2**53 * n)
    assert 0 <= number < n


@pytest.mark.parametrize("i", [0, 1, 2, 63])
def test_uniform_is_even_for_each_index(i: int) -> None:
    cells = Counter(int(random.uniform(key, i) * 32) for key in keys(16_000, i))
    assert len(cells) == 32
    assert stats.chisquare(list(cells.values())).pvalue > UNLIKELY


def test_numbers_of_one_key_are_independent_of_each_other() -> None:
    # Three numbers of the same key, as a round draws them: to explore or not, the slot, the first perturbation.
    cells = Counter(tuple(int(random.uniform(key, i) * 4) for i in range(3)) for key in keys(16_000, 5))
    assert len(cells) == 64
    assert stats.chisquare(list(cells.values())).pvalue > UNLIKELY


def test_keys_that_count_up_are_as_good_as_random_ones() -> None:
    cells = Counter(
        (int(random.uniform(np.uint64(key), 0) * 8), int(random.uniform(np.uint64(key + 1), 0) * 8))
        for key in range(0, 32_000, 2)
    )
    assert stats.chisquare(list(cells.values())).pvalue > UNLIKELY


@pytest.mark.parametrize("n", [2, 3, 7, 10])
def test_below_is_even(n: int) -> None:
    counts = Counter(random.below(key, 1, n) for key in keys(8_000, n))
    assert sorted(counts) == list(range(n))
    assert stats.chisquare(list(counts.values())).pvalue > UNLIKELY


@pytest.mark.parametrize("first", [0, 2])
def test_shuffle_gives_every_order_of_four_equally_often(first: int) -> None:
    items = np.full(4, -9, np.int64)
    counts: Counter[tuple[int, ...]] = Counter()
    for key in keys(12_000, first):
        random.shuffle(key, first, len(items), items)
        counts[tuple(items.tolist())] += 1
    assert set(counts) == set(permutations(range(4)))
    assert stats.chisquare(list(counts.values())).pvalue > UNLIKELY


@given(st.integers(0, MASK), st.integers(0, 200))
def test_shuffle_is_a_permutation_whatever_was_there(key: int, n: int) -> None:
    items = np.full(n, 2**62, np.int64)
    random.shuffle(np.uint64(key), 2, len(items), items)
    assert sorted(items.tolist()) == list(range(n))
