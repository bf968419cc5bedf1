"""Figures of runs: regret or value against rounds, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import one_of, whole
from rankloop.extras import require
from rankloop.simulation.comparison_table import counted
from rankloop.simulation.significance import mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rankloop.simulation.comparison import Comparison
    from rankloop.simulation.trace import Trace

_LONG = 1_000  # rounds from which on a logarithmic axis shows the beginning
_APART = 5.0  # times that the largest regret is above the smallest, from which on logarithms show both

# A label, then per point: mean, lower and upper end.
Line = tuple[str, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def draw_comparison(
    found: Comparison, measure: str, *, log: bool | None, titles: bool, columns: int | None
) -> Figure:
    """A panel for each world, a line with its band for each ranker."""
    require("matplotlib", extra="plot", for_="drawing a comparison")
    from rankloop import plotting

    n = len(found.worlds)
    wide = min(n, 2 if columns is None else whole("columns", columns, at_least=1))
    lines = {
        world: [
            (name, *mean_interval(found.values(world, name, measure), level=found.level))
            for name in found.rankers
        ]
        for world in found.worlds
    }
    if len(found.seeds) == 1:
        band = "One seed, so without intervals."
    else:
        band = f"Lines are means over {len(found.seeds)} seeds, bands their {found.level:.0%} intervals."
    tall = math.ceil(n / wide)
    figure, panels = plotting.canvas(
        title=counted(found).capitalize() if titles else "",
        caption=band if titles else "",
        width=8.6 if wide == 1 else 6.4 * wide,
        height=4.9 if tall == 1 else 4.1 * tall,
        rows=tall,
        columns=wide,
        named_panels=n > 1,
    )
    for world, axes in zip(found.worlds, panels, strict=False):
        trace = found.traces[world, next(iter(found.rankers))][0]
        label = _label(measure, trace)
        _fill(axes, found.rounds, lines[world], measure, log=log)
        plotting.name_axes(axes, x="round", y=label, title=world if n > 1 else "")
    plotting.finish(figure)
    for axes in panels[n:]:  # after the others have found their width beside them
        axes.remove()
    return figure


def draw_trace(trace: Trace, measure: str | None, *, log: bool | None, titles: bool) -> Figure:
    """One run."""
    require("matplotlib", extra="plot", for_="drawing a trace")
    from rankloop import plotting

    if not len(trace.rounds):
        raise ValueError("a trace must have a recorded round to be drawn, got one without")
    known = not np.isnan(trace.regret).any()
    if measure is None:
        measure = "regret" if known else "mean_value"
    one_of("measure", measure, ("regret", "value", "mean_value"))
    if measure == "regret" and not known:
        raise ValueError("regret is not known of this trace: take measure='mean_value'")
    who = " in ".join(
        trace.provenance[part].partition("(")[0]
        for part in ("ranker", "environment")
        if part in trace.provenance
    )
    figure, (axes,) = plotting.canvas(
        title=(who or "A run") if titles else "",
        caption=f"{trace.n_rounds:,} rounds, seed {trace.seed}." if titles else "",
    )
    y = np.asarray(trace.columns()[measure], dtype=np.float64)
    unknown = np.full_like(y, np.nan)
    _fill(axes, trace.rounds, [("_run", y, unknown, unknown)], measure, log=log)
    plotting.name_axes(axes, x="round", y=_label(measure, trace))
    slot = axes.get_position()
    axes.set_position((slot.x0, slot.y0, slot.width - 0.04, slot.height))  # the last number on the axis
    return figure


def _fill(
    axes: Axes, rounds: NDArray[np.int64], lines: Sequence[Line], measure: str, *, log: bool | None
) -> None:
    from rankloop import plotting
    from rankloop.spacing import thin

    colours = (plotting.BLUE, plotting.ORANGE, plotting.GREEN, plotting.PURPLE, plotting.GOLD, plotting.SKY)
    log_x = rounds[-1] >= _LONG if log is None else log
    ends = [float(mean[-1]) for _, mean, _, _ in lines]
    positive = measure == "regret" and all(float(mean.min()) > 0.0 for _, mean, _, _ in lines)
    log_y = positive and (max(ends) > _APART * min(ends) if log is None else log)
    shown = thin(len(rounds), logarithmic=bool(log_x))
    lowest = min(float(mean.min()) for _, mean, _, _ in lines)
    for i, (name, mean, low, high) in enumerate(lines):
        band = None
        if not np.isnan(low).any():
            # A band that reaches 0 has no lower end on a logarithmic axis: it ends at the lower edge of the panel.
            bottom = np.maximum(low, lowest / 2) if log_y else low
            band = (bottom[shown], high[shown])
        plotting.curve(
            axes,
            rounds[shown],
            mean[shown],
            label=name,
            colour=colours[i % len(colours)],
            band=band,
            dashed=i // len(colours) % 2 == 1,
        )
    plotting.log_axis(axes, x=bool(log_x), y=bool(log_y))
    if not log_x:
        plotting.count_axis(axes)
    axes.set_xlim(float(rounds[shown[0]]) if log_x else 0.0, float(rounds[-1]))


def _label(measure: str, trace: Trace) -> str:
    if measure == "regret":
        return f"cumulative regret ({trace.measure})"
    return f"{trace.measure} a round" + (", mean of all so far" if measure == "mean_value" else "")
