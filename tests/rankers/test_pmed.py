"""PMED: its plan rules out every alternative, and its queue shows what the plan asks for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from rankloop import environments, rankers, simulation
from rankloop.base import Ranking
from rankloop.rankers import pmed, pmed_plan


def kl(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    q = np.clip(q, 1e-12, 1 - 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0, p * np.log(p / q), 0.0)
        second = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return first + second


def model_of(theta: np.ndarray, kappa: np.ndarray, *, noise: float = 0.0, seed: int = 1) -> pmed_plan.Model:
    rng = np.random.default_rng(seed)
    N = np.full((len(kappa), len(theta)), 1e6)
    S = np.outer(kappa, theta) * N
    S = np.clip(S * (1 + noise * rng.standard_normal(S.shape)), 0, N)
    return pmed_plan.read_model(theta, kappa, S, N, np.argsort(-theta))


def alternatives(model: pmed_plan.Model, seed: int, tries: int) -> np.ndarray:
    """Distances q must tell, coefficient by coefficient, of alternatives drawn anywhere: an independent search."""
    rng = np.random.default_rng(seed)
    m, n = model.mu.shape
    c, order, found = np.exp(model.log_c), model.order, []
    for _ in range(tries):
        spread = 10.0 ** rng.uniform(-4, 0)
        theta = np.clip(model.theta * np.exp(spread * rng.standard_normal(n)), 1e-6, 1.0)
        theta[order[0]] = model.theta[order[0]]
        rival = int(rng.integers(1, n))
        theta[order[rival]] = theta[order[min(rival - 1, m - 1)]]
        kappa = c / theta[order[:m]]
        if (np.diff(kappa) > 1e-12).any():
            continue
        row = kl(model.mu, np.outer(kappa, theta))
        row[np.arange(m), order[:m]] = 0.0
        found.append(row)
    return np.array(found)


@pytest.mark.judges("2022-197")
@pytest.mark.parametrize(
    ("theta", "kappa", "noise"),
    [
        ([0.9, 0.7, 0.5, 0.3], [1.0, 0.5], 0.0),
        ([0.5, 0.9, 0.2, 0.7, 0.6], [1.0, 0.6, 0.3], 0.02),
        ([0.3, 0.2, 0.1], [1.0, 0.9, 0.2], 0.0),
        ([0.8, 0.6, 0.4], [1.0], 0.0),
    ],
)
def test_the_plan_meets_its_constraint_against_alternatives_from_anywhere(
    theta: list[float], kappa: list[float], noise: float
) -> None:
    model = model_of(np.array(theta), np.array(kappa), noise=noise)
    m, n = model.mu.shape
    plan = pmed_plan.make_plan(model, np.full((n, m), np.nan), tolerance=0.01)
    assert plan.share >= 0.99
    rows = alternatives(model, seed=2, tries=6_000)
    assert len(rows) > 200
    assert np.einsum("vji,ji->v", rows, plan.q).min() >= 1 - 1e-6
    total = plan.q.sum(axis=1)
    np.testing.assert_allclose(total, total[0], rtol=1e-6)
    assert plan.q.sum(axis=0).max() <= total[0] * (1 + 1e-6)


@pytest.mark.judges("2022-197")
def test_one_position_is_the_bound_for_a_bandit() -> None:
    # Lai and Robbins: item i must be seen 1 / d(mu_i, mu_best) log t times, and no item more.
    theta = np.array([0.8, 0.6, 0.4])
    plan = pmed_plan.make_plan(model_of(theta, np.array([1.0])), np.full((3, 1), np.nan), tolerance=1e-3)
    np.testing.assert_allclose(plan.q[0, 1:], 1 / kl(theta[1:], theta[0]), rtol=1e-3)


def test_the_derivatives_are_those_of_the_distance() -> None:
    model = model_of(np.array([0.9, 0.7, 0.5, 0.3, 0.2]), np.array([1.0, 0.5, 0.3]), noise=0.05)
    q = np.random.default_rng(3).random((3, 5)) * 100
    theta, kappa, slope, bend = np.empty(5), np.empty(3), np.empty(3), np.empty((3, 3))
    x = np.log([0.9, 0.72, 0.55])
    for rival in (3, 4):

        def at(y: np.ndarray, rival: int = rival) -> tuple[float, np.ndarray, np.ndarray]:
            value = pmed_plan.distance(
                y, rival, q, model.mu, model.log_c, model.order, theta, kappa, slope, bend
            )
            return value, slope.copy(), bend.copy()

        _, by_x, twice = at(x)
        for j in range(3):
            step = 1e-6 * np.eye(3)[j]
            more, less = at(x + step), at(x - step)
            assert (more[0] - less[0]) / 2e-6 == pytest.approx(by_x[j], rel=1e-5, abs=1e-4)
            np.testing.assert_allclose((more[1] - less[1]) / 2e-6, twice[j], rtol=1e-4, atol=1e-3)


def nearest_by_scipy(model: pmed_plan.Model, rival: int, q: np.ndarray) -> float:
    """The least distance as SLSQP finds it from several starts, without derivatives: slow and independent."""
    m, n = q.shape
    order, c = model.order, np.exp(model.log_c)

    def whole(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = np.empty(n)
        theta[order[0]] = model.theta[order[0]]
        theta[order[1:]] = np.exp(y)
        theta[order[rival]] = theta[order[min(rival - 1, m - 1)]]
        return theta, c / theta[order[:m]]

    def value(y: np.ndarray) -> float:
        theta, kappa = whole(y)
        cells = q * kl(model.mu, np.outer(kappa, theta))
        cells[np.arange(m), order[:m]] = 0.0
        return float(cells.sum())

    falls = {"type": "ineq", "fun": lambda y: -np.diff(np.log(whole(y)[1]))}
    found = np.inf
    for start in (np.log(model.theta[order[1:]]), np.full(n - 1, np.log(0.5))):
        bounds = [(-14.0, -1e-9)] * (n - 1)
        done = minimize(
            value,
            start,
            method="SLSQP",
            bounds=bounds,
            constraints=[falls],
            options={"maxiter": 500, "ftol": 1e-12},
        )
        if np.diff(np.log(whole(done.x)[1])).max(initial=-1.0) < 1e-9:
            found = min(found, value(done.x))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_nearest_alternative_is_as_near_as_an_independent_search_finds(seed: int) -> None:
    """A barrier that stopped a hundred times earlier would be found out, as would a wrong second derivative."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    m = min(m, n)
    theta, kappa = 0.1 + 0.8 * rng.random(n), np.sort(0.1 + 0.8 * rng.random(m))[::-1].copy()
    kappa[0] = 1.0
    model = model_of(theta, kappa, noise=0.05, seed=seed)
    q = rng.exponential(size=(m, n))
    for rival in range(1, n):
        value, x = pmed_plan.nearest(model, rival, q)
        expected = nearest_by_scipy(model, rival, q)
        assert value <= expected + 1e-6
        if np.isfinite(expected):
            assert value >= expected - 1e-4 * max(expected, 1.0)  # where that search ended a little too high
        assert np.diff(model.log_c - x).max(initial=-1.0) <= 1e-12, "examinations rise"


