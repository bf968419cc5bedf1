"""RTop-1F explores by deciding anew in every round; the paper draws all exploring rounds of a block at once.

Both have the same law. The rule is shown to have it by enumeration in exact fractions, the implementation by counting.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from scipy import stats

from rankloop import rankers

UNLIKELY = 1e-4


def paths(
    left: int, still_open: frozenset[int], chance: Fraction = Fraction(1), taken: tuple[int | None, ...] = ()
) -> Iterator[tuple[tuple[int | None, ...], Fraction]]:
    """Every way a block can go (the slot explored in each round, or None) and its probability.

    The rule: with n slots open and `left` rounds to go, explore with probability n / left, a slot drawn evenly.
    """
    if left == 0:
        yield taken, chance
        return
    for slot in still_open:
        # n / left to explore, times 1 / n for the slot
        yield from paths(left - 1, still_open - {slot}, chance / left, (*taken, slot))
    if left > len(still_open):
        rest = 1 - Fraction(len(still_open), left)
        yield from paths(left - 1, still_open, chance * rest, (*taken, None))


def times(taken: tuple[int | None, ...], m: int) -> tuple[int, ...]:
    """i_1 .. i_m of Algorithm 1: the round in which each slot was explored."""
    return tuple(taken.index(slot) for slot in range(m))


@pytest.mark.judges("2015-045")
@pytest.mark.parametrize(("m", "length"), [(1, 1), (1, 4), (2, 2), (2, 5), (3, 3), (3, 5), (4, 6)])
def test_the_rule_draws_every_assignment_of_items_to_rounds_equally_often(m: int, length: int) -> None:
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for taken, chance in paths(length, frozenset(range(m))):
        assert all(taken.count(slot) == 1 for slot in range(m))
        law[times(taken, m)] += chance
    evenly = Fraction(factorial(length - m), factorial(length))
    assert law == dict.fromkeys(permutations(range(length), m), evenly)


@pytest.mark.judges("2015-052")
def test_the_estimate_of_a_block_is_unbiased() -> None:
    """Lemma 8, for every entry of r_hat and also for the products of two entries that a second moment needs."""
    m, length = 3, 5
    r = np.random.default_rng(1).integers(0, 2, (length, m))
    mean = [Fraction(0)] * m
    second = np.full((m, m), Fraction(0))
    for taken, chance in paths(length, frozenset(range(m))):
        r_hat = [int(r[t, j]) for j, t in enumerate(times(taken, m))]
        for i in range(m):
            mean[i] += chance * r_hat[i]
            for j in range(m):
                second[i, j] += chance * r_hat[i] * r_hat[j]
    assert mean == [Fraction(int(r[:, j].sum()), length) for j in range(m)]
    for i, j in permutations(range(m), 2):
        pairs = sum(int(r[s, i] * r[t, j]) for s, t in permutations(range(length), 2))
        assert second[i, j] == Fraction(pairs, length * (length - 1))


def block_by_block(
    ranker: rankers.RTop1F, length: int, blocks: int, seed: int
) -> Iterator[tuple[int | None, ...]]:
    """The slot explored in each round of each block when every round is learnt before the next is shown."""
    rng = np.random.default_rng(seed)
    nothing = np.zeros(ranker.feedback.length(ranker.n_positions))
    k = len(nothing)
    for _ in range(blocks):
        taken: list[int | None] = []
        for _ in range(length):
            shown = ranker.rank(rng=rng)
            ranker.learn(shown, nothing)
            taken.append(int(shown.items[0]) // k if shown.explored else None)
        yield tuple(taken)


@pytest.mark.judges("2015-045")
@pytest.mark.parametrize("explore", ["keep-rest", "random"])
@pytest.mark.parametrize(("m", "length"), [(2, 2), (3, 5)])
def test_the_implementation_draws_every_assignment_equally_often(explore: str, m: int, length: int) -> None:
    blocks = 9_000
    ranker = rankers.RTop1F(n_items=m, horizon=length * blocks, blocks=blocks, explore=explore)
    counts: Counter[tuple[int, ...]] = Counter()
    for taken in block_by_block(ranker, length, blocks, seed=11):
        counts[times(taken, m)] += 1  # raises unless every slot was explored
        assert sum(slot is not None for slot in taken) == m
    assert set(counts) == set(permutations(range(length), m))
    assert stats.chisquare(list(counts.values())).pvalue > UNLIKELY


@pytest.mark.judges("2015-002")
def test_the_slots_of_top_k_feedback_have_the_same_law() -> None:
    blocks, length = 6_000, 4
    ranker = rankers.RTop1F(n_items=5, horizon=length * blocks, blocks=blocks, k=2)  # slots {0,1} {2,3} {4}
    counts = Counter(times(taken, 3) for taken in block_by_block(ranker, length, blocks, seed=12))
    assert set(counts) == set(permutations(range(length), 3))
    assert stats.chisquare(list(counts.values())).pvalue > UNLIKELY


@pytest.mark.judges("2015-052")
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_estimate_of_the_implementation_is_unbiased(k: int) -> None:
    # The same block of users comes again and again, so the mean estimate must be the mean of the block.
    length, blocks, m = 6, 4_000, 3
    r = np.array([[1, 0, 0], [1, 0, 1], [0, 0, 1], [0, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=np.float64)
    ranker = rankers.RTop1F(n_items=m, horizon=length * blocks, blocks=blocks, k=k, measure="sum_loss")
    rng = np.random.default_rng(13)
    for t in range(length * blocks):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, r[t % length][shown.items[:k]])
    assert ranker.state.block[0] == blocks
    mean = r.mean(axis=0)
    error = np.sqrt(mean * (1 - mean) / blocks)
    np.testing.assert_array_less(np.abs(ranker.state.s_hat / blocks - mean), 4.5 * error)


@pytest.mark.parametrize("explore", ["keep-rest", "random"])
def test_before_anything_is_known_every_order_is_equally_likely(explore: str) -> None:
    ranker = rankers.RTop1F(n_items=4, horizon=40, blocks=6, explore=explore)  # blocks of six or seven rounds
    rng = np.random.default_rng(14)
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(6_000):
        counts[tuple(ranker.rank(rng=rng).items.tolist())] += 1
    assert stats.chisquare([counts[order] for order in permutations(range(4))]).pvalue > UNLIKELY
