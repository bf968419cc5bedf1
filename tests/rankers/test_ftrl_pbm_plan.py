"""FTRL-PBM by a plan: the same leader as in full, the same marginals, and a state that goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from rankloop import simulation
from rankloop.base import Ranking
from rankloop.environments import PositionBased
from rankloop.kernels import list_plan
from rankloop.kernels.vectors import TERMS
from rankloop.rankers import FTRLPBM, ftrl_pbm_plan
from rankloop.rankers.ftrl_pbm import WithoutPlan
from tests.examples import refused
from tests.kernels.leader import Floats, check_chances, find
from tests.kernels.test_tsallis import by_slsqp
from tests.rankers.test_ftrl_pbm import check_leader


def people(n: int, m: int) -> PositionBased:
    return PositionBased(attraction=np.linspace(0.95, 0.05, n), examination=1 / np.arange(1, m + 1))


def played(n: int, m: int, rounds: int, seed: int = 1) -> FTRLPBM:
    ranker = FTRLPBM(n_items=n, n_positions=m)
    simulation.play(ranker, people(n, m), rounds=rounds, seed=seed, points=1)
    return ranker


def in_bulk(ranker: FTRLPBM) -> Any:
    """The items that are not followed one by one."""
    return np.flatnonzero(ranker.state.place < 0)


def polished(L: Floats, x: Floats) -> Floats:
    """Where all conditions of <x, L> - 2 sum sqrt(x) hold, from an x near by: Newton's method on all at once."""
    m, n = L.shape
    tight = np.flatnonzero(x.sum(axis=0) > 1 - 1e-5)
    sums = np.zeros((m + len(tight), m, n))
    sums[np.arange(m), np.arange(m)] = 1.0
    sums[m + np.arange(len(tight)), :, tight] = 1.0
    A = sums.reshape(len(sums), -1)
    y, found = np.zeros(len(A)), x.ravel().copy()
    for _ in range(6):
        gradient = L.ravel() - found**-0.5 + A.T @ y
        whole = np.block([[np.diag(0.5 * found**-1.5), A.T], [A, np.zeros((len(A), len(A)))]])
        step = np.linalg.solve(whole, -np.concatenate([gradient, A @ found - 1]))
        found, y = found + step[: found.size], y + step[found.size :]
    assert (y[m:] > 0).all()
    return found.reshape(m, n)


@pytest.mark.parametrize(("n", "m"), [(3, 2), (6, 2), (4, 3), (6, 3)])
def test_after_many_rounds_a_general_solver_finds_the_same_leader(n: int, m: int) -> None:
    ranker = played(n, m, 5000)
    L = ranker.state.L_hat / np.sqrt(float(ranker.state.t[0]))  # t = 1 in these units
    x = by_slsqp(1.0, L)
    np.testing.assert_allclose(ranker.x, x, rtol=0, atol=2e-6)  # SLSQP's own tolerance
    np.testing.assert_allclose(ranker.x, polished(L, x), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("n", "m"), [(10, 5), (57, 2), (100, 10), (300, 10), (2000, 4)])
