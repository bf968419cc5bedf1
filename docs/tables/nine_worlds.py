"""Regret of FTRLPBM in the nine worlds of the 2022 paper: three sets of click probabilities, still and changing."""

from typing import Any

import numpy as np
from cells import cell, markdown, regrets

from rankloop import rankers
from rankloop.experiments.pbm_2022.setting import N_ITEMS, N_POSITIONS, WORLDS, World

ROUNDS, SEEDS = 100_000, range(1, 11)
LONG, FEW_SEEDS = 1_000_000, range(1, 3)
HYBRID = {"regulariser": "hybrid", "estimator": "mean"}
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    '`estimator="mean"`': {"estimator": "mean"},
    "hybrid and mean": HYBRID,
}


def measured(world: World, arguments: dict[str, Any], *, rounds: int, seeds: range) -> list[float]:
    """Regret of each run; ten phases in the changing worlds."""
    size = {"n_items": N_ITEMS, "n_positions": N_POSITIONS}
    return regrets(
        lambda: (rankers.FTRLPBM(**size, **arguments), world.environment(phase=rounds // 10)),
        rounds=rounds,
        seeds=seeds,
    )


def table() -> str:
    """All settings at 100,000 rounds, and the last beside the first where the first has regret."""
    rows = []
    for world in WORLDS:
        found = [measured(world, given, rounds=ROUNDS, seeds=SEEDS) for given in SETTINGS.values()]
        first, last = np.mean(found[0]), np.mean(found[-1])
        ratio = f"{last / first:.2f}" if first > 0 < last else ""
        rows.append([world.label, *map(cell, found), ratio])
    return markdown(["world", *SETTINGS, "of the defaults"], rows)


def long() -> str:
    """The hybrid at a million rounds; the other settings are in pbm-2022-estimators."""
    rows = [[world.label, cell(measured(world, HYBRID, rounds=LONG, seeds=FEW_SEEDS))] for world in WORLDS]
    return markdown(["world", "hybrid and mean"], rows)
