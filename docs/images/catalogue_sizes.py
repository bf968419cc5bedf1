"""The picture of what features are worth: regret by size of the catalogue, with features and without."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rankloop import environments, plotting, rankers, simulation
from rankloop.base import Environment, Ranker
from rankloop.feedback import CascadeModel

SIZES = (5, 10, 20, 40, 80, 160, 320, 640)
FEATURES, POSITIONS, ROUNDS = 10, 4, 5_000
SEEDS = range(10)
EXAMINATION = 1 / np.arange(1, POSITIONS + 1)
Catalogue = tuple[NDArray[np.float64], NDArray[np.float64]]


def catalogue(n: int, seed: int) -> Catalogue:
    """Items whose features are shares of ten topics, and the attraction of each: the mean of those of its topics."""
    rng = np.random.default_rng([n, seed])
    features = rng.dirichlet(np.full(FEATURES, 0.3), size=n)
    return features, features @ rng.uniform(0.0, 0.5, FEATURES)


def cascade(made: Catalogue) -> Environment:
    """Users who click the first item that attracts them."""
    return environments.ClickUsers(CascadeModel(made[1]), n_positions=POSITIONS)


def position_based(made: Catalogue) -> Environment:
    """Users who look at position j with probability 1/j."""
    return environments.PositionBased(attraction=made[1], examination=EXAMINATION)


CASCADE: dict[str, Callable[[Catalogue], Ranker]] = {
    "CascadeKLUCB": lambda made: rankers.CascadeKLUCB(n_items=len(made[1]), n_positions=POSITIONS),
    "CascadeLinTS": lambda made: rankers.CascadeLinTS(features=made[0], n_positions=POSITIONS),
    "CascadeLinUCB": lambda made: rankers.CascadeLinUCB(features=made[0], n_positions=POSITIONS),
}
POSITION_BASED: dict[str, Callable[[Catalogue], Ranker]] = {
    "PBMTS": lambda made: rankers.PBMTS(n_items=len(made[1]), n_positions=POSITIONS),
    "LinTSPBM": lambda made: rankers.LinTSPBM(features=made[0], n_positions=POSITIONS),
    "LinUCBPBM": lambda made: rankers.LinUCBPBM(features=made[0], n_positions=POSITIONS),
}
COLOURS = (plotting.ORANGE, plotting.BLUE, plotting.GREEN)


def regrets(
    build: Callable[[Catalogue], Ranker], world: Callable[[Catalogue], Environment], n: int
) -> NDArray[np.float64]:
    """Regret at the end of each run, every one with another catalogue of `n` items."""
    pairs = [(build(made), world(made)) for made in (catalogue(n, seed) for seed in SEEDS)]
    traces = simulation.play_many(pairs, rounds=ROUNDS, seeds=SEEDS, points=1, progress=False, workers=1)
    return np.array([trace.total_regret for trace in traces])


def measured() -> dict[str, NDArray[np.float64]]:
    """For each ranker, sizes x runs."""
    return {
        name: np.array([regrets(build, world, n) for n in SIZES])
        for builds, world in ((CASCADE, cascade), (POSITION_BASED, position_based))
        for name, build in builds.items()
    }


def draw_panel(axes: Axes, found: dict[str, NDArray[np.float64]], *, title: str) -> None:
    """One line for each ranker: the mean over the runs, with a band of two standard errors."""
    for (name, regret), colour in zip(found.items(), COLOURS, strict=True):
        mean, error = regret.mean(axis=1), regret.std(axis=1, ddof=1) / np.sqrt(regret.shape[1])
        print(
            f"{name}: "
            + ", ".join(f"{n}: {m:.0f} ± {e:.0f}" for n, m, e in zip(SIZES, mean, error, strict=True))
        )
        band = (mean - 2 * error, mean + 2 * error)
        plotting.curve(
            axes, np.array(SIZES), mean, label=f"{name}: {mean[-1]:,.0f}", colour=colour, band=band
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [str(n) for n in SIZES])
    axes.minorticks_off()
    axes.set_ylim(0, None)
    plotting.name_axes(axes, x="items in the catalogue", y=title)


def draw() -> Figure:
    """Both panels."""
    figure, (left, right) = plotting.canvas(
        title="From some size of the catalogue on, features are worth more than counting by item",
        subtitle=f"Regret after {ROUNDS:,} users by number of items: lower is better. Mean of {len(SEEDS)} runs, "
        "with two standard errors.",
        caption=f"Attraction is linear in {FEATURES} features; {POSITIONS} items are shown. Left: users click the "
        "first item that attracts them. Right: users look at position j with probability 1/j, which the rankers are "
        "not told. CascadeKLUCB and PBMTS count clicks by item.",
        width=12.0,
        height=4.9,
        columns=2,
    )
    found = measured()
    draw_panel(left, {name: found[name] for name in CASCADE}, title="Regret in clicks, cascade")
    draw_panel(
        right, {name: found[name] for name in POSITION_BASED}, title="Regret in clicks, position-based"
    )
    return plotting.finish(figure)
