"""The interval of the lift: it holds at all times at once, under drift and after a promotion."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.serving.confidence import Watched
from rankloop.serving.log.candidate_lists import TrialSums

RUNS, LISTS, LOOK = 100, 1_000, 100


def _pooled(own: Watched, other: Watched) -> tuple[float, float]:
    """The wrong version: the mean of all lists of the one kind less that of all of the other, whenever they were."""
    one, two = own.bounds(0.025), other.bounds(0.025)
    if one is None or two is None:
        return -1.0, 1.0
    return one.low - two.high, one.high - two.low


def _runs(
    *, promoted: bool, drift: bool, better: float = 0.0, runs: int = RUNS
) -> tuple[int, int, int, TrialSums]:
    """How often the interval, and the pooled one, left out the truth at any look, and how often it told which."""
    missed = pooled_missed = told = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, promoted, drift])
        sums, own, other = TrialSums(since=0), Watched(), Watched()
        left = pooled_left = False
        for t in range(LISTS):
            share = 0.9 if promoted and t >= LISTS // 2 else 0.1 if promoted else 0.5
            liked = (0.6 if t >= LISTS // 2 else 0.2) if drift else 0.3
            shows_ranker = bool(rng.random() < share)
            reward = float(rng.random() < liked + better * shows_ranker)
            sums.count(reward, share, shows_ranker=shows_ranker)
            (own if shows_ranker else other).add(reward, 1.0 - reward, 1.0)
            if t % LOOK == LOOK - 1:
                found, (low, high) = sums.lift(), _pooled(own, other)
                left |= found is None or not found.low <= better <= found.high
                pooled_left |= not low <= better <= high
        missed += left
        pooled_missed += pooled_left
        told += found is not None and found.low > 0.0
    return missed, pooled_missed, told, sums


@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize("promoted", [False, True])
def test_identical_lists_are_told_apart_in_at_most_five_of_a_hundred_runs(
    promoted: bool, drift: bool
) -> None:
    missed, pooled_missed, _, sums = _runs(promoted=promoted, drift=drift)
    assert missed <= 5
    assert sums.difference.n == LISTS
    if promoted and drift:
        assert pooled_missed > 70  # the means of different times: which is why


def test_it_finds_a_difference_that_is_there_under_drift_and_promotion() -> None:
    missed, _, told, sums = _runs(promoted=True, drift=True, better=0.4, runs=20)
    assert missed <= 1
    assert told >= 18
    lift = sums.lift()
    assert lift is not None
    assert -1.0 <= lift.low <= lift.mean <= lift.high <= 1.0


def test_lists_that_no_coin_chose_say_nothing() -> None:
    sums = TrialSums(since=0)
    for chance in (0.0, 1.0):
        sums.count(1.0, chance, shows_ranker=chance == 1.0)
    assert sums.lift() is None
    assert (sums.ranker.n, sums.baseline.n) == (1, 1)


def test_a_small_holdout_is_weighed_by_its_chance() -> None:
    """By enumeration: the mean of what counts is the difference, for any chance and whatever was seen before."""
    for chance in (0.02, 0.5, 0.98):
        mean = 0.0
        for shows_ranker, coin in ((True, chance), (False, 1.0 - chance)):
            for reward, of_ranker, of_baseline in ((1.0, 0.7, 0.4), (0.0, 0.3, 0.6)):
                sums = TrialSums(since=0)
                sums.count(0.25, 0.0, shows_ranker=False)
                sums.count(reward, chance, shows_ranker=shows_ranker)
                mean += coin * (of_ranker if shows_ranker else of_baseline) * sums.difference.got.total
        assert mean == pytest.approx(0.3)
