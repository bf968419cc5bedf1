"""The hybrid leader: against a general solver and one equation, by its conditions, and where numbers end."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

from rankloop.kernels import hybrid
from rankloop.kernels.hybrid import entry
from tests.kernels.leader import Leader, check_chances, instances, over_the_lists

Floats = NDArray[np.float64]


def find(
    c: float, L: Floats, *, u: Floats | None = None, v: Floats | None = None, slow: bool = False
) -> Leader:
    m, n = L.shape
    u = np.zeros(n) if u is None else u.copy()
    v = np.full(m, c * hybrid.even_multiplier(n)) if v is None else v.copy()
    x, rows, scratch = np.empty((m, n)), np.empty(n), hybrid.new_scratch(n, m)
    steps, how = -1, 0
    if not slow:
        steps = hybrid.newton(c, L, u, v, x, rows, scratch)
    if steps < 0:
        how = hybrid.recover(c, L, u, v, x, rows, scratch)
    return Leader(x, rows, u, v, steps, how)


def value(c: float, L: Floats, x: Floats) -> float:
    rest = np.maximum(1 - x, 1e-300)
    return float((x * L).sum() + c * (-np.sqrt(x) + rest * np.log(rest)).sum())


def check_optimal(c: float, L: Floats, leader: Leader) -> None:
    """Karush, Kuhn, Tucker: x belongs to the multipliers, and those of rows that are not full are zero."""
    x, u, v = leader.x, leader.u, leader.v
    m, n = L.shape
    small = x <= 0.5
    d = (L + u + v[:, None]) / c
    left = 0.5 / np.sqrt(x) + np.log(np.maximum(1 - x, 1e-300))
    np.testing.assert_allclose(left[small], d[small], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(x[~small], -np.expm1(d[~small] - 0.5 / np.sqrt(x[~small])), rtol=1e-12)
    if n > m:
        assert (u >= 0).all()
        np.testing.assert_allclose(x.sum(axis=0)[u > 0], 1, rtol=0, atol=1e-9)


def by_slsqp(c: float, L: Floats) -> Floats:
    return over_the_lists(
        lambda x: value(c, L, x.reshape(L.shape)),
        lambda x: L.ravel() + c * (-0.5 / np.sqrt(x) - np.log(1 - x) - 1),
        L.shape,
        most=1 - 1e-9,
    )


def test_an_entry_to_the_last_digits() -> None:
    for d in (
        *np.linspace(-60, 60, 241),
        *10 ** np.linspace(-3, 9, 60),
        -1e-9,
        0.0139596,
        0.0139597,
        1.9999,
        2,
        8,
    ):
        x, h = entry(float(d))
        with mpmath.workdps(60):
            if d > 0:  # by z = 1 / (2 sqrt x)
                z = mpmath.findroot(
                    lambda z, d=d: z + mpmath.log(1 - 1 / (4 * z * z)) - mpmath.mpf(float(d)), 0.5 / x**0.5
                )
                exact, rest = 1 / (4 * z * z), 1 - 1 / (4 * z * z)
            else:  # by log y
                w = mpmath.findroot(
                    lambda w, d=d: w + 1 / (2 * mpmath.sqrt(1 - mpmath.exp(w))) - mpmath.mpf(float(d)),
                    float(d) - 0.55,
                )
                exact, rest = 1 - mpmath.exp(w), mpmath.exp(w)
            slope = 1 / (1 / (4 * exact ** mpmath.mpf(1.5)) + 1 / rest)
            assert abs(x - exact) <= 2e-15 * exact, d
            assert abs(h - slope) <= 1e-13 * slope, d


def test_an_entry_falls_with_d_and_survives_any() -> None:
    d = np.concatenate([np.linspace(-5, 12, 5001), 10 ** np.linspace(1.2, 100, 50)])
    x = np.array([entry(float(one))[0] for one in d])
    assert (np.diff(x) <= 0).all()
    for extreme in (-1e300, -800.0, 1e100):
        x, h = entry(extreme)
        assert 0 <= x <= 1
        assert h >= 0


@pytest.mark.judges("2022-176")
@pytest.mark.parametrize(("m", "n"), [(1, 2), (1, 5), (2, 2), (2, 3), (3, 3), (2, 6), (3, 4), (4, 4)])
def test_the_leader_is_what_a_general_solver_finds(m: int, n: int) -> None:
    rng = np.random.default_rng(10 * m + n)
    for c, size in ((1.0, 0.0), (1.0, 2.0), (3.0, 30.0), (20.0, 20.0), (20.0, 200.0)):
        L = rng.random((m, n)) * size
        x, leader = by_slsqp(c, L), find(c, L)
        np.testing.assert_allclose(leader.x, x, rtol=0, atol=2e-5)
        assert value(c, L, leader.x) <= value(c, L, x) + 1e-7
        np.testing.assert_allclose(find(c, L, slow=True).x, leader.x, rtol=0, atol=1e-8)


def test_one_position_is_one_equation() -> None:
    rng = np.random.default_rng(1)
    for n in (2, 3, 10, 100):
        L, c = rng.random((1, n)) * 500.0, 50.0

        def chances(v: float, L: Floats = L, c: float = c) -> Floats:
            return np.array([entry((loss + v) / c)[0] for loss in L[0]])

        root = brentq(lambda v, f=chances: f(v).sum() - 1, -L.max() - 40 * c, c * n, xtol=1e-12, rtol=1e-15)
        np.testing.assert_allclose(find(c, L).x[0], chances(root), rtol=1e-8)


def test_what_is_known_without_solving() -> None:
    for m, n in ((1, 1), (3, 3), (2, 7), (5, 40)):
        np.testing.assert_allclose(find(3.0, np.zeros((m, n))).x, 1 / n, rtol=1e-9)
    L = np.random.default_rng(2).random((3, 5)) * 40
    first = find(7.0, L)
    for moved, back in (
        (L + np.array([[7.0], [0.0], [1e3]]), slice(None)),  # the same for all items at a position
        (L[:, ::-1].copy(), (slice(None), slice(None, None, -1))),
        (L[::-1].copy(), slice(None, None, -1)),
    ):
        np.testing.assert_allclose(find(7.0, moved).x[back], first.x, rtol=0, atol=1e-8)
    np.testing.assert_allclose(find(21.0, 3 * L).x, first.x, rtol=0, atol=1e-8)


def test_cold_starts_of_all_kinds_end_in_a_leader() -> None:
    # Losses up to 1e12. Where they are beyond 1e5 beside c, the last digit of L is more than the tolerance allows.
    slow, inexact = 0, 0
    for case in instances(1500, seed=1):
        c = float(np.sqrt(case.t))
        leader = find(c, case.L)
        check_chances(leader.x, leader.rows)
        if leader.how < 2:
            check_optimal(c, case.L, leader)
        else:
            assert case.ratio > 1e5, f"{case} has an exact leader"
        slow += leader.how == 1
        inexact += leader.how == 2
    assert slow > 50, "no instance was hard enough for the slow way"
    assert inexact > 20, "no instance was beyond it"


@pytest.mark.parametrize(("m", "n"), [(10, 50), (25, 100), (40, 40), (2, 2000)])
def test_larger_ones(m: int, n: int) -> None:
    rng = np.random.default_rng(m)
    for c, size in ((10.0, 0.1), (100.0, 1e3), (1e3, 1e6)):
        L = rng.random((m, n)) * size
        leader = find(c, L)
        assert leader.how < 2
        check_chances(leader.x, leader.rows)
        check_optimal(c, L, leader)


def test_rows_whose_multipliers_would_fall_below_zero_are_let_go() -> None:
    # All positions are alike, so the best m items share them evenly and every one of their rows is full. Were the
    # multipliers only cut off at zero, no step would lead on from here.
    for m, n, size in ((4, 5, 376.0), (7, 10, 908.0), (3, 7, 5473.0)):
        L = np.tile(np.linspace(0.0, size, n), (m, 1))
        leader = find(1.0, L)
        assert leader.how < 2
        check_optimal(1.0, L, leader)
        best = np.argsort(L[0])[:m]
        np.testing.assert_allclose(leader.x[:, best], 1 / m, rtol=0.02)


@pytest.mark.judges("2022-176")
def test_a_warm_start_takes_few_steps_and_never_the_slow_way() -> None:
    rng = np.random.default_rng(3)
    L, t = rng.random((5, 10)) * 300.0, 1e4
    leader = find(0.5 * np.sqrt(t), L)
    steps = []
    for _ in range(500):
        items = rng.permutation(10)[:5]
        # As large as a baseline's share may be, of either sign.
        change = rng.uniform(-0.125, 1, 5) * 0.5 * np.sqrt(t / leader.x[np.arange(5), items])
        L[np.arange(5), items] += np.where(rng.random(5) < 0.5, change, 0.0)
        t += 1
        leader = find(0.5 * np.sqrt(t), L, u=leader.u, v=leader.v)
        assert leader.how == 0
        check_chances(leader.x, leader.rows)
        steps.append(leader.steps)
    assert np.mean(steps) < 5


@pytest.mark.parametrize(
    "L",
    [
        np.full((1, 1), 1e100),
        np.full((3, 3), 1e100),
        np.diag([1e100, 0.0, 1e100]),
        np.array([[1e100, 0.0, 1e17], [0.0, 1e12, 1.0]]),
    ],
    ids=str,
)
def test_losses_of_any_size_are_survived(L: Floats) -> None:
    leader = find(2.0, L)
    for _ in range(3):
        leader = find(2.0, L, u=leader.u, v=leader.v)
        check_chances(leader.x, leader.rows)


def test_newton_says_so_where_it_does_not_end() -> None:
    for v in (np.nan, np.inf):
        x, rows = np.empty((2, 4)), np.empty(4)
        assert (
            hybrid.newton(2.0, np.ones((2, 4)), np.zeros(4), np.full(2, v), x, rows, hybrid.new_scratch(4, 2))
            == -1
        )
