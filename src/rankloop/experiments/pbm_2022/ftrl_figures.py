"""The pictures of `pbm-2022-ftrl`: nine worlds, three by three."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.pbm_2022.setting import STOCHASTIC, WORLDS, World
from rankloop.experiments.plotting import figures as drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def figures(results: pl.DataFrame) -> dict[str, Figure]:
    """The paper's averages, and the same runs round by round."""
    return {"average-reward": _averages(results), "reward-by-time": _by_time(results)}


def _grid(*, title: str, subtitle: str, caption: str) -> tuple[Figure, dict[World, Axes]]:
    figure, panels = drawing.canvas(
        title=title, subtitle=subtitle, caption=caption, rows=3, columns=3, width=16.0, height=11.5
    )
    return figure, dict(zip(WORLDS, panels, strict=True))


def _averages(results: pl.DataFrame) -> Figure:
    figure, panels = _grid(
        title="FTRL-PBM learns whether users stay as they are or change",
        subtitle="average reward up to round t; bands: two standard errors over the runs",
        caption="Left: users stay as they are, and the average climbs to that of the best list. Middle: the halves of "
        "the items change places every phase. Right: items and positions turn round every phase. Dashed: a random "
        "list, the best list that never changes, and (where it differs) the best list of each phase.",
    )
    for world, axes in panels.items():
        found = _curve(results, world, "average")
        x, mean, error = (found[column].to_numpy() for column in ("round", "mean", "error"))
        drawing.curve(
            axes,
            x,
            mean,
            band=(mean - 2 * error, mean + 2 * error),
            label=f"{mean[-1]:.3f}",
            colour=drawing.BLUE,
        )
        levels = world.levels()
        for name, level, colour in (
            ("best by phase", levels.each_phase, drawing.GREEN),
            ("best fixed" if world.kind != STOCHASTIC else "best", levels.fixed, drawing.ORANGE),
            ("random", levels.random, drawing.MUTED),
        ):
            if name != "best by phase" or world.kind != STOCHASTIC:
                drawing.curve(axes, x[[0, -1]], [level, level], label=name, colour=colour, dashed=True)
        _finish_axes(axes, x, world)
    return drawing.finish(figure)


def _by_time(results: pl.DataFrame) -> Figure:
    figure, panels = _grid(
        title="After a change rewards fall, and rise again while the learner finds the new list",
        subtitle="reward a round at round t; bands: two standard errors over the runs",
        caption="The same runs, not averaged over time. A change costs most where the old list is worth little in the "
        "new world. The later it comes, the longer the way back: the losses summed so far have to be outweighed.",
    )
    for world, axes in panels.items():
        found = _curve(results, world, "value")
        x, mean, error = (found[column].to_numpy() for column in ("round", "mean", "error"))
        drawing.curve(
            axes, x, mean, band=(mean - 2 * error, mean + 2 * error), label="FTRL-PBM", colour=drawing.BLUE
        )
        drawing.curve(
            axes,
            x[[0, -1]],
            [world.levels().each_phase] * 2,
            label="best",
            colour=drawing.GREEN,
            dashed=True,
        )
        _finish_axes(axes, x, world)
    return drawing.finish(figure)


def _curve(results: pl.DataFrame, world: World, column: str) -> pl.DataFrame:
    return (
        results.filter(pl.col("source") == world.source, pl.col("kind") == world.kind)
        .group_by("round")
        .agg(pl.col(column).mean().alias("mean"), (pl.col(column).std() / pl.len().sqrt()).alias("error"))
        .sort("round")
    )


def _finish_axes(axes: Axes, x: np.ndarray, world: World) -> None:
    axes.set_xlim(0, float(x[-1]))
    axes.set_xticks([0, float(x[-1]) / 2, float(x[-1])])
    drawing.count_axis(axes)
    drawing.name_axes(axes, x="round t", y=world.label)
