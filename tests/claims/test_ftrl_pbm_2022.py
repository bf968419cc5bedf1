"""What "Simultaneously learning stochastic and adversarial bandits under the PBM" (2022) asserts, as inequalities.

Reference rewards are those of an independent prototype at 1,000,000 rounds. Margins: five standard deviations of a
single run as we find them, at least 0.01. Erratum C10: growth as log T is not to be seen below 1e6 rounds, so no test
asks for it.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop import environments, simulation
from rankloop.environments import ClickMatrix, LowerBound, Periodic, PositionBased
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.rankers import FTRLPBM, Uniform
from rankloop.simulation import Trace

Floats = NDArray[np.float64]
N, M = 10, 5


def gap(size: float) -> PositionBased:
    return PositionBased(attraction=0.95 - size * np.arange(N), examination=1 / np.arange(1, M + 1))


def runs(world: ClickWorlds, rounds: int, seeds: int, estimator: str = "loss") -> list[Trace]:
    traces = []
    for seed in range(seeds):
        world.restart()
        ranker = FTRLPBM(n_items=world.n_items, n_positions=world.n_positions, estimator=estimator)
        traces.append(simulation.play(ranker, world, rounds=rounds, seed=seed, points=200))
    return traces


WORLDS: dict[str, ClickWorlds] = {
    "one population": gap(0.03),
    "rare clicks": environments.named("yandex"),  # type: ignore[dict-item]
    "halves exchanged": Periodic.exchanging(gap(0.03), phase=5000),
    "turned round": Periodic.reversing(gap(0.03), phase=20_000),
    "every other user": Periodic.reversing(gap(0.08), phase=1),
    "hardest": LowerBound(n_items=N, n_positions=M, horizon=60_000),
    "one list": ClickMatrix(np.eye(N)[:M]),
}


@pytest.mark.judges("2022-174")
@pytest.mark.parametrize("name", WORLDS)
def test_theorem_1_bounds_the_regret_at_every_round(name: str) -> None:
    # 3m + 2m log T + 6m sqrt(nT), erratum C8. The bound is on the mean; each run keeps it, with much to spare.
    for trace in runs(WORLDS[name], 60_000, seeds=3):
        bounds = [FTRLPBM(n_items=N, n_positions=M).regret_bound(int(t)) for t in trace.rounds]
        assert (trace.regret <= 0.5 * np.array(bounds)).all()
        assert trace.counters == {"solver_fallbacks": 0, "solver_inexact": 0}


@pytest.mark.judges("2022-188")
@pytest.mark.parametrize("horizon", [5_000, 60_000])
def test_theorem_3_bounds_it_from_below(horizon: int) -> None:
    world = LowerBound(n_items=N, n_positions=M, horizon=horizon)
    regrets = [trace.total_regret for trace in runs(world, horizon, seeds=8)]
    error = np.std(regrets, ddof=1) / np.sqrt(len(regrets))
    assert np.mean(regrets) - 5 * error >= world.least_regret
    assert max(regrets) <= world.delta * M * horizon  # more is not to be lost


def gaps(alpha: Floats, beta: Floats) -> Floats:
    """Definition 1, positions x items, counted from 0; beta of the position after the last is 0."""
    m, n = len(beta), len(alpha)
    beta = np.append(beta, 0.0)
    Delta = np.zeros((m, n))
    for j in range(m):
        for i in range(n):
            if j < i:
                Delta[j, i] = (beta[j] - beta[j + 1]) * (alpha[j] - alpha[i])
            elif j > i:
                Delta[j, i] = (beta[j - 1] - beta[j]) * (alpha[i] - alpha[j])
    return Delta


@pytest.mark.judges("2022-184", "2022-208")
def test_lemma_2_on_random_instances() -> None:
    rng = np.random.default_rng(1)
    least = np.inf
    for _ in range(60):
        n = int(rng.integers(2, 6))
        m = int(rng.integers(1, n + 1))
        alpha, beta = np.sort(rng.random(n))[::-1], np.sort(rng.random(m))[::-1]
        Delta, best = gaps(alpha, beta), float((alpha[:m] * beta).sum())
        for items in permutations(range(n), m):
            shown = list(items)
            lost = best - float((alpha[shown] * beta).sum())
            least = min(least, lost - 0.5 * float(Delta[np.arange(m), shown].sum()))
    assert -1e-15 <= least <= 1e-15  # erratum C9; the best list itself has no slack


@pytest.mark.judges("2022-183")
def test_lemma_1_bounds_what_every_leader_loses() -> None:
    # The self-bounding constraint, before the sum over rounds: it is linear in x.
    world = gap(0.03)
    Delta, chances = gaps(world.attraction, world.examination), world.clicks[0]
    best = float(chances[np.arange(M), np.arange(M)].sum())
    ranker = FTRLPBM(n_items=N, n_positions=M)
    for seed in range(30):
        simulation.play(ranker, world, rounds=1000, seed=seed, points=1)
        lost = best - float((chances * ranker.x).sum())
        assert lost >= 0.5 * float((Delta * ranker.x).sum())


def test_in_one_population_it_finds_the_best_list() -> None:
    world = PositionBased(attraction=[0.9, 0.7, 0.5, 0.3, 0.1], examination=[1.0, 0.6, 0.3])
    for seed in range(3):
        world.restart()
        ranker = FTRLPBM(n_items=5, n_positions=3)
        trace = simulation.play(ranker, world, rounds=50_000, seed=seed, points=10)
        np.testing.assert_array_equal(ranker.current(), [0, 1, 2])
        assert trace.regret[-1] < 4 * trace.regret[0]  # of ten times as many rounds


@cache
def long_run(name: str) -> float:
    return runs(environments.named(name), 1_000_000, seeds=1)[0].mean_value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "reference", "margin"),
    [("gap-0.03", 2.073, 0.01), ("gap-0.03-periodic-1", 1.963, 0.015), ("yandex-periodic-2", 0.844, 0.02)],
)
def test_rewards_are_those_of_the_prototype(name: str, reference: float, margin: float) -> None:
    assert long_run(name) == pytest.approx(reference, abs=margin)


@pytest.mark.parametrize("name", ["gap-0.03", "gap-0.03-periodic-1", "yandex-periodic-2"])
def test_it_learns_in_both_worlds(name: str) -> None:
    # Best of both: a third of the way at least from lists at random to the best list of each phase, everywhere.
    world = environments.named(name)
    assert isinstance(world, ClickWorlds)
    trace = simulation.play(Uniform(n_items=N, n_positions=M), world, rounds=200_000, seed=1, points=1)
    ideal = float(world.ideal(200_000)) / 200_000
    assert long_run(name) > trace.mean_value + (ideal - trace.mean_value) / 3


def test_it_follows_a_change() -> None:
    # Losses of both phases add up, so it need not find the second best list; but it leaves the first for most of it.
    still = PositionBased(attraction=[0.95, 0.6, 0.3, 0.1], examination=[1.0, 0.4])
    world = Periodic.reversing(still, phase=20_000)
    first, second = world.best_lists
    stayed = float(world.clicks[1, np.arange(2), first].sum())
    ideal = float(world.clicks[1, np.arange(2), second].sum())
    for seed in range(3):
        world.restart()
        ranker = FTRLPBM(n_items=4, n_positions=2)
        trace = simulation.play(ranker, world, rounds=40_000, seed=seed, points=20)
        assert trace.value[9] > 0.97 * world.params.best[0]
        assert trace.value[-1] > stayed + 0.6 * (ideal - stayed)


def test_baselines_help_where_clicks_are_rare() -> None:
    # Erratum C14 and its table: regret on Yandex less by 29 % (half) and 37 % (running mean) at 5e5 rounds.
    regrets = {
        estimator: np.array(
            [trace.total_regret for trace in runs(WORLDS["rare clicks"], 60_000, 16, estimator)]
        )
        for estimator in ("loss", "reduced-variance", "mean")
    }
    errors = {name: values.std(ddof=1) / np.sqrt(len(values)) for name, values in regrets.items()}
    for better in ("reduced-variance", "mean"):
        noise = np.hypot(errors["loss"], errors[better])
        assert regrets[better].mean() < 0.9 * regrets["loss"].mean() - 2 * noise
