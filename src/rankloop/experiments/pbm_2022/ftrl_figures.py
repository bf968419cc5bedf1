"""The pictures of `pbm-2022-ftrl`: nine worlds, three by three."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments import runs
from rankloop.experiments.pbm_2022 import setting
from rankloop.experiments.pbm_2022.setting import STOCHASTIC, WORLDS
from rankloop.plotting import figures


def draw(results: pl.DataFrame) -> dict[str, Figure]:
    """The paper's averages, and the same runs round by round."""
    return {"average-reward": _averages(results), "reward-by-time": _by_time(results)}


def _averages(results: pl.DataFrame) -> Figure:
    figure, panels = setting.grid(
        title="FTRL-PBM learns whether users stay the same or change",
        subtitle="average reward up to round t; bands: two standard errors over the runs",
        caption="Left: users stay the same. Middle: the halves of "
        "the items are exchanged every phase. Right: items and positions are reversed every phase. Dashed: "
        "a random list, the best list that never changes, and (where it differs) the best list of each "
        "phase.",
    )
    for world, axes in panels.items():
        rows = runs.chosen(results, source=world.source, kind=world.kind)
        found = runs.over_runs(rows, "average", errors=2)
        figures.mean_curve(axes, found, label=f"{found['mean'][-1]:.3f}", colour=figures.BLUE)
        levels, ends = world.levels(), found["round"].to_numpy()[[0, -1]]
        dashed = {"best by phase": (levels.each_phase, figures.GREEN)} if world.kind != STOCHASTIC else {}
        dashed["best fixed" if world.kind != STOCHASTIC else "best"] = (levels.fixed, figures.ORANGE)
        dashed["random"] = (levels.random, figures.MUTED)
        for name, (level, colour) in dashed.items():
            figures.curve(axes, ends, [level, level], label=name, colour=colour, dashed=True)
        figures.time_axis(axes, end=float(ends[1]), label=world.label)
    return figures.finish(figure)


def _falls(results: pl.DataFrame) -> str:
    told = []
    for world in WORLDS:
        if world.kind != STOCHASTIC:
            rows = runs.chosen(results, source=world.source, kind=world.kind)
            phases = runs.over_runs(rows, "value")["mean"].to_numpy().reshape(10, -1)
            told.append(f"{world.label} {phases[:-1, -1].mean():.2f} and {phases[1:, 0].mean():.2f}")
    return ", ".join(told)


def _by_time(results: pl.DataFrame) -> Figure:
    figure, panels = setting.grid(
        title="Rewards around the changes of users",
        subtitle="reward per round at round t; bands: two standard errors over the runs",
        caption="The same runs, not averaged over time. In worlds that change, reward per round at the end of a "
        f"phase and at the start of the next, over all changes: {_falls(results)}.",
    )
    for world, axes in panels.items():
        rows = runs.chosen(results, source=world.source, kind=world.kind)
        found = runs.over_runs(rows, "value", errors=2)
        figures.mean_curve(axes, found, label="FTRL-PBM", colour=figures.BLUE)
        best, ends = world.levels().each_phase, found["round"].to_numpy()[[0, -1]]
        figures.curve(axes, ends, [best, best], label="best", colour=figures.GREEN, dashed=True)
        figures.time_axis(axes, end=float(ends[1]), label=world.label)
    return figures.finish(figure)
