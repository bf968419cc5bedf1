"""FTRL-PBM with the hybrid regulariser and with forgetting: unbiased estimates, exact leaders, and what is proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop import simulation
from rankloop.base import Ranking
from rankloop.environments import ClickMatrix, Periodic, PositionBased
from rankloop.rankers import FTRLPBM
from rankloop.rankers.ftrl_pbm import GUARD, WEIGHT
from tests.kernels.leader import check_chances
from tests.kernels.test_hybrid import Leader, check_optimal
from tests.rankers.test_ftrl_pbm import ESTIMATORS, TORTURE, ticket
from tests.rankers.test_ftrl_pbm_estimators import expected_estimate, play_on

HYBRID: dict[str, Any] = {"regulariser": "hybrid", "estimator": "mean"}


def check_hybrid_leader(ranker: FTRLPBM, rounds: float | None = None) -> None:
    """Its x is the hybrid leader, exactly, of the round that is to come; `rounds` of them are not forgotten."""
    state = ranker.state
    check_chances(state.x, state.rows)
    found = Leader(state.x, state.rows, state.u, state.v, 0, 0)
    check_optimal(WEIGHT * np.sqrt(rounds or float(state.t[0])), state.L_hat, found)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("m", "n", "rounds"), [(2, 4, 0), (2, 4, 60), (3, 3, 40), (1, 3, 500)])
def test_estimates_are_unbiased(estimator: str, m: int, n: int, rounds: int) -> None:
    ranker = FTRLPBM(n_items=n, n_positions=m, estimator=estimator, regulariser="hybrid")
    play_on(ranker, rounds, seed=1)
    losses = np.random.default_rng(2).integers(0, 2, (m, n)).astype(np.float64)
    np.testing.assert_allclose(expected_estimate(ranker, ranker.x, losses), losses, rtol=0, atol=1e-6)


@pytest.mark.parametrize("estimator", ["reduced-variance", "mean"])
@pytest.mark.parametrize("forget", [None, 50])
def test_a_baseline_ends_where_the_leader_could_not_bear_it(estimator: str, forget: int | None) -> None:
    ranker = FTRLPBM(n_items=5, n_positions=2, estimator=estimator, regulariser="hybrid", forget=forget)
    play_on(ranker, 300, seed=5)
    state, kept = ranker.save(), 1.0 if forget is None else 1 - 1 / forget
    t = float(state["t"][0])
    c = WEIGHT * np.sqrt(t if forget is None else sum(kept**s for s in range(int(t))))
    B, most = np.full((2, 5), 0.5), GUARD * c * np.sqrt(state["x"])
    if estimator == "mean":
        B = (state["lost"] * kept + 0.5) / (state["seen"] * kept + 1)
    assert (most < B).any()
    B = np.minimum(B, most)
    shown = ticket(ranker, 3, 0)
    expected = state["L_hat"] * kept + B
    expected[0, 3] += (1 - B[0, 3]) / state["x"][0, 3]
    expected[1, 0] += (0 - B[1, 0]) / state["x"][1, 0]
    ranker.learn(shown, [0, 1])
    np.testing.assert_allclose(ranker.state.L_hat, expected, rtol=1e-12)
    # The condition of the proof: no estimate takes more than a quarter off the derivative of sqrt(x).
    assert (B / (np.sqrt(state["x"]) * c) <= GUARD * (1 + 1e-12)).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 3), (2, 2), (3, 3), (2, 5), (5, 10)])
def test_every_round_follows_the_leader(m: int, n: int, estimator: str) -> None:
    ranker = FTRLPBM(n_items=n, n_positions=m, estimator=estimator, regulariser="hybrid")
    rng = np.random.default_rng(m + n)
    chances = rng.random((m, n))
    for _ in range(200):
        shown = ranker.rank(rng=rng)
        np.testing.assert_allclose(shown.propensities, ranker.x[np.arange(m), shown.items], rtol=0, atol=1e-9)
        ranker.learn(shown, rng.random(m) < chances[np.arange(m), shown.items])
        check_hybrid_leader(ranker)
    assert ranker.counters() == {"solver_fallbacks": 0, "solver_inexact": 0}


@pytest.mark.parametrize("given", [HYBRID, {**HYBRID, "forget": 100}, {"forget": 100}], ids=str)
def test_the_compiled_loop_and_single_steps_tell_the_same_story(given: dict[str, Any]) -> None:
    world = Periodic.exchanging(
        PositionBased(attraction=[0.9, 0.1, 0.5, 0.6, 0.3], examination=[1.0, 0.5, 0.2]), phase=200
    )
    rankers = [FTRLPBM(n_items=5, n_positions=3, **given) for _ in range(2)]
    for ranker, fused in zip(rankers, (True, False), strict=True):
        world.restart()
        simulation.play(ranker, world, rounds=600, seed=3, fused=fused)
    for name, value in rankers[0].save().items():
        np.testing.assert_array_equal(rankers[1].save()[name], value, err_msg=name)


@pytest.mark.parametrize("name", TORTURE)
def test_a_hundred_thousand_rounds_without_a_fallback(name: str) -> None:
    ranker, world = FTRLPBM(n_items=10, n_positions=5, **HYBRID), TORTURE[name]()
    for seed in range(5):
        simulation.play(ranker, world, rounds=20_000, seed=seed, points=1)
        check_hybrid_leader(ranker)
    assert ranker.counters() == {"solver_fallbacks": 0, "solver_inexact": 0}


@pytest.mark.parametrize("click", [0, 1], ids=["nobody clicks", "everybody clicks"])
@pytest.mark.parametrize(("m", "n"), [(5, 10), (4, 4)])
def test_users_who_are_all_alike(m: int, n: int, click: int) -> None:
    ranker = FTRLPBM(n_items=n, n_positions=m, **HYBRID)
    simulation.play(ranker, ClickMatrix(np.full((m, n), float(click))), rounds=20_000, seed=1, points=1)
    check_hybrid_leader(ranker)
    assert ranker.counters() == {"solver_fallbacks": 0, "solver_inexact": 0}


def test_a_late_click_against_all_odds_is_an_ordinary_round() -> None:
    # Every right side has an x, so nothing that is added to L_hat leaves the domain of the dual.
    ranker = FTRLPBM(n_items=5, n_positions=2, **HYBRID)
    play_on(ranker, 400, seed=6)
    item = int(ranker.x[0].argmin())
    ranker.learn(Ranking(np.array([item, (item + 1) % 5]), np.full(2, 1e-6)), np.ones(2))
    assert ranker.x[0, item] > 0.99
    assert ranker.counters()["solver_inexact"] == 0
    check_hybrid_leader(ranker)


@pytest.mark.parametrize("regulariser", ["tsallis", "hybrid"])
def test_what_is_forgotten_counts_for_less_and_less(regulariser: str) -> None:
    forget = 30
    ranker = FTRLPBM(n_items=3, n_positions=2, regulariser=regulariser, forget=forget)
    rng, L, kept = np.random.default_rng(1), np.zeros((2, 3)), 1 - 1 / forget
    for _ in range(200):
        shown = ranker.rank(rng=rng)
        clicks = rng.integers(0, 2, 2)
        L *= kept
        L[[0, 1], shown.items] += (1 - clicks) / shown.propensities
        ranker.learn(shown, clicks)
    np.testing.assert_allclose(ranker.state.L_hat, L, rtol=1e-9)
    rounds = sum(kept**s for s in range(201))
    if regulariser == "hybrid":
        check_hybrid_leader(ranker, rounds)
    else:
        D = L + ranker.state.u + ranker.state.v[:, None]
        np.testing.assert_allclose(ranker.x, rounds / D**2, rtol=1e-9)


def test_who_forgets_follows_a_change() -> None:
    before = ClickMatrix(np.eye(6)[:2] * 0.8 + 0.1)
    after = ClickMatrix(np.eye(6)[::-1][:2] * 0.8 + 0.1)
    found = {}
    for forget in (None, 1_000):
        ranker = FTRLPBM(n_items=6, n_positions=2, forget=forget, **HYBRID)
        simulation.play(ranker, before, rounds=20_000, seed=1, points=1)
        assert ranker.current().tolist() == [0, 1]
        found[forget] = simulation.play(ranker, after, rounds=5_000, seed=2, points=1).mean_value
    assert found[None] < 0.6 < 1.2 < found[1_000]


def test_the_bounds_as_they_are_derived() -> None:
    size = {"n_items": 9, "n_positions": 2}
    unit = 2 * np.sqrt(9 * 400)
    assert FTRLPBM(regulariser="hybrid", **size).regret_bound(400) == pytest.approx((1 / 2 + 8) * unit)
    for estimator in ("mean", "reduced-variance"):
        bound = FTRLPBM(regulariser="hybrid", estimator=estimator, **size).regret_bound(400)
        assert bound == pytest.approx((1 / 2 + 32 / 3) * unit)
    kept = 1 - 1 / 100
    loss = FTRLPBM(forget=100, **size).regret_bound(400)
    assert loss == pytest.approx((4 + kept) * 2 * np.sqrt(9 * 100) * (2 * kept + 2 / kept))
    mean = FTRLPBM(forget=100, **HYBRID, **size).regret_bound(400)
    stability = 8 / kept / (1 - 0.25 / kept)
    assert mean == pytest.approx((4 + kept) * 2 * np.sqrt(9 * 100) * (kept / 2 + stability))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"regulariser": "entropy"}, r"regulariser must be one of 'tsallis', 'hybrid', got 'entropy'"),
        ({"forget": 1}, r"forget must be .*at least 2, got 1"),
        ({"forget": 2.5}, r"forget must be a whole number"),
        ({"regulariser": "hybrid", "solver": "frank-wolfe"}, r"regulariser='hybrid'"),
        ({"forget": 9, "solver": "frank-wolfe"}, r"forget=9"),
    ],
    ids=str,
)
def test_arguments_that_cannot_be(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        FTRLPBM(n_items=3, **given)
