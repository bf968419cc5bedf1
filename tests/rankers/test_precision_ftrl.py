"""PrecisionFTRL: its solver, its sampling, its estimates, and the trap of items that are far ahead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import environments, rankers, simulation
from rankloop.base import Ranking
from rankloop.rankers import precision_ftrl


def solved(L: np.ndarray, n: int, c: float, level: float = 0.0) -> np.ndarray:
    x = np.empty(len(L))
    precision_ftrl.solve(np.asarray(L, dtype=np.float64), n, c, level, x)
    return x


def right_side(x: np.ndarray) -> np.ndarray:
    """What (L + level) / c is where this is the leader."""
    return 0.5 / np.sqrt(x) + np.log1p(-x)


def bisected(L: np.ndarray, n: int, c: float) -> np.ndarray:
    """The definition: halvings for the multiplier, and within them for each item, in the logit of x."""

    def at(level: float) -> np.ndarray:
        low, high = np.full(len(L), -60.0), np.full(len(L), 36.0)
        for _ in range(80):
            middle = (low + high) / 2
            over = right_side(1 / (1 + np.exp(-middle))) > (L + level) / c
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        return 1 / (1 + np.exp(-(low + high) / 2))

    even = c * float(right_side(np.array(n / len(L))))
    low, high = even - L.max(), even - L.min()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() > n else (low, middle)
    return at((low + high) / 2)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_the_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    n = int(rng.integers(1, m + 1))
    L = rng.random(m) * 10.0 ** rng.integers(-2, 5)
    c = 10.0 ** rng.uniform(0, 4)
    x = solved(L, n, c, level=rng.normal() * 100)
    assert x.sum() == pytest.approx(n, abs=1e-9)
    assert ((x > 0) & (x <= 1)).all()
    if n < m:
        np.testing.assert_allclose(x, bisected(L, n, c), rtol=1e-6, atol=1e-9)
        # Optimality: moving weight from j to i does not pay, where neither is all but certain.
        free = x < 1 - 1e-9
        slope = L[free] - c * right_side(x[free])
        assert np.ptp(slope) < 1e-5 * (c + np.abs(L).max())


@pytest.mark.parametrize("ahead", [10.0, 1e3, 1e6, 1e9])
def test_items_far_ahead_are_in_and_the_sum_is_still_n(ahead: float) -> None:
    # The trap: with L_i + level > 0 demanded of all items, the sum could not reach n once n items are far ahead, and
    # chances would silently shrink.
    L = np.array([0.0, 1.0, 2.0, ahead, ahead + 1, ahead + 2, ahead + 3])
    close = 1e-10 + 1e-16 * ahead  # the multiplier is as large as the lead, and rounded
    x = solved(L, 3, c=20.0)
    assert x.sum() == pytest.approx(3, abs=close)
    assert x[:3].min() > 0.5
    for n in (2, 4):
        assert solved(L, n, c=20.0).sum() == pytest.approx(n, abs=close)


def test_the_trap_in_play() -> None:
    people = environments.FixedItems(
        environments.users.bernoulli([0.95] * 3 + [0.05] * 7), measure="precision@3"
    )
    ranker = rankers.PrecisionFTRL(n_items=10, measure="precision@3")
    trace = simulation.play(ranker, people, rounds=200_000, seed=1, points=2)
    first, both = trace.regret
    assert both - first < 0.2 * first  # the second half costs next to nothing
    assert ranker.state.x.sum() == pytest.approx(3, abs=1e-9)
    assert set(ranker.current()[:3].tolist()) == {0, 1, 2}


def test_sampling_has_the_right_chances() -> None:
    ranker = rankers.PrecisionFTRL(n_items=6, measure="precision@3", k=2)
    ranker.state.L_hat[:] = [0.0, 1.0, 2.0, 3.0, 8.0, 30.0]
    ranker.state.t[0] = 20
    precision_ftrl.solve(ranker.state.L_hat, 3, precision_ftrl.weight(ranker.params, 21), 0.0, ranker.state.x)
    rng = np.random.default_rng(1)
    draws = 20_000
    at = np.zeros((6, 6))
    for _ in range(draws):
        shown = ranker.rank(rng=rng)
        at[shown.items, np.arange(6)] += 1
        np.testing.assert_allclose(shown.memo[0], ranker.state.x[shown.items[:2]])
    x = ranker.state.x
    wanted = np.column_stack(
        [np.repeat(x[:, None] / 3, 3, axis=1), np.repeat((1 - x[:, None]) / 3, 3, axis=1)]
    )
    error = np.sqrt(wanted * (1 - wanted) / draws)
    assert (np.abs(at / draws - wanted) < 5 * error + 1e-12).all()
    shown = ranker.rank(rng=rng)
    np.testing.assert_allclose(shown.propensities, wanted[shown.items, np.arange(6)], rtol=1e-9)


def test_one_step_of_learning() -> None:
    ranker = rankers.PrecisionFTRL(n_items=5, measure="precision@3", k=2, max_grade=4)
    shown = ranker.rank(rng=np.random.default_rng(3))
    ranker.learn(shown, [1.0, 4.0])
    L = np.zeros(5)
    L[shown.items[0]] = (3 / 2) * (1 - 1 / 4) / (3 / 5)
    np.testing.assert_allclose(ranker.state.L_hat, L)
    np.testing.assert_allclose(ranker.state.x, bisected(L, 3, np.sqrt(3 * 2 / 2)), rtol=1e-9)
    assert ranker.state.t[0] == 1


def test_estimates_are_unbiased() -> None:
    # Over all that may be shown: P(j is among the first k) = x_j k / n, so each estimate has the loss as its mean.
    ranker = rankers.PrecisionFTRL(n_items=5, measure="precision@2", k=1)
    ranker.state.L_hat[:] = [0.0, 3.0, 5.0, 9.0, 9.0]
    ranker.state.t[0] = 5
    precision_ftrl.solve(ranker.state.L_hat, 2, precision_ftrl.weight(ranker.params, 6), 0.0, ranker.state.x)
    saved, rng = ranker.save(), np.random.default_rng(5)
    relevance = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
    draws = 6_000
    moved = np.zeros((draws, 5))
    for i in range(draws):
        ranker.load(saved)
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, relevance[shown.items[:1]])
        moved[i] = ranker.state.L_hat - saved["L_hat"]
    error = moved.std(axis=0) / np.sqrt(draws)
    assert (np.abs(moved.mean(axis=0) - (1 - relevance)) < 5 * error + 1e-12).all()


@pytest.mark.judges("2015-023")
def test_regret_stays_below_the_bound_against_users_that_change_their_minds() -> None:
    m, n, T = 8, 3, 40_000
    phases = [np.roll([0.9] * n + [0.1] * (m - n), shift) for shift in (0, 3, 6)]
    people = environments.FixedItems(
        environments.users.switching(phases, period=5_000), measure="precision@3"
    )
    for k in (1, 3):
        people.restart()
        ranker = rankers.PrecisionFTRL(n_items=m, measure="precision@3", k=k)
        trace = simulation.play(ranker, people, rounds=T, seed=2, points=1)
        assert trace.total_regret < ranker.regret_bound(T)


def test_more_than_n_is_not_asked_for() -> None:
    assert rankers.PrecisionFTRL(n_items=9, measure="precision@3", k=7).feedback.k == 3
    with pytest.raises(ValueError, match="k must be a whole number from 1 to 9, got 10"):
        rankers.PrecisionFTRL(n_items=9, measure="precision@3", k=10)
    with pytest.raises(ValueError, match="cut-off of at most n_items=3, got 'precision@9'"):
        rankers.PrecisionFTRL(n_items=3, measure="precision@9")
    everything = rankers.PrecisionFTRL(n_items=3, measure="precision@3")
    assert everything.state.x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("measure", ["dcg", "sum_loss", "ndcg@3", "dcg@2"])
def test_other_measures_are_refused(measure: str) -> None:
    with pytest.raises(ValueError, match="measure must be precision@n"):
        rankers.PrecisionFTRL(n_items=4, measure=measure)


def test_odd_tickets_and_states_are_refused() -> None:
    ranker = rankers.PrecisionFTRL(n_items=4, measure="precision@2")
    shown = ranker.rank(rng=np.random.default_rng(1))
    for chance in (0.0, -1.0, 1.5, np.nan):
        ticket = Ranking(shown.items, shown.propensities, (np.array([chance]),))
        with pytest.raises(ValueError, match="chances in"):
            ranker.learn(ticket, [1.0])
    saved = ranker.save()
    with pytest.raises(ValueError, match="does not follow"):
        ranker.load(saved | {"x": np.array([1.0, 0.0, 0.5, 0.5])})
    with pytest.raises(ValueError, match="not be negative"):
        ranker.load(saved | {"L_hat": np.array([-1.0, 0.0, 0.0, 0.0])})


def test_the_constants_of_the_logarithm() -> None:
    """Piece by piece, as on the page: what a round costs is at most B sqrt(n / (k t)) times the sum of sqrt(x)."""
    y = np.linspace(1e-6, 1.0, 100_001)[:-1]
    for c in (2.0, 8.0, 100.0):  # in units of n / k, which c is at least twice from round 4 n / k on
        near = y[y <= 0.5]
        step = 1 / ((1 - near) * c)
        assert ((1 - near) * c * near * (np.expm1(step) - step) <= 2 * np.sqrt(2) * near / c).all()
    assert (2 * np.sqrt(1 - y[y >= 0.5]) <= 2 * np.sqrt(2) * y[y >= 0.5] + 1e-12).all()
    rng = np.random.default_rng(1)
    for _ in range(5_000):
        n, others = int(rng.integers(1, 12)), int(rng.integers(1, 12))
        y = rng.random(n) ** rng.integers(1, 9) * min(1.0, others / n)
        x = rng.random(others) ** rng.integers(1, 9)
        x *= y.sum() / x.sum()
        if x.max() <= 1:
            entropy = -(y * np.log(y)).sum()
            assert entropy <= (2 / np.e + np.log(n)) * np.sqrt(x).sum() + 1e-9
    root = np.sqrt(17 / 16)  # c rises by at most sqrt(n / k) / (2 sqrt(t - 1)) in round t
    for n in (1, 2, 5, 50):
        B = 2 + 2 * np.sqrt(2) + root / 2 * (2 + 2 / np.e + np.log(n))
        assert 6.24 + 0.52 * np.log(n) >= B
    x = np.linspace(0, 1e5, 1_000_001)
    assert (2 * 6.24 * np.sqrt(x) - 0.1 * x).max() == pytest.approx(6.24**2 / 0.1)


def test_where_users_stay_regret_is_a_logarithm_and_below_its_bound() -> None:
    gaps = [0.3] * 7
    people = environments.FixedItems(
        environments.users.bernoulli([0.65] * 3 + [0.35] * 7), measure="precision@3"
    )
    levels = []
    for seed in range(4):
        ranker = rankers.PrecisionFTRL(n_items=10, measure="precision@3")
        trace = simulation.play(ranker, people, rounds=1_000_000, seed=seed, points=100)
        levels.append(np.interp([10_000, 100_000, 1_000_000], trace.rounds, trace.regret))
    first, second, third = np.mean(levels, axis=0)
    assert third - second < 1.4 * (second - first)  # of a power, however small: T^(1/4) would give 1.8
    assert third < ranker.regret_bound(1_000_000, gaps=gaps)
    bounds = [ranker.regret_bound(10**e, gaps=gaps) for e in (7, 8, 9)]
    assert bounds[2] - bounds[1] == pytest.approx(bounds[1] - bounds[0])
    assert ranker.regret_bound(10_000, gaps=gaps) == ranker.regret_bound(10_000)
    for wrong in ([0.3] * 6, [0.3] * 6 + [0.0], [2.0] * 7, [np.nan] * 7):
        with pytest.raises(ValueError, match="gaps must be 7 numbers above 0 and at most 1"):
            ranker.regret_bound(100, gaps=wrong)
