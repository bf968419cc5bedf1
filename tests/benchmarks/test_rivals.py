"""The NumPy versions of TopRank and MW tell the package's story, and the table of rates adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import rivals
from benchmarks.timing import Effort
from rankloop import environments, rankers, simulation
from tests.benchmarks.printed import printed

ROUNDS, SEEDS = 600, 30
SIZE: dict[str, Any] = {"n_items": 5, "n_positions": 3, "horizon": ROUNDS}


@pytest.mark.parametrize("name", rivals.PLAIN)
def test_numpy_tells_the_same_story(name: str) -> None:
    people = environments.PositionBased(attraction=[0.9, 0.7, 0.4, 0.2, 0.1], examination=[1.0, 0.5, 0.3])
    best, mine, theirs = people.value(people.best()), [], []
    for seed in range(SEEDS):
        people.restart()
        ranker = getattr(rankers, name)(**SIZE)
        mine.append(simulation.play(ranker, people, rounds=ROUNDS, seed=seed, points=1).total_regret)
        if seed < 6:
            plain = rivals.PLAIN[name](rng=np.random.default_rng(seed), **SIZE)
            theirs.append(best * ROUNDS - plain.play(people.clicks[0], ROUNDS))
    error = np.sqrt(np.var(mine, ddof=1) / SEEDS + np.var(theirs, ddof=1) / len(theirs))
    assert abs(np.mean(mine) - np.mean(theirs)) < 4 * error
    assert error < 0.15 * np.mean(mine), "too few seeds to tell two stories apart"


def test_rates_and_ratios_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "RANKERS", {name: rivals.RANKERS[name] for name in ("TopRank", "RankedExp3")})
    monkeypatch.setattr(rivals, "plan_seconds", lambda: 0.05)
    monkeypatch.setattr(rivals, "planned", lambda rounds: rivals.Planned(rounds, 76, 7.6, 2.0))
    found = rivals.measure(Effort(slice_seconds=0.001, laps=1), lambda _: None)
    races = [one for one in found if isinstance(one, rivals.RivalRates)]
    assert [rates.ranker for rates in races] == ["TopRank", "RankedExp3", "a plan of PMED"]
    rate = races[0].rounds_per_second
    text = printed(rivals.tables(found))
    assert f"{rate['fused'] / rate['NumPy']:.0f}x" in text
    assert "50 ms" in text
    assert "76 plans, 100 ms each" in text
    assert "missed  PMED at its default tolerance: 3.8 times" in text
    assert rate["fused"] > rate["step by step"]
