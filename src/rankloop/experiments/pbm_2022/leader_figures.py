"""The picture of `pbm-2022-leader`: x_t at a few rounds, above its way from one list to the other."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rankloop.experiments.pbm_2022.setting import N_ITEMS, N_POSITIONS
from rankloop.plotting import figures
from rankloop.plotting.line_labels import label_line_ends

CHANGE, END = 50_000, 250_000
SHOWN = (1, 1_000, 10_000, 50_000, 60_000, 100_000, 250_000)
POINTS = tuple(sorted({*SHOWN, *range(1_000, END + 1, 1_000)}))
_SHADES = LinearSegmentedColormap.from_list("chances", [figures.PAPER, figures.SKY, figures.BLUE, "#00304f"])


def leader(results: pl.DataFrame, *, best: NDArray[np.int64]) -> Figure:
    """Seven maps of x_t from the first run, and the chances of both lists, mean over the runs."""
    figure, (top, bottom) = figures.canvas(
        title="x_t concentrates from uniform to one list, and to another one after a change",
        subtitle="the probability of every item (down) at every position (across); rings: the best list",
        caption="Each map is what one round's list is drawn from: dark means likely (shades follow the square root "
        f"of the probability), and every column sums to one. At round {CHANGE:,} the halves of the items "
        "are exchanged. Below: the probability of finding an item of the list at its position, mean over "
        "positions and runs.",
        rows=2,
        width=13.0,
        height=8.2,
    )
    slot = top.get_position()
    top.remove()
    run = results.filter(pl.col("seed") == results["seed"].min())
    width = (0.985 - slot.x0) / len(SHOWN)
    for place, t in enumerate(SHOWN):
        axes = figure.add_axes((slot.x0 + place * width, slot.y0 - 0.03, 0.8 * width, slot.height))
        x = np.array(run.filter(pl.col("round") == t)["x"][0].to_list()).reshape(N_POSITIONS, N_ITEMS)
        axes.imshow(
            np.sqrt(x.T), cmap=_SHADES, vmin=0, vmax=1, aspect="auto"
        )  # roots, so that small chances show
        axes.plot(
            np.arange(N_POSITIONS),
            best[0 if t <= CHANGE else 1],
            "o",
            markersize=9,
            markerfacecolor="none",
            markeredgecolor=figures.ORANGE,
            markeredgewidth=1.6,
        )
        axes.set_xticks(range(N_POSITIONS), [str(j + 1) for j in range(N_POSITIONS)])
        axes.set_yticks(
            range(N_ITEMS), [str(i + 1) for i in range(N_ITEMS)] if place == 0 else [""] * N_ITEMS
        )
        axes.tick_params(length=0, labelsize=figures.TICK_SIZE, labelcolor=figures.INK)
        for spine in axes.spines.values():
            spine.set_color(figures.GRID)
        axes.set_title(f"round {t:,}", size=figures.LABEL_SIZE, color=figures.INK, pad=8)
    mean = results.group_by("round").agg(pl.col("old", "new").mean()).sort("round")
    rounds = mean["round"].to_numpy()
    figures.curve(bottom, rounds, mean["old"].to_numpy(), label="first list", colour=figures.BLUE)
    figures.curve(bottom, rounds, mean["new"].to_numpy(), label="second list", colour=figures.ORANGE)
    bottom.axvline(CHANGE, color=figures.MUTED, linewidth=1.1, linestyle=(0, (2, 2)), label="_change")
    bottom.set_xlim(0, END)
    bottom.set_ylim(0, 1)
    figures.count_axis(bottom)
    figures.name_axes(bottom, x="round t", y="probability of the list's items at their positions")
    label_line_ends(bottom, size=figures.LABEL_SIZE, right=0.99)
    return figure