def test_a_start_nowhere_near_a_bound_gives_the_same_as_one_on_it() -> None:
    """Attractions of nearly 1 and nearly 0, equal examinations, no displays at all: there is always an answer."""
    for theta, kappa in (
        ([1.0, 0.5, 1e-9], [1.0, 1.0]),
        ([1.0, 1.0, 1.0], [1.0, 1e-9, 1e-9]),
        ([1e-9, 1e-9], [1.0, 1.0]),
    ):
        model = model_of(np.array(theta), np.array(kappa))
        for q in (
            np.zeros((len(kappa), len(theta))),
            np.ones((len(kappa), len(theta))),
            np.full((len(kappa), len(theta)), 1e9),
        ):
            for rival in range(1, len(theta)):
                value, x = pmed_plan.nearest(model, rival, q)
                assert value >= 0
                assert np.isfinite(x).all()


def test_equal_items_are_taken_to_be_apart() -> None:
    model = model_of(np.array([0.5, 0.5, 0.5, 0.0]), np.array([1.0, 1.0]))
    assert np.diff(np.sort(model.theta)).min() >= 0.999e-3
    plan = pmed_plan.make_plan(model, np.full((4, 2), np.nan), tolerance=0.05)
    assert plan.share >= 0.95
    assert np.isfinite(plan.q).all()