def test_at_every_size_it_is_the_leader_in_full(n: int, m: int) -> None:
    ranker = FTRLPBM(n_items=n, n_positions=m)
    for seed in range(12):
        simulation.play(ranker, people(n, m), rounds=700, seed=seed, points=1)
        check_leader(ranker)
        np.testing.assert_allclose(ranker.x.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert ranker.counters() == {"solver_fallbacks": 0, "solver_inexact": 0}
    leader = find(float(ranker.state.t[0]), ranker.state.L_hat)
    np.testing.assert_allclose(ranker.x, leader.x, rtol=0, atol=1e-8)
    assert (len(in_bulk(ranker)) > 0) == (n > list_plan.slots(n, m))


def test_in_a_hundred_thousand_rounds_the_sums_do_not_drift() -> None:
    ranker = played(150, 3, 100_000)
    state = ranker.state
    rest = in_bulk(ranker)
    D = state.L_hat[:, rest] + state.edge[list_plan.ANCHOR, :3, None]
    for k in range(TERMS):
        terms = (-1) ** k * (k + 1) / D ** (k + 2)
        np.testing.assert_allclose(state.sums[:, k, -1], terms.sum(axis=1), rtol=1e-11)
        by_bin = np.stack(
            [np.bincount(-1 - state.place[rest], one, minlength=state.sums.shape[2]) for one in terms]
        )
        n_bins = state.counts[list_plan.BINS]
        np.testing.assert_allclose(state.sums[:, k, :n_bins], by_bin[:, :n_bins], rtol=1e-11)
    np.testing.assert_allclose(ranker.x.sum(axis=1), 1, rtol=0, atol=1e-9)


@numba.njit(error_model="numpy")
def _draw(params: Any, state: Any, scratch: Any, keys: Any, counts: Any) -> int:
    m = len(counts)
    items, chances = np.empty(m, np.int64), np.empty(m)
    repeated = 0
    for key in keys:
        ftrl_pbm_plan.rank(params, state, None, key, scratch, items, chances, ())
        for j in range(m):
            counts[j, items[j]] += 1
            for k in range(j):
                repeated += items[j] == items[k]
    return repeated


def scores(counts: Any, x: Floats, n_draws: int) -> Floats:
    usual = (n_draws * x > 20) & (x < 1 - 1e-9)
    found: Floats = (counts - n_draws * x)[usual] / np.sqrt(n_draws * x * (1 - x))[usual]
    return found


@pytest.mark.parametrize("listed", [True, False], ids=["by the list", "by search"])
@pytest.mark.parametrize(("n", "m", "rounds"), [(10, 5, 3000), (150, 3, 3020), (400, 4, 420)])
def test_draws_have_the_marginals(n: int, m: int, rounds: int, listed: bool) -> None:
    ranker = played(n, m, rounds)
    if not listed:
        ranker.state.counts[list_plan.MATCHINGS] = 0
    n_draws = 100_000
    keys = np.random.default_rng(n).integers(0, 2**64, n_draws, dtype=np.uint64)
    counts = np.zeros((m, n), np.int64)
    assert _draw(ranker.params, ranker.state, ranker.scratch(m), keys, counts) == 0
    z = scores(counts, ranker.x, n_draws)
    assert np.abs(z).max() <= 5
    assert np.mean(z**2) == pytest.approx(1.0, abs=5 * np.sqrt(2 / z.size) + 0.1)


def test_draws_by_the_old_chances_would_be_found_out() -> None:
    # The table of the plan, without the ratio of now and then.
    ranker = played(400, 4, 420)
    rest = in_bulk(ranker)
    then = np.diff(ranker.state.table, prepend=0.0)[:, rest]
    x = ranker.x[:, rest]
    then *= x.sum(axis=1, keepdims=True) / then.sum(axis=1, keepdims=True)
    assert np.abs(scores(100_000 * then, x, 100_000)).max() > 10


def test_items_of_which_nearly_all_chances_are_gone_are_still_drawn() -> None:
    ranker = FTRLPBM(n_items=100, n_positions=1)
    for _ in range(100):
        ranker.learn(ranker.rank(rng=np.random.default_rng(1)), [1])
    state, rng = ranker.state, np.random.default_rng(2)
    first, last = state.bounds[state.counts[list_plan.SLOT_BINS]]
    state.table[0, first:last] = (
        np.linspace(0.0, 1.0, last - first + 1)[1:] * 1e12
    )  # as if x had been as large
    shown = {int(ranker.rank(rng=rng).items[0]) for _ in range(500)}
    assert len(shown) > 50


@pytest.mark.parametrize(("n", "m"), [(10, 5), (150, 3)])
@pytest.mark.parametrize("rounds", [1, 40, 1234])
def test_a_saved_ranker_goes_on_with_the_same_bytes(n: int, m: int, rounds: int) -> None:
    ranker, again = played(n, m, rounds), FTRLPBM(n_items=n, n_positions=m)
    again.load(ranker.save())
    traces = [
        simulation.play(one, people(n, m), rounds=700, seed=5, fused=fused)
        for one, fused in ((ranker, True), (again, False))
    ]
    np.testing.assert_array_equal(traces[0].value, traces[1].value)
    for name, value in ranker.save().items():
        np.testing.assert_array_equal(again.save()[name], value, err_msg=name)


def test_a_state_of_version_1_is_taken_over() -> None:
    old, new = WithoutPlan(n_items=90, n_positions=3), FTRLPBM(n_items=90, n_positions=3)
    simulation.play(old, people(90, 3), rounds=300, seed=1, fused=False)
    saved = old.state_arrays()
    new.load(saved)
    np.testing.assert_allclose(new.x, old.x, rtol=0, atol=1e-9)
    assert new.state.t[0] == 301
    with pytest.raises(ValueError, match="saved state 'x'"):
        new.load(saved | {"x": saved["x"] * 2})


def test_losses_beyond_the_last_digit_with_items_in_bulk() -> None:
    ranker = FTRLPBM(n_items=100, n_positions=2)
    rng = np.random.default_rng(3)
    for i in range(250):  # each item comes twice at each position
        shown = Ranking(np.array([i % 100, (i + 1) % 100]), 10 ** rng.uniform(-14, -7, 2))
        ranker.learn(shown, [0, 0])
        check_chances(np.maximum(ranker.x, 1e-300), ranker.x.sum(axis=0))
        ticket = ranker.rank(rng=rng)
        np.testing.assert_allclose(ticket.propensities, ranker.x[[0, 1], ticket.items], rtol=1e-6)
    assert ranker.counters()["solver_inexact"] > 0
    ranker.load(ranker.save())


def _change(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda saved: saved | {name: change(saved[name])}


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(_change("t", lambda t: t * 0), id="round zero"),
        pytest.param(_change("v", lambda v: v - 1e6), id="multipliers that make D negative"),
        pytest.param(_change("v", lambda v: v * 1.01), id="column sums"),
        pytest.param(_change("counts", lambda counts: counts + 100), id="too many bins"),
        pytest.param(_change("counts", lambda counts: -counts), id="fewer than none"),
        pytest.param(_change("kept", lambda kept: kept + 100), id="items that are not there"),
        pytest.param(_change("kept", lambda kept: kept[::-1].copy()), id="other items"),
        pytest.param(_change("place", lambda place: place - 100), id="bins that are not there"),
        pytest.param(_change("place", lambda place: np.abs(place)), id="slots that are not there"),
        pytest.param(_change("bounds", lambda bounds: bounds + 100), id="bins beyond the items"),
        pytest.param(
            _change("bounds", lambda bounds: bounds[:, ::-1].copy()), id="bins that end before they begin"
        ),
        pytest.param(_change("matchings", lambda matchings: matchings * 0), id="a bin twice"),
        pytest.param(_change("slot_L", lambda L: L + 1.0), id="losses of the slots"),
        pytest.param(_change("slot_u", lambda u: u + 1.0), id="multipliers of the slots"),
        pytest.param(_change("slot_x", lambda x: x * 2.0), id="chances of the slots"),
        pytest.param(_change("whole", lambda whole: whole * 2.0), id="sums over bins"),
        pytest.param(_change("table", lambda table: -table), id="chances below zero"),
        pytest.param(_change("edge", lambda edge: -edge), id="no reach"),
        pytest.param(lambda saved: {k: v for k, v in saved.items() if k != "table"}, id="no table"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_and_changes_nothing(
    tamper: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    ranker = played(90, 3, 60)
    with refused(ranker, "saved state"):
        ranker.load(tamper(ranker.save()))
    ranker.load(ranker.save())
