"""The KL-UCB index against a root finder."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq

from rankloop.kernels.click_counts import log_level, upper_bound


def kl(p: float, q: float) -> float:
    return (p * math.log(p / q) if p > 0 else 0.0) + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


@pytest.mark.parametrize("mean", [0.0, 1e-3, 0.2, 0.5, 0.97])
@pytest.mark.parametrize("n", [1.0, 7.0, 1e3, 1e7])
@pytest.mark.parametrize("level", [0.01, 2.0, 20.0])
def test_the_index_is_that_of_a_root_finder(mean: float, n: float, level: float) -> None:
    high = 1 - 1e-16
    expected = (
        1.0
        if n * kl(mean, high) <= level
        else brentq(lambda q: n * kl(mean, q) - level, mean, high, xtol=1e-15)
    )
    assert upper_bound(mean, n, level) == pytest.approx(expected, abs=1e-9)


def test_the_index_at_its_ends() -> None:
    assert upper_bound(0.3, 0.0, 1.0) == 1.0
    assert upper_bound(1.0, 5.0, 1.0) == 1.0
    assert upper_bound(0.3, 5.0, 0.0) == 0.3
    assert log_level(1.0) == 0.0
    assert log_level(1000.0) == pytest.approx(math.log(1000) + 3 * math.log(math.log(1000)))