def test_items_that_were_always_clicked_have_a_plan() -> None:
    N = np.full((1, 3), 4.0)
    model = pmed_plan.read_model(np.ones(3), np.ones(1), N, N, np.arange(3))
    plan = pmed_plan.make_plan(model, np.full((3, 1), np.nan), tolerance=0.05)
    assert np.isfinite(plan.q).all()
    assert plan.share >= 0.95


def test_where_an_alternative_fits_what_was_seen_the_fitted_rates_are_used() -> None:
    # As fitted, item 0 is best; but where the two exchanged places item 1 was clicked as if it were.
    model = model_of(np.array([0.6, 0.5, 0.1]), np.array([1.0, 0.5]))
    contradicted = model._replace(mu=np.array([[0.6, 0.6, 0.1], [0.25, 0.25, 0.05]]))
    plan = pmed_plan.make_plan(contradicted, np.full((3, 2), np.nan), tolerance=0.05)
    assert np.isfinite(plan.q).all()
    rows = alternatives(model, seed=5, tries=5000)
    assert np.einsum("vji,ji->v", rows, plan.q).min() >= 0.95


def test_every_plan_of_a_run_meets_its_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = []
    make = pmed_plan.make_plan

    def kept(model: pmed_plan.Model, starts: np.ndarray, *, tolerance: float) -> pmed_plan.Plan:
        plans.append((model, make(model, starts, tolerance=tolerance)))
        return plans[-1][1]

    monkeypatch.setattr(pmed_plan, "make_plan", kept)
    people = environments.PositionBased(attraction=[0.8, 0.6, 0.5, 0.3], examination=[1.0, 0.5])
    ranker = rankers.PMED(n_items=4, n_positions=2, growth=2.0)
    trace = simulation.play(ranker, people, rounds=3000, seed=1, points=10)
    assert trace.counters["plans"] == len(plans) >= 9
    assert trace.counters["plans_inexact"] == 0
    for model, plan in plans:
        rows = alternatives(model, seed=4, tries=600)
        assert np.einsum("vji,ji->v", rows, plan.q).min() >= 1 - 1e-6
    assert ranker.current().tolist() == [0, 1]
    assert trace.total_regret < 350


def test_warm_starts_save_linear_programs() -> None:
    theta, kappa = 0.95 - 0.03 * np.arange(6), 1 / np.arange(1, 4)
    cold = pmed_plan.make_plan(model_of(theta, kappa), np.full((6, 3), np.nan), tolerance=0.01)
    warm = pmed_plan.make_plan(model_of(theta + 1e-4, kappa), cold.starts, tolerance=0.01)
    assert warm.programs < cold.programs


def ready() -> rankers.PMED:
    """After the first loop, with a plan by hand and everything seen often enough not to be forced."""
    ranker = rankers.PMED(n_items=3, n_positions=2, growth=10.0, every=10**6)
    state = ranker.state
    state.t[0] = 100
    state.due[0] = 10**6
    state.N[...] = 50
    state.S[...] = [[40, 30, 10], [20, 15, 5]]
    state.theta[...] = [0.8, 0.6, 0.2]
    state.n_plan[0] = 2
    state.plan[:2] = [[1, 0], [2, 0]]
    return ranker


def test_the_queue_holds_what_the_plan_still_lacks_and_the_best_list() -> None:
    ranker = ready()
    log_t = math.log(100)
    ranker.state.required[:2] = [
        60 / log_t,
        10 / log_t,
    ]  # (1, 0) lacks displays; (2, 0) then has none left of 0 below
    pmed.fill(ranker.params, ranker.state, ranker.scratch(2))
    n = int(ranker.state.n_queue[0])
    assert ranker.state.queue[:n].tolist() == [[1, 0], [2, 0], [0, 1]]
    ranker.state.required[:2] = [20 / log_t, 10 / log_t]
    pmed.fill(ranker.params, ranker.state, ranker.scratch(2))
    n = int(ranker.state.n_queue[0])
    assert ranker.state.queue[:n].tolist() == [[0, 1]], "nothing is lacking"


