"""The NumPy version of the linear bandits tells the package's story, and the table of rates adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import features
from benchmarks.numpy_features import LinearPBM
from benchmarks.timing import Effort
from rankloop import environments, rankers, simulation
from tests.benchmarks.printed import printed

ROUNDS, SEEDS = 300, 12


@pytest.mark.parametrize("name", features.KINDS)
def test_numpy_tells_the_same_story(name: str) -> None:
    rng, kappa = np.random.default_rng(1), np.array([1.0, 0.6, 0.3])
    X = rng.dirichlet(np.ones(3), size=12)
    people = environments.PositionBased(attraction=X @ [0.1, 0.4, 0.8], examination=kappa)
    best: Any = people.value(people.best()) * ROUNDS
    mine, theirs = [], []
    for seed in range(SEEDS):
        people.restart()
        ranker = getattr(rankers, name)(features=X, examination=kappa)
        mine.append(simulation.play(ranker, people, rounds=ROUNDS, seed=seed, points=1).total_regret)
        plain = LinearPBM(X, kappa, draws=features.KINDS[name], rng=np.random.default_rng(seed))
        theirs.append(best - plain.play(people.clicks[0], ROUNDS))
    error = np.sqrt((np.var(mine, ddof=1) + np.var(theirs, ddof=1)) / SEEDS)
    assert abs(np.mean(mine) - np.mean(theirs)) < 4 * error
    assert error < 0.25 * np.mean(mine), "too few seeds to tell two stories apart"


def test_rates_and_ratios_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "SIZES", (3,))
    found = features.measure(Effort(slice_seconds=0.001, laps=1), lambda _: None)
    assert [rates.ranker for rates in found] == ["LinTSPBM", "LinUCBPBM"]
    rate = found[0].rounds_per_second
    assert f"{rate[features.FUSED] / rate[features.NUMPY]:.0f}x" in printed(features.tables(found))
