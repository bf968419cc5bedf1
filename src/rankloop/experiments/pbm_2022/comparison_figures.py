"""The pictures of `pbm-2022-fig1` and `pbm-2022-fig2`: average reward against time, a panel for each world."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.pbm_2022 import comparison as rivals
from rankloop.experiments.pbm_2022.comparison import EXP3, FTRL, MW, PIE, PMED, STOCHASTIC, TOP_RANK, Panel
from rankloop.experiments.plotting import figures

_COLOURS = {
    FTRL: figures.BLUE,
    TOP_RANK: figures.ORANGE,
    PIE: figures.PURPLE,
    PMED: figures.GREEN,
    EXP3: figures.MUTED,
    MW: figures.GOLD,
}
_BEGIN = 0.02  # of the horizon: before that averages are of few rounds and would stretch the axis


def draw(results: pl.DataFrame, wanted: Sequence[Panel], *, title: str, caption: str) -> Figure:
    """Average reward up to t in each panel, with bands of one standard error; dashed, the best list of each phase."""
    rows = (len(wanted) + 2) // 3
    figure, axes_of = figures.canvas(
        title=title,
        subtitle="average reward up to round t; bands: one standard error over the runs",
        caption=caption,
        rows=rows,
        columns=3,
        width=17.0,
        height=1.0 + 4.3 * rows,
    )
    for axes, panel in zip(axes_of, wanted, strict=True):
        lowest, highest = float("inf"), 0.0
        for algorithm in rivals.ALGORITHMS:
            found = rivals.curve(results, panel=panel.name, algorithm=algorithm)
            end = int(found["round"][-1])
            found = found.filter(pl.col("round") >= _BEGIN * end)
            figures.curve(
                axes,
                found["round"].to_numpy(),
                found["mean"].to_numpy(),
                band=(found["low"].to_numpy(), found["high"].to_numpy()),
                label=f"{algorithm} {found['mean'][-1]:.3f}",
                colour=_COLOURS[algorithm],
            )
            lowest = min(lowest, float(found["mean"].quantile(0.02) or 0.0))
            highest = max(highest, float(found["ideal"][-1]))
        if panel.change == STOCHASTIC:
            axes.axhline(highest, color=figures.MUTED, linewidth=1.1, linestyle=(0, (2, 2)), label="_best")
        else:
            highest = max(
                float(rivals.curve(results, panel=panel.name, algorithm=name)["mean"].max() or 0.0)  # type: ignore[arg-type]
                for name in rivals.ALGORITHMS
            )
        room = max(highest - lowest, 1e-3)
        axes.set_ylim(lowest - 0.08 * room, highest + 0.08 * room)
        axes.set_xlim(0, end)
        figures.count_axis(axes)
        axes.locator_params(axis="x", nbins=3)
        figures.name_axes(axes, x="round t", y=panel.title)
    return figures.finish(figure)
