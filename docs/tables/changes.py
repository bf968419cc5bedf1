"""What PBMTS does where users change, beside FTRLPBM."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from cells import cell, markdown, regrets
from numpy.typing import NDArray

from rankloop import environments, rankers, simulation
from rankloop.base import Environment, Ranker

ROUNDS, PHASE, SEEDS = 200_000, 50_000, range(1, 11)
STILL = environments.named("gap-0.03")
ITEMS_REVERSED = environments.ClickMatrix(STILL.clicks[0][:, ::-1])
POSITIONS_REVERSED = environments.ClickMatrix(STILL.clicks[0][::-1])
# Items that are not shown get better, and nothing changes for those that are.
BEFORE = np.linspace(0.6, 0.48, 5)
UNSHOWN = [
    environments.PositionBased(attraction=[*BEFORE, *others], examination=STILL.examination)
    for others in (BEFORE - 0.27, BEFORE + 0.33)
]
WORLDS: dict[str, Callable[[int], Environment]] = {
    "halves of the items exchanged": lambda phase: environments.Periodic.exchanging(STILL, phase=phase),
    "items reversed": lambda phase: environments.Periodic([STILL, ITEMS_REVERSED], phase=phase),
    "positions reversed": lambda phase: environments.Periodic([STILL, POSITIONS_REVERSED], phase=phase),
    "items and positions reversed": lambda phase: environments.Periodic.reversing(STILL, phase=phase),
    "items left out get better, the others stay": lambda phase: environments.Periodic(UNSHOWN, phase=phase),
}
TRACED = ("halves of the items exchanged", "items and positions reversed")
PHASES = (1_000, 10_000, 50_000, 100_000)
RANKERS: dict[str, Callable[[], Ranker]] = {
    "PBMTS": lambda: rankers.PBMTS(n_items=10, n_positions=5),
    "FTRLPBM": lambda: rankers.FTRLPBM(n_items=10, n_positions=5),
    "Uniform": lambda: rankers.Uniform(n_items=10, n_positions=5),
}


def table() -> str:
    """Regret by kind of change and length of a phase."""
    rows = []
    for world, change in WORLDS.items():
        for phase in PHASES:

            def measured(
                name: str, *, change: Callable[[int], Environment] = change, phase: int = phase
            ) -> str:
                return cell(regrets(lambda: (RANKERS[name](), change(phase)), rounds=ROUNDS, seeds=SEEDS))

            rows.append([world, f"{phase:,}", *map(measured, RANKERS)])
    return markdown(["change", "every", *RANKERS], rows)


def phases() -> str:
    """PBMTS phase by phase: clicks of its lists, and how many items of the second half a list has."""
    rows = []
    for world in TRACED:
        runs = np.array([[part.clicks for part in _run(WORLDS[world](PHASE), seed)] for seed in SEEDS])
        rows.extend(
            [world, str(phase + 1), *(cell(column, digits=3) for column in runs[:, phase].T)]
            for phase in range(ROUNDS // PHASE)
        )
    return markdown(["change", "phase", "clicks, first tenth", "last tenth", "items 6 to 10 in a list"], rows)


def beliefs() -> str:
    """What PBMTS takes for true after one phase and after two, and where it has seen the second half of the items."""
    rows = []
    for world in TRACED:
        runs = [_run(WORLDS[world](PHASE), seed)[:2] for seed in SEEDS]
        for phase in range(2):
            parts = [run[phase] for run in runs]
            theta = np.mean([part.theta for part in parts], axis=0)
            rows.append(
                [
                    world,
                    str(phase + 1),
                    _listed(theta[:5]),
                    _listed(theta[5:]),
                    _listed(np.mean([part.kappa for part in parts], axis=0)),
                    _listed(np.mean([part.seen for part in parts], axis=0), digits=0),
                ]
            )
    head = ["change", "after phase", "θ of items 1 to 5", "θ of items 6 to 10", "κ", "items 6 to 10 seen at"]
    return markdown(head, rows)


class _Part(NamedTuple):
    """The end of a phase."""

    clicks: tuple[
        float, float, float
    ]  # of its first and its last tenth, and items of the second half in a list
    theta: NDArray[np.float64]
    kappa: NDArray[np.float64]
    seen: NDArray[
        np.float64
    ]  # how often an item of the second half was at each position, in all phases so far


def _run(world: Environment, seed: int) -> list[_Part]:
    ranker = rankers.PBMTS(n_items=10, n_positions=5)
    parts, before = [], 0.0
    for phase in range(ROUNDS // PHASE):
        trace = simulation.play(ranker, world, rounds=PHASE, seed=1000 * seed + phase, points=10)
        state, seen = ranker.state, ranker.state.N[:, 5:].sum(axis=1)
        clicks = (float(trace.value[0]), float(trace.value[-1]), float(seen.sum() - before) / PHASE)
        parts.append(_Part(clicks, state.theta.copy(), state.kappa.copy(), seen))
        before = float(seen.sum())
    return parts


def _listed(values: NDArray[np.float64], *, digits: int = 2) -> str:
    return " ".join(f"{value:,.{digits}f}" for value in values)
