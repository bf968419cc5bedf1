"""The interval of the lift: it covers the truth at all times at once, whoever looks whenever."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankloop.serving.log.trials import RewardSums, lift

RUNS, ROUNDS = 60, 400


def test_it_holds_at_all_times_where_a_plain_interval_does_not() -> None:
    """Two kinds of list with the same mean of 0.3, looked at after every list."""
    rng = np.random.default_rng(1)
    missed = plain_missed = 0
    for _ in range(RUNS):
        own, other = RewardSums(), RewardSums()
        rewards = (rng.random((ROUNDS, 2)) < 0.3).astype(float)
        left = plain_left = False
        for one, another in rewards.tolist():
            own.add(one)
            other.add(another)
            found = lift(own, other)
            assert found is not None
            left |= not found.low <= 0.0 <= found.high
            n = own.n
            mean = [own.total / n, other.total / n]
            reach = 1.96 * math.sqrt(sum(p * (1 - p) for p in mean) / n)
            plain_left |= n >= 30 and abs(mean[0] - mean[1]) > reach
        missed += left
        plain_missed += plain_left
    assert missed <= 0.05 * RUNS
    assert plain_missed > 0.15 * RUNS  # which is why


def test_it_finds_a_difference_that_is_there() -> None:
    rng = np.random.default_rng(2)
    own, other = RewardSums(), RewardSums()
    assert lift(own, other) is None
    for _ in range(4_000):
        own.add(float(rng.random() < 0.5))
        other.add(float(rng.random() < 0.3))
    found = lift(own, other)
    assert found is not None
    assert 0.05 < found.low < 0.2 < found.high < 0.35
    assert found.mean == pytest.approx(0.2, abs=0.03)


def test_without_lists_everything_is_possible() -> None:
    assert RewardSums().interval() == (0.5, 0.0, 1.0)
    sums = RewardSums()
    sums.add(1.0)
    assert sums.interval()[1:] == (0.0, 1.0)
