"""RTop-1F: the paper's law and estimates, tickets that come late, limits and mistakes."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations
from math import ceil, factorial, log2
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rankloop import environments, measures, rankers, simulation
from rankloop.base import Ints, Ranking
from rankloop.rankers import rtop1f
from tests.examples import refused

Relevance = Callable[[int, int], float]


def play(
    ranker: rankers.RTop1F, rounds: int, relevance: Relevance = lambda t, item: 0.0, seed: int = 1
) -> list[tuple[Ranking, dict[str, Any]]]:
    """Rank and learn in turn; each ranking with the state after it was learnt."""
    rng = np.random.default_rng(seed)
    story = []
    for t in range(rounds):
        shown = ranker.rank(rng=rng)
        top = shown.items[: ranker.feedback.length(ranker.n_positions)]
        ranker.learn(shown, np.array([relevance(t, int(item)) for item in top]))
        story.append((shown, ranker.save()))
    return story


@pytest.mark.judges("2015-042", "2015-078")
def test_number_of_blocks_is_the_papers_rounded_and_capped() -> None:
    for m in (1, 2, 3, 5, 10, 33, 100):
        for T in (1, 2, 7, 50, 99, 100, 101, 1000, 9999, 10_000, 123_457, 10**6):
            K = rankers.RTop1F(n_items=m, horizon=T).params.blocks[0]
            assert max(1, min(round(m ** (-1 / 3) * T ** (2 / 3)), T // m)) == K, (m, T)


def test_number_of_blocks_of_the_papers_simulation() -> None:
    assert rankers.RTop1F(n_items=10, horizon=10**4).params.blocks[0] == 215  # erratum A23
    assert rankers.RTop1F(n_items=10, horizon=10**5).params.blocks[0] == 1000


@pytest.mark.judges("2015-043")
@pytest.mark.parametrize(
    ("measure", "max_grade", "gain"),
    [
        ("sum_loss", 1, 1),
        ("sum_loss", 3, 3),
        ("pairwise_loss", 1, 1),
        ("precision@3", 1, 1),
        ("precision@3", 4, 4),
        ("dcg", 1, 1),
        ("dcg", 2, 3),
        ("dcg", 4, 15),
        ("dcg@5", 4, 15),
    ],
)
def test_reach_of_the_perturbation(measure: str, max_grade: int, gain: float) -> None:
    ranker = rankers.RTop1F(n_items=10, horizon=10**4, measure=measure, max_grade=max_grade)
    np.testing.assert_allclose(ranker.params.reaches, [gain * np.sqrt(10 * 215)], rtol=1e-15)


def test_epsilon_and_blocks_can_be_chosen() -> None:
    ranker = rankers.RTop1F(n_items=4, horizon=100, blocks=7, epsilon=0.25)
    assert ranker.params.blocks[0] == 7
    assert ranker.params.reaches[0] == 4.0


@pytest.mark.judges("2015-047")
def test_the_perturbation_reaches_as_far_as_it_says_and_no_further() -> None:
    # Two items, the first ahead by s_hat = 1: it is overtaken with probability (1 - 1/reach)^2 / 2.
    for reach, chance in ((0.99, 0.0), (2.0, 0.125), (10.0, 0.405)):
        ranker = rankers.RTop1F(n_items=2, horizon=10**6, blocks=1, epsilon=1 / reach)
        ranker.state.s_hat[0] = 1.0
        rng = np.random.default_rng(3)
        tops = [shown.items[0] for shown in (ranker.rank(rng=rng) for _ in range(6000)) if not shown.explored]
        error = np.sqrt(chance * (1 - chance) / len(tops))
        assert abs(np.mean(tops) - chance) <= 4.5 * error


@pytest.mark.judges("2015-043")
@pytest.mark.parametrize(
    ("m", "T", "blocks", "k"),
    [
        (3, 100, 7, 1),
        (3, 100, 33, 1),
        (10, 10_000, None, 1),
        (4, 59, 13, 1),
        (7, 100, 9, 3),
        (5, 1000, None, 2),
    ],
)
def test_blocks_end_where_erratum_a10_says_with_one_exploration_a_slot(
    m: int, T: int, blocks: int | None, k: int
) -> None:
    ranker = rankers.RTop1F(n_items=m, horizon=T, blocks=blocks, k=k)
    K, n_slots = int(ranker.params.blocks[0]), ceil(m / k)
    story = play(ranker, T)
    begun = 0
    for i in range(1, K + 1):
        end = i * T // K
        assert end - begun >= T // K >= n_slots
        explored = Counter(int(shown.items[0]) // k for shown, _ in story[begun:end] if shown.explored)
        assert explored == Counter(range(n_slots)), f"block {i}"
        assert [int(state["block"][0]) for _, state in story[begun:end]] == [i - 1] * (end - begun - 1) + [i]
        begun = end
    assert begun == T


@pytest.mark.judges("2015-044", "2015-048")
def test_only_explored_relevance_counts_and_only_after_its_block() -> None:
    rng = np.random.default_rng(5)
    r = rng.integers(0, 2, (60, 4)).astype(float)
    ranker = rankers.RTop1F(n_items=4, horizon=60, blocks=6, measure="sum_loss")
    s_hat, r_hat = np.zeros(4), np.zeros(4)
    for t, (shown, state) in enumerate(play(ranker, 60, lambda t, item: r[t, item])):
        if shown.explored:
            r_hat[shown.items[0]] = r[t, shown.items[0]]
        if (t + 1) % 10 == 0:
            s_hat += r_hat  # Alg. 1, line 7
        np.testing.assert_array_equal(state["s_hat"], s_hat, err_msg=f"round {t + 1}")


@pytest.mark.judges("2015-054")
@pytest.mark.parametrize(
    ("measure", "gain"),
    [
        ("dcg", lambda r: 2.0**r - 1),
        ("dcg@2", lambda r: 2.0**r - 1),
        ("sum_loss", float),
        ("precision@2", float),
    ],
)
def test_grades_enter_through_the_gain_of_the_measure(measure: str, gain: Callable[[int], float]) -> None:
    ranker = rankers.RTop1F(n_items=5, horizon=50, blocks=5, measure=measure, max_grade=4)
    play(ranker, 50, lambda t, item: float(item))
    np.testing.assert_array_equal(ranker.state.s_hat, [5 * gain(item) for item in range(5)])


def test_a_fraction_of_a_grade_is_no_surprise() -> None:
    ranker = rankers.RTop1F(n_items=2, horizon=4, blocks=1, measure="dcg")
    play(ranker, 4, lambda t, item: 0.5)
    np.testing.assert_allclose(ranker.state.s_hat, 2**0.5 - 1, rtol=1e-15)


def _almost_unperturbed(explore: str, k: int = 1) -> rankers.RTop1F:
    ranker = rankers.RTop1F(n_items=7, horizon=700, blocks=50, explore=explore, k=k, epsilon=1e9)
    ranker.state.s_hat[:] = [3, 6, 1, 5, 0, 2, 4]
    return ranker


BEST_FIRST = [1, 3, 6, 0, 5, 2, 4]


@pytest.mark.judges("2015-046")
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_keep_rest_moves_the_slot_to_the_front_and_nothing_else(k: int) -> None:
    ranker = _almost_unperturbed("keep-rest", k)
    rng = np.random.default_rng(2)
    seen = set()
    for _ in range(300):
        shown = ranker.rank(rng=rng)
        slot = [item for item in BEST_FIRST if shown.explored and item // k == shown.items[0] // k]
        assert shown.items.tolist() == slot + [item for item in BEST_FIRST if item not in slot]
        seen |= set(slot)
    assert seen == set(range(7))


@pytest.mark.judges("2015-046")
def test_random_puts_the_slot_before_an_order_that_knows_nothing() -> None:
    ranker = _almost_unperturbed("random")
    rng = np.random.default_rng(2)
    second = Counter()
    for _ in range(12_000):
        shown = ranker.rank(rng=rng)
        if shown.explored:
            second[int(shown.items[1])] += 1
        else:
            assert shown.items.tolist() == BEST_FIRST
    n = sum(second.values())
    assert n > 5000
    assert max(abs(count / n - 1 / 7) for count in second.values()) < 4.5 * np.sqrt(6 / 49 / n)


@pytest.mark.judges("2015-002")
@pytest.mark.parametrize(("m", "k"), [(7, 3), (6, 3), (5, 4), (3, 3), (4, 4), (5, 1)])
def test_all_labels_of_a_slot_are_used(m: int, k: int) -> None:
    ranker = rankers.RTop1F(n_items=m, horizon=10 * m, blocks=1, k=k, measure="sum_loss", max_grade=m)
    assert len(ranker.state.slots) == ceil(m / k)
    assert ranker.feedback.length(m) == min(k, m)
    story = play(ranker, 10 * m, lambda t, item: 1.0 + item)
    np.testing.assert_array_equal(ranker.state.s_hat, np.arange(1, m + 1))
    assert sum(shown.explored for shown, _ in story) == ceil(m / k)


@pytest.mark.judges("2015-049")
@pytest.mark.parametrize(
    ("m", "T"), [(1, 1), (1, 50), (2, 1), (5, 1), (5, 4), (5, 5), (5, 24), (5, 25), (100, 150)]
)
def test_short_horizons_still_explore_every_item_once_a_block(m: int, T: int) -> None:
    ranker = rankers.RTop1F(n_items=m, horizon=T)
    story = play(ranker, 3 * max(m, T), lambda t, item: 1.0)
    tops = Counter(int(shown.items[0]) for shown, _ in story if shown.explored)
    finished = int(ranker.state.s_hat[0])
    assert finished >= 1
    np.testing.assert_array_equal(ranker.state.s_hat, finished)
    assert all(finished <= tops[item] <= finished + 1 for item in range(m))
    if m > T:  # fewer rounds than items: nothing but exploring
        assert all(shown.explored for shown, _ in story[:m])


def test_rounds_beyond_the_horizon_go_on_in_blocks_of_the_same_length() -> None:
    ranker = rankers.RTop1F(n_items=3, horizon=50, blocks=7)
    story = play(ranker, 500, lambda t, item: float(item == 2))
    ends = [t + 1 for t in range(1, 500) if story[t][1]["block"][0] > story[t - 1][1]["block"][0]]
    assert ends == [i * 50 // 7 for i in range(1, 71)]
    assert ranker.state.s_hat.tolist() == [0, 0, 70]


def _epochs(ranker: rankers.RTop1F) -> Ints:
    return ranker.params.horizons


def test_without_a_horizon_it_doubles_and_what_was_learnt_keeps_its_weight() -> None:
    ranker = rankers.RTop1F(n_items=2, measure="sum_loss")
    horizons, blocks = _epochs(ranker), ranker.params.blocks
    np.testing.assert_array_equal(horizons[1:], 2 * horizons[:-1])
    story = play(ranker, int(horizons[:4].sum()) + 3, lambda t, item: float(item == 0))
    played = 0
    for epoch in range(4):
        T, K = int(horizons[epoch]), int(blocks[epoch])
        assert max(1, min(round(2 ** (-1 / 3) * T ** (2 / 3)), T // 2)) == K
        before, after = story[played + T - 2][1], story[played + T - 1][1]
        assert (before["epoch"][0], after["epoch"][0], after["t"][0]) == (epoch, epoch + 1, 0)
        length, new_length = T / K, horizons[epoch + 1] / blocks[epoch + 1]
        expected = (before["s_hat"] + [1, 0]) * length / new_length
        np.testing.assert_allclose(after["s_hat"], expected, rtol=1e-12)
        # Each round weighs 1 / length, whichever epoch it was in: item 0 was relevant in all of them.
        np.testing.assert_allclose(after["s_hat"][0] * new_length, played + T, rtol=1e-9)
        played += T
    assert story[-1][1]["t"][0] == 3


def test_without_a_horizon_the_first_epoch_explores_half_of_the_time() -> None:
    for m in (1, 3, 10):
        ranker = rankers.RTop1F(n_items=m)
        assert ranker.params.blocks[0] * m / ranker.params.horizons[0] == pytest.approx(0.5, rel=0.1)


def test_without_a_horizon_regret_per_round_falls() -> None:
    people = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="dcg")
    rates = []
    for seed in range(5):
        people.restart()
        trace = simulation.play(rankers.RTop1F(n_items=4), people, rounds=64_000, seed=seed, points=64)
        rates.append(trace.regret[[0, 3, 15, 63]] / trace.rounds[[0, 3, 15, 63]])
    falling = np.mean(rates, axis=0)
    assert (falling[1:] < 0.8 * falling[:-1]).all(), (
        falling
    )  # four times as long: 4^(-1/3) = 0.63 times the regret


def test_without_a_horizon_it_is_not_much_worse_than_with_one() -> None:
    people = environments.FixedItems(environments.users.noisy_halves(n_items=5), measure="dcg")
    regrets = {}
    for horizon in (None, 20_000):
        totals = []
        for seed in range(6):
            people.restart()
            ranker = rankers.RTop1F(n_items=5, horizon=horizon)
            totals.append(simulation.play(ranker, people, rounds=20_000, seed=seed, points=10).total_regret)
        regrets[horizon] = np.mean(totals)
    assert regrets[None] < 2.5 * regrets[20_000]


@pytest.mark.judges("2015-079", "2015-083", "2015-086")
@pytest.mark.parametrize(
    ("measure", "max_grade", "D", "gain"),
    [
        ("sum_loss", 1, 10.0, 1.0),
        ("pairwise_loss", 1, 10.0, 1.0),
        ("dcg", 1, sum(1 / log2(1 + rank) for rank in range(1, 5)), 1.0),
        ("dcg", 3, sum(1 / log2(1 + rank) for rank in range(1, 5)), 7.0),
        ("dcg@2", 1, 1 + 1 / log2(3), 1.0),
        ("precision@2", 1, 2.0, 1.0),
    ],
)
def test_regret_bound_of_theorems_7_9_and_10(measure: str, max_grade: int, D: float, gain: float) -> None:
    m, T = 4, 1000
    ranker = rankers.RTop1F(n_items=m, horizon=T, measure=measure, max_grade=max_grade)
    K, R, A = int(ranker.params.blocks[0]), D * gain, m * gain
    assert ranker.regret_bound() == pytest.approx(R * m * K + 2 * (T / K) * np.sqrt(D * R * A * K), rel=1e-12)


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@3", "average_precision", "map", "auc", "err"])
def test_a_measure_that_cannot_be_learnt_is_refused_by_name(measure: str) -> None:
    with pytest.raises(ValueError, match=measures.get(measure).name) as refused:
        rankers.RTop1F(n_items=5, measure=measure)
    assert "dcg" in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n_items": 0}, "n_items"),
        ({"n_items": 2.5}, "n_items"),
        ({"n_items": "3"}, "n_items"),
        ({"n_items": None}, "n_items"),
        ({"n_items": True}, "n_items"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": -1}, "horizon"),
        ({"horizon": 1.5}, "horizon"),
        ({"horizon": float("nan")}, "horizon"),
        ({"horizon": float("inf")}, "horizon"),
        ({"k": 0}, "k"),
        ({"k": 99}, "k must be a whole number from 1 to 4, got 99"),
        ({"measure": "precision@50"}, "measure must have a cut-off of at most n_items=4, got 'precision@50'"),
        ({"measure": "dcg@5"}, "measure must have a cut-off of at most n_items=4, got 'dcg@5'"),
        ({"max_grade": 0}, "max_grade"),
        ({"measure": "pairwise_loss", "max_grade": 2}, "max_grade"),
        ({"measure": "dgc"}, "dgc"),
        ({"measure": "dcg@0"}, "k"),
        ({"explore": "greedy"}, "explore"),
        ({"blocks": 3}, "blocks"),
        ({"epsilon": 0.1}, "epsilon"),
        ({"horizon": 100, "blocks": 0}, "blocks"),
        ({"horizon": 100, "blocks": 26}, "blocks"),
        ({"horizon": 100, "epsilon": 0.0}, "epsilon"),
        ({"horizon": 100, "epsilon": -1.0}, "epsilon"),
        ({"horizon": 100, "epsilon": float("nan")}, "epsilon"),
        ({"horizon": 100, "epsilon": float("inf")}, "epsilon"),
        ({"horizon": 10, "epsilon": 5e-324}, "epsilon"),  # it has no finite inverse
        ({"max_grade": 1001}, "max_grade"),  # its gain is no number
        ({"measure": "precision"}, "precision"),
        # At 2^62 already the second block begins at a number that does not fit into 64 bits, and then it never ends.
        ({"horizon": 2**62}, "horizon"),
        ({"horizon": 2**63}, "horizon"),
        ({"horizon": 10**30}, "horizon"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        rankers.RTop1F(**{"n_items": 4} | arguments)


@pytest.mark.parametrize("m", [1, 2, 10, 1000])
@pytest.mark.parametrize("horizon", [10**4, 10**9, 10**11, None])
def test_blocks_end_where_exact_integers_say_however_long_the_horizon(m: int, horizon: int | None) -> None:
    params = rankers.RTop1F(n_items=m, horizon=horizon).params
    for epoch, (T, K) in enumerate(zip(params.horizons.tolist(), params.blocks.tolist(), strict=True)):
        reachable = min(K, 10**13 * K // T)  # in as many rounds as anybody will live to see
        for block in {0, 1, reachable // 3, reachable - 1, reachable}:
            if block >= 0:
                assert rtop1f.block_end(params, epoch, block) == (block + 1) * T // K, (T, K, block)


@pytest.mark.parametrize("m", [100_000, 1_000_000])
def test_without_a_horizon_there_may_be_very_many_items(m: int) -> None:
    assert len(_epochs(rankers.RTop1F(n_items=m))) >= 1


@pytest.mark.parametrize("relevance", [2.0, 1100.0])
def test_relevance_above_max_grade_is_refused_and_changes_nothing(relevance: float) -> None:
    # 2^1100 - 1 is infinite: one such label would put its item first for ever.
    ranker = rankers.RTop1F(n_items=3, horizon=30, measure="dcg", max_grade=1)
    with refused(ranker, r"max_grade|feedback"):
        ranker.learn(ranker.rank(rng=np.random.default_rng(1)), np.array([relevance]))


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


State = dict[str, Any]


def assert_same(one: State, other: State) -> None:
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def find(ranker: rankers.RTop1F, wanted: Callable[[Ranking], bool]) -> Ranking:
    """A ranking that the ranker may show now, found by trying seeds; `rank` changes nothing."""
    shown = (ranker.rank(rng=np.random.default_rng(seed)) for seed in range(5_000))
    return next(filter(wanted, shown))


def exploring(ranker: rankers.RTop1F, item: int) -> Ranking:
    return find(ranker, lambda shown: shown.explored and shown.items[0] == item)


def not_exploring(ranker: rankers.RTop1F) -> Ranking:
    return find(ranker, lambda shown: not shown.explored)


def test_a_block_ends_only_when_every_slot_was_learnt() -> None:
    ranker = rankers.RTop1F(n_items=3, horizon=60, blocks=6, measure="sum_loss")
    explored = [exploring(ranker, item) for item in range(3)]
    others = [not_exploring(ranker)] * 30
    for shown in (explored[0], explored[1], *others):  # far beyond the ten rounds of the block
        ranker.learn(shown, [1.0])
    assert (ranker.state.block[0], ranker.state.n_open[0]) == (0, 1)
    assert ranker.state.s_hat.tolist() == [0, 0, 0]
    for seed in range(20):  # overdue: every round explores what is missing
        shown = ranker.rank(rng=np.random.default_rng(seed))
        assert shown.explored
        assert shown.items[0] == 2
    ranker.learn(explored[2], [1.0])
    assert ranker.state.s_hat.tolist() == [1, 1, 1]
    assert ranker.state.n_open[0] == 3
    # 33 rounds have passed, so the block that is now open is the one of rounds 31 to 40.
    assert (ranker.state.t[0], ranker.state.block[0]) == (33, 3)


def test_the_block_after_a_late_one_ends_on_time() -> None:
    ranker = rankers.RTop1F(n_items=2, horizon=60, blocks=6, measure="sum_loss")
    late = [exploring(ranker, item) for item in range(2)]
    waiting = not_exploring(ranker)
    for shown in (*[waiting] * 13, *late):
        ranker.learn(shown, [1.0])
    assert (ranker.state.t[0], ranker.state.block[0]) == (15, 1)
    rng = np.random.default_rng(3)
    for t in range(15, 60):
        assert ranker.state.block[0] == t // 10
        ranker.learn(ranker.rank(rng=rng), [1.0])
    assert ranker.state.s_hat.tolist() == [6, 6]


def test_a_slot_explored_twice_counts_once() -> None:
    ranker = rankers.RTop1F(n_items=3, horizon=60, blocks=6, measure="sum_loss")
    first, second = exploring(ranker, 1), exploring(ranker, 1)
    ranker.learn(first, [1.0])
    assert (ranker.state.n_open[0], ranker.state.r_hat[1]) == (2, 1.0)
    ranker.learn(second, [0.0])
    assert (ranker.state.n_open[0], ranker.state.r_hat[1]) == (2, 1.0)
    assert ranker.state.t[0] == 2
    assert sorted(ranker.state.slots.tolist()) == [0, 1, 2]


def test_a_ticket_that_comes_after_its_block_serves_the_present_one() -> None:
    ranker = rankers.RTop1F(n_items=2, horizon=40, blocks=10, measure="sum_loss")
    stale = exploring(ranker, 0)
    rng = np.random.default_rng(4)
    while ranker.state.block[0] == 0:
        ranker.learn(ranker.rank(rng=rng), [0.0])
    ranker.learn(stale, [1.0])
    assert ranker.state.n_open[0] == 1
    assert ranker.state.r_hat[0] == 1.0
    assert ranker.state.s_hat.tolist() == [0, 0]


def test_a_block_that_waits_for_feedback_explores_no_candidate_that_it_has_seen() -> None:
    ranker, rng = rankers.RTop1F(n_items=4), np.random.default_rng(1)
    shown = [ranker.rank(rng=rng) for _ in range(500)]
    seen = next(one for one in shown if one.explored)
    ranker.learn(seen, np.zeros(1))
    for one in shown:
        if not one.explored and ranker.state.left[0] >= 0:
            ranker.learn(one, np.zeros(1))
    assert ranker.state.left[0] < 0
    for items in (seen.items[:1], np.arange(4)):
        among = ranker.rank_among(items, np.arange(len(items)), rng=rng)
        assert sorted(among.items) == sorted(items)
        assert among.explored == (len(items) == 4)


@pytest.mark.parametrize("n_open", [2, 10, 100])
def test_with_many_rankings_open_every_block_still_sees_every_item(n_open: int) -> None:
    ranker = rankers.RTop1F(n_items=4, horizon=4000, blocks=100, measure="sum_loss")
    rng = np.random.default_rng(5)
    closed = 0
    for _ in range(4000 // n_open):
        shown = [ranker.rank(rng=rng) for _ in range(n_open)]
        for i in rng.permutation(n_open):
            before = ranker.state.s_hat.copy()
            ranker.learn(shown[i], [1.0])
            gained = ranker.state.s_hat - before
            assert gained.tolist() in ([0, 0, 0, 0], [1, 1, 1, 1])
            closed += int(gained[0])
    assert 0.9 * 4000 / max(40, n_open) <= closed <= 100


@pytest.mark.parametrize(
    "other",
    [
        rankers.FTPL(n_items=4, horizon=100),
        rankers.Uniform(n_items=4),
        rankers.Fixed(order=[3, 1, 0, 2]),
        rankers.RTop1F(n_items=3, horizon=100),
        rankers.RTop1F(n_items=5, horizon=100),
    ],
    ids=["FTPL", "Uniform", "Fixed", "fewer items", "more items"],
)
def test_the_ticket_of_another_ranker_is_refused_and_changes_nothing(other: Any) -> None:
    ranker = rankers.RTop1F(n_items=4, horizon=100)
    with refused(ranker, "ranking"):
        ranker.learn(other.rank(rng=np.random.default_rng(1)), [1.0])


def test_an_exploring_ticket_whose_front_is_no_slot_is_refused_and_changes_nothing() -> None:
    # As if issued by a ranker with k=1: on top stands one item of the slot, behind it one of another slot.
    ranker = rankers.RTop1F(n_items=4, horizon=100, k=2, measure="sum_loss")
    ticket = find(ranker, lambda shown: shown.explored)
    lie = dataclasses.replace(ticket, items=np.array([1, 2, 0, 3]))
    with refused(ranker, r"ranking|items"):
        ranker.learn(lie, [1.0, 1.0])


def _learnt(**arguments: Any) -> rankers.RTop1F:
    ranker = rankers.RTop1F(**arguments)
    rng = np.random.default_rng(7)
    for _ in range(200):
        ranker.learn(ranker.rank(rng=rng), np.ones(ranker.feedback.length(ranker.n_positions)))
    return ranker


@pytest.mark.parametrize(
    "saved",
    [
        pytest.param(_learnt(n_items=5, horizon=100).state_arrays(), id="more items"),
        pytest.param(_learnt(n_items=4, horizon=100, k=2).state_arrays(), id="fewer slots"),
        pytest.param(rankers.FTPL(n_items=4).state_arrays(), id="another ranker"),
        pytest.param({}, id="nothing"),
        pytest.param(
            {n: v.astype(np.float32) for n, v in _learnt(n_items=4, horizon=100).state_arrays().items()},
            id="float32",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(saved: State) -> None:
    ranker = _learnt(n_items=4, horizon=400)
    with refused(ranker, "saved state"):
        ranker.load(saved)


def test_a_state_without_a_horizon_is_refused_by_a_ranker_with_one() -> None:
    # Same shapes, but its epoch points beyond the only horizon there is: kernels do not check bounds.
    anytime = _learnt(n_items=2)
    assert anytime.state.epoch[0] > 0
    ranker = rankers.RTop1F(n_items=2, horizon=100)
    with refused(ranker, "epoch"):
        ranker.load(anytime.state_arrays())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", [1]),
        ("epoch", [-1]),
        ("n_open", [5]),
        ("n_open", [-1]),
        ("slots", [0, 1, 2, 9]),
        ("slots", [0, 1, 2, 2]),
        ("slots", [0, 1, 2, -1]),
        ("s_hat", [0.0, np.nan, 0.0, 0.0]),
        ("r_hat", [0.0, np.inf, 0.0, 0.0]),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(name: str, value: list[float]) -> None:
    # An index out of range would be read, and written, outside of the arrays; with NaN there is no order to show.
    ranker = _learnt(n_items=4, horizon=400)
    before = ranker.save()
    damaged = ranker.state_arrays()
    damaged[name] = np.array(value, dtype=damaged[name].dtype)
    with pytest.raises(ValueError, match=name):
        ranker.load(damaged)
    assert_same(ranker.save(), before)
