"""Intervals and tests against SciPy, enumeration and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from rankloop.simulation.significance import holm, mean_interval, paired_t, sign_flips


def test_the_interval_is_students() -> None:
    values = np.random.default_rng(1).normal(size=(7, 3))
    mean, low, high = mean_interval(values, level=0.9)
    for i in range(3):
        wanted = stats.t.interval(0.9, 6, loc=values[:, i].mean(), scale=stats.sem(values[:, i]))
        assert (low[i], high[i]) == pytest.approx(wanted)
        assert mean[i] == pytest.approx(values[:, i].mean())


def test_a_single_run_has_a_mean_and_no_interval() -> None:
    mean, low, high = mean_interval([[2.0, 3.0]])
    assert mean.tolist() == [2.0, 3.0]
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    assert math.isnan(paired_t([1.0]))
    assert math.isnan(sign_flips([1.0]))


def test_the_t_test_is_scipys() -> None:
    pairs = np.random.default_rng(2).normal(loc=0.4, size=9)
    assert paired_t(pairs) == pytest.approx(stats.ttest_1samp(pairs, 0.0).pvalue)


def test_differences_without_spread() -> None:
    assert paired_t([0.0, 0.0, 0.0]) == 1.0
    assert paired_t([2.0, 2.0, 2.0]) == 0.0
    assert sign_flips([0.0, 0.0, 0.0]) == 1.0
    assert sign_flips([2.0, 2.0, 2.0]) == 0.25


def test_sign_flips_are_enumerated() -> None:
    pairs = [0.3, -1.2, 2.5, 0.7, 1.1, 0.1]
    patterns = [
        abs(math.fsum(s * d for s, d in zip(signs, pairs, strict=True)))
        for signs in itertools.product((1, -1), repeat=6)
    ]
    reached = abs(math.fsum(pairs))
    assert sign_flips(pairs) == sum(sum_ >= reached - 1e-12 for sum_ in patterns) / 64


def test_sign_flips_that_are_drawn_agree_with_those_that_are_counted() -> None:
    pairs = np.random.default_rng(3).normal(loc=0.3, size=18)
    signs = 1.0 - 2.0 * (np.arange(1 << 18)[:, None] >> np.arange(18) & 1)
    exact = np.mean(np.abs(signs @ pairs) >= abs(pairs.sum()) - 1e-9)
    assert sign_flips(pairs) == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))
    assert sign_flips(pairs) == sign_flips(pairs)


def test_holms_rule() -> None:
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    found = holm([math.nan, 0.02, 0.01])
    assert math.isnan(found[0])
    assert found[1:] == [0.02, 0.02]
