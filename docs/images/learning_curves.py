"""The picture at the head of the README: regret of learning from little feedback beside a random order."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rankloop import environments, plotting, rankers, simulation
from rankloop.base import Environment, Ranker

SEEDS = range(10)
Pair = Callable[[], tuple[Ranker, Environment]]


def users() -> environments.FixedItems:
    """The users of the README's first example."""
    return environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")


def clicking_users() -> Environment:
    """Ten items on five positions, under the position-based click model."""
    return environments.named("gap-0.03")


TOP_ITEM: dict[str, Pair] = {
    "random order": lambda: (rankers.Uniform(n_items=10), users()),
    "TopFTRL": lambda: (rankers.TopFTRL(n_items=10, measure="dcg"), users()),
    "FTPL, sees all ten": lambda: (rankers.FTPL(n_items=10, horizon=10_000, measure="dcg"), users()),
}
CLICKS: dict[str, Pair] = {
    "random order": lambda: (rankers.Uniform(n_items=10, n_positions=5), clicking_users()),
    "FTRLPBM": lambda: (rankers.FTRLPBM(n_items=10, n_positions=5), clicking_users()),
    "PBMTS": lambda: (rankers.PBMTS(n_items=10, n_positions=5), clicking_users()),
}
COLOURS = (plotting.ORANGE, plotting.BLUE, plotting.GREEN)


def regrets(pair: Pair, *, rounds: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Recorded rounds, and the regret up to each of them in every run."""
    traces = simulation.play_many(pair, rounds=rounds, seeds=SEEDS, points=400, progress=False)
    return traces[0].rounds, np.array([trace.regret for trace in traces])


def draw_panel(axes: Axes, pairs: dict[str, Pair], *, rounds: int, ticks: int, title: str) -> None:
    """One line for each ranker: the mean over the runs, with a band from the lowest to the highest."""
    for (name, pair), colour in zip(pairs.items(), COLOURS, strict=True):
        x, regret = regrets(pair, rounds=rounds)
        mean = regret.mean(axis=0)
        print(f"{title}, {name}: {mean[-1]:,.0f} ({regret[:, -1].min():,.0f} to {regret[:, -1].max():,.0f})")
        plotting.curve(
            axes,
            x,
            mean,
            label=f"{name}: {mean[-1]:,.0f}",
            colour=colour,
            band=(regret.min(axis=0), regret.max(axis=0)),
        )
    axes.set_xlim(0, rounds)
    axes.set_ylim(0, None)
    plotting.count_axis(axes)
    axes.yaxis.set_major_formatter(axes.xaxis.get_major_formatter())
    axes.set_xticks(range(0, rounds + 1, ticks))
    plotting.name_axes(axes, x="users so far", y=title)


def draw() -> Figure:
    """Both panels."""
    figure, (top, clicks) = plotting.canvas(
        title="Learning from a fraction of the feedback removes most of the regret",
        subtitle="Cumulative regret against the best fixed order: lower is better. Mean and range of 10 runs.",
        caption="Left: each user reveals the relevance of the top item, one of ten; FTPL, with full information, sees "
        "all ten. Right: ten items on five positions; users click, and look less often at lower positions. PBMTS "
        "assumes that users stay the same, FTRLPBM does not.",
        width=12.0,
        height=4.9,
        columns=2,
    )
    draw_panel(top, TOP_ITEM, rounds=10_000, ticks=5_000, title="DCG regret, top item revealed")
    draw_panel(clicks, CLICKS, rounds=100_000, ticks=50_000, title="Click regret, clicks observed")
    return plotting.finish(figure)