def test_lists_seen_too_seldom_are_forced() -> None:
    ranker = ready()
    ranker.state.n_plan[0] = 0
    ranker.state.N[1, 0] = (
        2  # alpha sqrt(log 100) = 2.15; item 0 at position 1 is in the circular list (2, 0)
    )
    ranker.state.S[1, 0] = 1
    ranker.state.N[0, 1], ranker.state.S[0, 1] = 3, 2  # often enough
    pmed.fill(ranker.params, ranker.state, ranker.scratch(2))
    assert ranker.state.queue[: ranker.state.n_queue[0]].tolist() == [[2, 0], [0, 1]]


def test_the_queue_is_shown_in_random_order_and_each_list_once() -> None:
    ranker = rankers.PMED(n_items=5, n_positions=2)
    rng, shown = np.random.default_rng(1), []
    for left in range(5, 0, -1):
        ranking = ranker.rank(rng=rng)
        np.testing.assert_allclose(ranking.propensities, 1 / left)
        shown.append(tuple(ranking.items.tolist()))
        ranker.learn(ranking, [1, 0])
    assert sorted(shown) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]


def test_a_list_that_is_no_longer_waited_for_is_only_counted() -> None:
    ranker = rankers.PMED(n_items=4, n_positions=2)
    ticket = ranker.rank(rng=np.random.default_rng(1))
    ranker.learn(ticket, [1, 0])
    before = ranker.save()
    ranker.learn(ticket, [1, 0])
    assert ranker.state.n_queue[0] == before["n_queue"][0] == 3
    assert ranker.state.N.sum() == before["N"].sum() + 2


def test_plans_come_when_the_rounds_have_grown_by_the_factor() -> None:
    people = environments.PositionBased(attraction=[0.8, 0.5, 0.2], examination=[1.0, 0.5])
    ranker = rankers.PMED(n_items=3, n_positions=2, growth=2.0, every=5)
    dues = [int(ranker.state.due[0])]
    for seed in range(100):
        simulation.play(ranker, people, rounds=1, seed=seed)
        if ranker.state.due[0] != dues[-1]:
            dues.append(int(ranker.state.due[0]))
    assert dues == [3, 8, 16, 32, 64, 128]


def test_with_fitted_rates_plans_do_not_depend_on_noise_off_the_best_list() -> None:
    theta, kappa = np.array([0.8, 0.6, 0.5, 0.3]), np.array([1.0, 0.5])
    costs = {"seen": [], "fitted": []}
    for seed in range(4):
        model = model_of(theta, kappa, noise=0.02, seed=seed)
        best = theta[:2] * kappa
        for rates, found in costs.items():
            given = model.smoothed() if rates == "fitted" else model
            plan = pmed_plan.make_plan(given, np.full((4, 2), np.nan), tolerance=0.01)
            found.append(float((plan.q * (best[:, None] - np.outer(kappa, theta))).sum()))
    assert np.ptp(costs["fitted"]) < 0.02 * np.mean(costs["fitted"])
    assert np.ptp(costs["seen"]) > 0.1 * np.mean(costs["seen"])


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="rates must be one of 'seen', 'fitted', got 'guessed'"):
        rankers.PMED(n_items=3, rates="guessed")
    for argument, value in (("alpha", -1), ("growth", 0.9), ("every", 0), ("tolerance", 0), ("refit", 0)):
        with pytest.raises(ValueError, match=f"{argument} must be"):
            rankers.PMED(n_items=3, **{argument: value})
    ranker = rankers.PMED(n_items=3)
    with pytest.raises(ValueError, match="must count lists"):
        ranker.load(ranker.save() | {"n_queue": np.array([0])})
    with pytest.raises(ValueError, match="'queue' must name items below 3"):
        ranker.load(ranker.save() | {"queue": ranker.state.queue + 9})
    with pytest.raises(ValueError, match="'due' must be after"):
        ranker.load(ranker.save() | {"due": np.array([0])})
    with pytest.raises(ValueError, match="propensities"):
        ranker.learn(Ranking(np.arange(3)), [0, 0, 0])
