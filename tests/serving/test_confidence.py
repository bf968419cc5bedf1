"""Intervals that may be watched at any time: each step by enumeration, and the whole in simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankloop.serving.confidence import Watched, reach

RUNS = 40


def _psi(rate: float, scale: float) -> float:
    return (-math.log(1.0 - rate * scale) - rate * scale) / scale**2


@pytest.mark.parametrize("weight", [1.0, 5.0, 200.0])
@pytest.mark.parametrize("predicted", [0.0, 0.3, 1.0])
def test_each_step_is_a_supermartingale_by_enumeration(weight: float, predicted: float) -> None:
    """What is seen with a chance of 1 / weight and counts so often, for every rate that the scale allows."""
    scale = max(predicted, 1e-3)
    for liked in (0.0, 0.1, 0.5, 1.0):
        outcomes = [(liked / weight, weight), (1.0 - liked / weight, 0.0)]
        for rate in np.linspace(0.0, 0.99 / scale, 40)[1:]:
            mean = sum(
                chance * math.exp(min(rate * (x - liked) - _psi(rate, scale) * (x - predicted) ** 2, 700.0))
                for chance, x in outcomes
            )
            assert mean <= 1.0 + 1e-12


def test_with_half_of_the_cost_a_step_is_no_supermartingale() -> None:
    rate = 0.9
    means = [
        sum(0.5 * math.exp(rate * (x - 0.5) - share * _psi(rate, 0.5) * (x - 0.5) ** 2) for x in (0.0, 1.0))
        for share in (0.5, 1.0)
    ]
    assert means[0] > 1.02
    assert means[1] <= 1.0


@pytest.mark.parametrize("squares", [0.0, 3.0, 1e3, 1e7])
@pytest.mark.parametrize("scale", [-4, 0, 6])
def test_the_reach_is_where_the_mixture_is_as_large_as_the_error_allows(squares: float, scale: int) -> None:
    rates = [2.0**-i for i in range(1, 31) if 2.0 ** (scale - i) < 1.0]
    found = float(reach({scale: squares}, 0.025))
    mixture = sum(math.exp(rate * found - _psi(rate, 2.0**scale) * squares) for rate in rates) / 30
    assert 1 / 0.025 <= mixture * (1 + 1e-9) < 1.1 / 0.025
    both = float(reach({scale: squares / 2, scale + 1: squares / 2}, 0.025))
    assert both >= found * (1 - 1e-9)


def test_it_holds_at_all_times_where_a_plain_interval_does_not() -> None:
    rng = np.random.default_rng(1)
    missed = plain_missed = 0
    for _ in range(RUNS):
        sums, left, plain_left, total = Watched(), False, False, 0.0
        for n in range(1, 401):
            x = float(rng.random() < 0.3)
            total += x
            sums.add(x, 1.0 - x, 1.0)
            if n % 4 == 0:
                found = sums.bounds()
                left |= found is None or not found.low <= 0.3 <= found.high
            plain_left |= n >= 30 and abs(total / n - 0.3) > 1.96 * math.sqrt(total / n * (1 - total / n) / n)
        missed += left
        plain_missed += plain_left
    assert missed <= 0.05 * RUNS
    assert plain_missed > 0.15 * RUNS  # which is why


def test_weights_that_grow_as_exploration_fades_make_it_wide_and_not_wrong() -> None:
    """A gain of .5 that is seen ever less: the plain interval of the weighted mean misses it."""
    rng, lists = np.random.default_rng(2), 1_000
    missed = plain_missed = 0
    for _ in range(RUNS):
        sums, squares = Watched(), 0.0
        for t in range(1, lists + 1):
            chance = 1.0 / t
            seen, liked = rng.random() < chance, rng.random() < 0.5
            got = seen * liked / chance
            squares += got * got
            sums.add(got, seen * (not liked) / chance, 1.0)
        found, mean = sums.bounds(), sums.got.total / lists
        missed += found is None or not found.low <= 0.5 <= found.high
        plain_missed += abs(mean - 0.5) > 1.96 * math.sqrt(squares - lists * mean**2) / lists
        assert found is None or found.high - found.low > 0.3
    assert missed <= 0.05 * RUNS
    assert plain_missed > 0.1 * RUNS


def test_it_follows_what_changes_and_narrows() -> None:
    """The mean is of the time so far: .8 for a while, then .1."""
    rng, sums, truth, widths = np.random.default_rng(3), Watched(), 0.0, []
    for t in range(1, 20_001):
        mean = 0.8 if t <= 5_000 else 0.1
        truth += mean
        x = float(rng.random() < mean)
        sums.add(x, 1.0 - x, 1.0)
        if t in (200, 2_000, 20_000):
            found = sums.bounds()
            assert found is not None
            assert found.low <= truth / t <= found.high
            assert found.low <= found.mean <= found.high
            widths.append(found.high - found.low)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]
    assert widths[2] < 0.03


def test_without_lists_nothing_is_said() -> None:
    assert Watched().bounds() is None
    sums = Watched()
    sums.add(1.0, 0.0, 1.0)
    found = sums.bounds()
    assert found is not None
    assert found.low < 0.0 < 1.0 < found.high
