"""The leader of FTRL-PBM: against a solver that knows nothing of it, by its conditions, and where numbers end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, linear_sum_assignment

from rankloop.kernels import list_network, tsallis
from tests.kernels.leader import Floats, check_chances, check_optimal, find, instances, over_the_lists


def by_slsqp(t: float, L: Floats) -> Floats:
    """Eq. (2) as it stands: <x, L> - 2 sqrt(t) sum sqrt(x) over the hull of lists."""
    return over_the_lists(
        lambda x: (x * L.ravel()).sum() - 2 * np.sqrt(t) * np.sqrt(x).sum(),
        lambda x: L.ravel() - np.sqrt(t) / np.sqrt(x),
        L.shape,
    )


@pytest.mark.judges("2022-157", "2022-163")
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (1, 2), (1, 5), (2, 2), (2, 3), (3, 3), (2, 6), (3, 4), (4, 4), (3, 5)]
)
def test_the_leader_is_what_a_general_solver_finds(m: int, n: int) -> None:
    rng = np.random.default_rng(10 * m + n)
    for t, size in ((1.0, 0.0), (1.0, 2.0), (9.0, 30.0), (400.0, 20.0), (400.0, 200.0)):
        L = rng.random((m, n)) * size
        x = by_slsqp(t, L)
        np.testing.assert_allclose(find(t, L).x, x, rtol=0, atol=2e-6)
        np.testing.assert_allclose(find(t, L, slow=True).x, x, rtol=0, atol=2e-6)


def test_one_position_is_one_equation() -> None:
    rng = np.random.default_rng(1)
    for n in (2, 3, 10, 100):
        L, t = rng.random((1, n)) * 500.0, 1e4
        c = np.sqrt(t)

        def excess(v: float, L: Floats = L, t: float = t) -> float:
            return float((t / (L + v) ** 2).sum() - 1)

        root = brentq(excess, c - L.min(), c * np.sqrt(n) - L.min(), xtol=1e-13, rtol=1e-15)
        np.testing.assert_allclose(find(t, L).x, t / (L + root) ** 2, rtol=1e-8)


def test_what_is_known_without_solving() -> None:
    for m, n in ((1, 1), (3, 3), (2, 7), (5, 40)):
        np.testing.assert_allclose(find(3.0, np.zeros((m, n))).x, 1 / n, rtol=1e-9)  # erratum C3
    L = np.random.default_rng(2).random((3, 5)) * 40
    first = find(50.0, L)
    shifted = find(50.0, L + np.array([[7.0], [0.0], [1e3]]))  # the same for all items at a position
    np.testing.assert_allclose(shifted.x, first.x, rtol=0, atol=1e-8)
    scaled = find(50.0 * 9, 3 * L)
    np.testing.assert_allclose(scaled.x, first.x, rtol=0, atol=1e-8)
    np.testing.assert_allclose(find(50.0, L[:, ::-1].copy()).x[:, ::-1], first.x, rtol=0, atol=1e-8)
    np.testing.assert_allclose(find(50.0, L[::-1].copy()).x[::-1], first.x, rtol=0, atol=1e-8)
    square = L[:, :3].copy()
    first = find(50.0, square)
    shifted = find(50.0, square + np.array([7.0, 0.0, 300.0]))  # n = m: the same for all positions of an item
    np.testing.assert_allclose(shifted.x, first.x, rtol=0, atol=1e-8)


def test_cold_starts_of_all_kinds_end_in_a_leader() -> None:
    # Losses up to 1e12. Where they are beyond 1e5 beside sqrt(t), the last digit of D is more than the tolerance.
    slow, inexact = 0, 0
    for case in instances(2500, seed=1):
        leader = find(case.t, case.L)
        check_chances(leader.x, leader.rows)
        if leader.how < 2:
            check_optimal(case.t, case.L, leader)
        else:
            assert case.ratio > 3e4, f"{case} has an exact leader"
        slow += leader.how == 1
        inexact += leader.how == 2
    assert slow > 50, "no instance was hard enough for the slow way"
    assert inexact > 50, "no instance was beyond it"


def test_the_slow_way_finds_the_same_leader() -> None:
    for case in instances(1000, seed=2, largest=1e5):
        leader, slowly = find(case.t, case.L), find(case.t, case.L, slow=True)
        assert slowly.how == 1 or case.ratio > 3e4
        check_chances(slowly.x, slowly.rows)
        if leader.how < 2 and slowly.how < 2:
            check_optimal(case.t, case.L, slowly)
            np.testing.assert_allclose(slowly.x, leader.x, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("m", "n"), [(10, 50), (10, 300), (25, 100), (40, 40), (2, 2000)])
def test_larger_ones(m: int, n: int) -> None:
    rng = np.random.default_rng(m)
    for t, size in ((100.0, 0.1), (1e4, 1e3), (1e6, 1e6)):
        L = rng.random((m, n)) * size
        for slow in (False, True):
            leader = find(t, L, slow=slow)
            assert leader.how < 2
            check_chances(leader.x, leader.rows)
            check_optimal(t, L, leader)


def test_a_warm_start_takes_two_steps() -> None:
    rng = np.random.default_rng(3)
    L, t = rng.random((5, 10)) * 300.0, 1e5
    leader = find(t, L)
    steps = []
    for _ in range(300):
        items = rng.permutation(10)[:5]
        L[np.arange(5), items] += 1 / leader.x[np.arange(5), items] * (rng.random(5) < 0.5)
        t += 1
        leader = find(t, L, u=leader.u, v=leader.v)
        assert leader.how == 0
        check_chances(leader.x, leader.rows)
        steps.append(leader.steps)
    assert np.mean(steps) < 2.6


def test_a_row_does_not_come_and_go_for_ever() -> None:
    # Were the columns' step taken for multipliers that fall below zero, and only then are set to it, the slow way would
    # end early here: a row leaves the tight ones, the columns are off, the row comes back.
    rng = np.random.default_rng(2415)
    n = int(rng.integers(4, 13))
    m = int(rng.integers(3, n))
    L = rng.random((m, n)) * 10 * 10 ** rng.uniform(1, 4)
    leader = find(100.0, L, slow=True)
    assert leader.how == 1
    check_optimal(100.0, L, leader)


def test_beyond_the_last_digit_the_leader_is_still_next_to_the_best_list() -> None:
    rng = np.random.default_rng(4)
    for which in range(200):
        n = int(rng.integers(2, 10))
        m = n if which % 2 else int(rng.integers(1, n + 1))
        L = rng.random((m, n)) * 1e12
        leader = find(1.0, L)
        check_chances(leader.x, leader.rows)
        positions, best = linear_sum_assignment(L)
        assert (leader.x * L).sum() - L[positions, best].sum() <= 1e-3 * 1e12


@pytest.mark.parametrize(
    "L",
    [
        np.full((1, 1), 1e100),
        np.full((3, 3), 1e100),
        np.full((2, 5), 1e17),
        np.diag([1e100, 0.0, 1e100]),
        np.array([[1e100, 0.0, 1e17], [0.0, 1e12, 1.0]]),
    ],
    ids=str,
)
def test_losses_of_any_size_are_survived(L: Floats) -> None:
    leader = find(2.0, L)
    check_chances(leader.x, leader.rows)
    for _ in range(3):
        leader = find(2.0, L, u=leader.u, v=leader.v)
        check_chances(leader.x, leader.rows)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 4), (2, 3), (3, 3), (5, 5), (5, 12)])
def test_the_last_resort_moves_any_matrix_inside(m: int, n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(50):
        x = rng.random((m, n)) ** rng.integers(1, 30)
        x[0, 0] = rng.choice([np.inf, 1e30, 0.3])
        rows = np.empty(n)
        tsallis.move_inside(x, rows)
        check_chances(x, rows)


def test_the_last_resort_leaves_a_leader_where_it_is() -> None:
    for case in instances(200, seed=5, largest=1e3):
        leader = find(case.t, case.L)
        x, rows = leader.x.copy(), leader.rows.copy()
        tsallis.move_inside(x, rows)
        np.testing.assert_allclose(x, leader.x, rtol=0, atol=1e-9)


def test_newton_says_so_where_it_does_not_end() -> None:
    # Multipliers from which D is zero, or nothing at all.
    L, x, rows = np.ones((2, 4)), np.empty((2, 4)), np.empty(4)
    for v in (-1.0, np.nan, np.inf):
        scratch = list_network.new_scratch(4, 2)
        assert tsallis.newton(5.0, L, np.zeros(4), np.full(2, v), x, rows, scratch) == -1
    crowded = tsallis.newton(  # every row has a multiplier: more than there is room for
        5.0,
        np.ones((2, 40)),
        np.ones(40),
        np.full(2, 30.0),
        np.empty((2, 40)),
        np.empty(40),
        list_network.new_scratch(40, 2),
    )
    assert crowded == -1
