"""The parts of a plan: sums around multipliers that move, against the sums themselves; the step, against NumPy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from rankloop.kernels import list_network, list_plan
from rankloop.kernels.list_plan import REACH, add_entry, value_and_slope
from rankloop.kernels.vectors import TERMS, polynomials


@numba.njit(error_model="numpy")
def _add(sums: Any, bins: Any, D: Any) -> None:
    for i in range(len(D)):
        add_entry(sums, 0, bins[i], D[i], 1.0)


@numba.njit(error_model="numpy")
def _read(sums: Any, d: float, t: float, n_bins: int, whole: Any) -> Any:
    polynomials(sums, 0, d, t, n_bins, whole)
    return value_and_slope(sums, 0, d)


@pytest.mark.parametrize("d", [0.0, REACH, -REACH, 0.3 * REACH])
def test_the_sums_hold_within_reach(d: float) -> None:
    rng = np.random.default_rng(1)
    D, bins = 50.0 + rng.random(400) * 300.0, np.zeros(400, np.int64)
    bins[100:] = rng.integers(0, 12, 300)
    shift = d * D.min()
    sums, whole = np.zeros((1, TERMS, 16)), np.full((1, 16), np.nan)
    _add(sums, bins, D)
    _read(sums, shift, 7.0, 12, whole)
    expected = np.bincount(bins, 7.0 / (D + shift) ** 2, minlength=16)
    np.testing.assert_allclose(whole[0], expected, rtol=6e-11, atol=0)
    alone = np.zeros((1, TERMS, 1))
    _add(alone, np.zeros(400, np.int64), D)
    value, slope = _read(alone, shift, 1.0, 0, whole)
    assert value == pytest.approx((1 / (D + shift) ** 2).sum(), rel=6e-11)
    assert slope == pytest.approx((1 / (D + shift) ** 3).sum(), rel=1e-8)


def test_beyond_their_reach_they_do_not_hold() -> None:
    sums, whole = np.zeros((1, TERMS, 8)), np.zeros((1, 8))
    _add(sums, np.zeros(1, np.int64), np.array([100.0]))
    _read(sums, -20.0, 1.0, 1, whole)
    assert abs(whole[0, 0] * 80.0**2 - 1) > 1e-6


@numba.njit(error_model="numpy")
def _change(sums: Any, D: Any, which: Any, steps: Any, moved: float) -> None:
    # `moved` takes an entry out where its multiplier is now, not where the sums were taken.
    for k in range(len(which)):
        i = which[k]
        add_entry(sums, 0, 0, D[i] + moved, -1.0)
        D[i] += steps[k]
        add_entry(sums, 0, 0, D[i], 1.0)


@pytest.mark.parametrize("moved", [0.0, 1e-3], ids=["as it is", "taken out at the wrong place"])
def test_a_hundred_thousand_changes_do_not_add_up(moved: float) -> None:
    rng = np.random.default_rng(2)
    D = 100.0 + rng.random(50) * 100.0
    sums = np.zeros((1, TERMS, 1))
    _add(sums, np.zeros(50, np.int64), D)
    _change(sums, D, rng.integers(0, 50, 100_000), rng.random(100_000) * 2.0, moved)
    fresh = np.zeros((1, TERMS, 1))
    _add(fresh, np.zeros(50, np.int64), D)
    off = abs(sums[0, 0, 0] / fresh[0, 0, 0] - 1.0)
    assert (off < 1e-9) == (moved == 0.0)


@pytest.mark.parametrize("n", [1, 3, 8, 12])
@pytest.mark.parametrize("u", [1e9, 0.1])
def test_a_step_solves_its_network(n: int, u: float) -> None:
    rng = np.random.default_rng(n)
    # Conductances of very different sizes, as where x is nearly a single list.
    drain, w = 10.0 ** rng.uniform(-12, 0, n), 10.0 ** rng.uniform(-12, 0, (n + 2, n + 2))
    flow = rng.normal(size=n) * drain.min()
    blank: Any = list_plan.step_scratch(2 * n + 1, 2 * n + 1, n)
    scratch = blank._replace(
        w=w.copy(), drain=drain.copy(), du=flow.copy(), tight=rng.permutation(2 * n + 1)[:n]
    )
    list_network.eliminate(np.full(2 * n + 1, u), scratch, n, False)
    assert (scratch.du >= -u).all()
    if u == 1e9:  # nothing is in the way
        between = np.tril(w[:n, :n], -1)
        between += between.T
        laplacian = np.diag(drain + between.sum(axis=1)) - between
        np.testing.assert_allclose(laplacian @ scratch.du, flow, rtol=1e-6, atol=1e-14)


def test_what_is_no_number_stays_none() -> None:
    scratch: Any = list_plan.step_scratch(5, 5, 2)._replace(w=np.ones((4, 4)), drain=np.ones(2))
    scratch.du[:], scratch.tight[:2] = np.nan, [3, 1]
    list_network.eliminate(np.ones(5), scratch, 2, False)
    assert np.isnan(scratch.du[:2]).all()
