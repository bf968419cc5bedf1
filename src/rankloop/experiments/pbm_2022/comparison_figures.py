"""The pictures of `pbm-2022-fig1` and `pbm-2022-fig2`: average reward against time, a panel for each world."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.pbm_2022 import comparison
from rankloop.experiments.pbm_2022.comparison import EXP3, FTRL, MW, PIE, PMED, TOP_RANK, Panel
from rankloop.experiments.pbm_2022.setting import STOCHASTIC
from rankloop.plotting import figures

_COLOURS = {FTRL: figures.BLUE, TOP_RANK: figures.ORANGE, PIE: figures.PURPLE}
_COLOURS |= {PMED: figures.GREEN, EXP3: figures.MUTED, MW: figures.GOLD}
_BEGIN = 0.02  # of the horizon: before that averages are of few rounds and would stretch the axis


def _highest(results: pl.DataFrame, wanted: Sequence[Panel]) -> str:
    told = []
    for panel in wanted:
        ends = {
            name: comparison.ends(results, panel.name, name, column="reward").mean()
            for name in comparison.ALGORITHMS
        }
        best = max(ends, key=lambda name: ends[name])
        told.append(f"({panel.name}) {best}")
    return ", ".join(told)


def draw(
    results: pl.DataFrame, wanted: Sequence[Panel], *, title: str, caption: str, also: Sequence[str] = ()
) -> dict[str, Figure]:
    """Average reward up to t in each panel, with bands of one standard error; dashed, the best list of each phase."""
    rows = (len(wanted) + 2) // 3
    figure, axes_of = figures.canvas(
        title=title,
        subtitle="average reward up to round t; bands: one standard error over the runs",
        caption=f"{caption} Highest at the end: {_highest(results, wanted)}.",
        rows=rows,
        columns=3,
        width=17.0,
        height=1.0 + 4.3 * rows,
    )
    for axes, panel in zip(axes_of, wanted, strict=True):
        lowest, highest = float("inf"), 0.0
        for algorithm in (*comparison.ALGORITHMS, *also):
            whole = comparison.curve(results, panel.name, algorithm)
            end = int(whole["round"][-1])
            found = whole.filter(pl.col("round") >= _BEGIN * end)
            label = f"{algorithm.rpartition(':')[2]} {found['mean'][-1]:.3f}"
            figures.mean_curve(axes, found, label=label, colour=_COLOURS.get(algorithm, figures.INK))
            lowest = min(lowest, float(found["mean"].quantile(0.02) or 0.0))
            highest = max(highest, *whole["mean"].to_list())
        if panel.change == STOCHASTIC:
            last = results.filter(pl.col("panel") == panel.name, pl.col("round") == end)
            highest = float(last["ideal"][0])
            axes.axhline(highest, color=figures.MUTED, linewidth=1.1, linestyle=(0, (2, 2)), label="_best")
        scratch = max(highest - lowest, 1e-3)
        axes.set_ylim(lowest - 0.08 * scratch, highest + 0.08 * scratch)
        axes.set_xlim(0, end)
        figures.count_axis(axes)
        axes.locator_params(axis="x", nbins=3)
        figures.name_axes(axes, x="round t", y=panel.title)
    return {"average-reward": figures.finish(figure)}
