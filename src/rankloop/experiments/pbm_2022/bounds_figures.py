"""The pictures of `pbm-2022-bounds`."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.pbm_2022 import setting
from rankloop.experiments.pbm_2022.bounds_claims import along, lower
from rankloop.experiments.pbm_2022.setting import SOURCES, STOCHASTIC, World
from rankloop.experiments.plotting import figures

TICKS = (10, 1_000, 100_000)


def draw(results: pl.DataFrame) -> dict[str, Figure]:
    """Theorem 1 in nine worlds, Theorem 3 in its own, Lemma 1 in the three that stay."""
    return {"theorem-1": _theorem_1(results), "theorem-3": _theorem_3(results), "lemma-1": _lemma_1(results)}


def _theorem_1(results: pl.DataFrame) -> Figure:
    figure, panels = setting.grid(
        title="Regret stays below Theorem 1, in its closed form and as a sum over x",
        subtitle="regret against the best fixed list so far, mean over the runs; where a line stops it is negative",
        caption="Orange: the closed form. Green: the sum in the theorem, taken over x_t as it was. Where users do "
        "not change, x_t concentrates, and the sum bends away from the closed form.",
    )
    for world, axes in panels.items():
        mean = along(results, world).filter(pl.col("round") >= 10)
        t = mean["round"].to_numpy()
        for label, column, colour in (
            ("closed form", "closed", figures.ORANGE),
            ("sum over x", "sum", figures.GREEN),
            ("regret", "regret", figures.BLUE),
        ):
            y = mean[column].to_numpy()
            shown, dashed = y > 1, column != "regret"
            figures.curve(axes, t[shown], y[shown], label=label, colour=colour, dashed=dashed)
        figures.log_axis(axes, y=True)
        axes.set_xlim(10, float(t[-1]))
        axes.set_xticks(TICKS)
        axes.set_ylim(1, None)
        figures.name_axes(axes, x="round t", y=world.label)
    return figures.finish(figure)


def _theorem_3(results: pl.DataFrame) -> Figure:
    found = lower(results)
    sizes = found.select("n", "m").unique(maintain_order=True).rows()
    figure, panels = figures.canvas(
        title="Where one list is better by too little to detect, no learner does much better",
        subtitle="regret at T in the world of Theorem 3, a run for each T; mean over the runs",
        caption="Each T has a world of its own, whose best list is better by sqrt((n-m+1)/T)/8 per position. "
        "Regret lies between the lower bound (green) and Theorem 1 (orange) and grows as fast as both: "
        "sqrt(T).",
        columns=len(sizes),
        width=5.4 * len(sizes),
        height=4.9,
    )
    for (n, m), axes in zip(sizes, panels, strict=True):
        rows = found.filter((pl.col("n") == n) & (pl.col("m") == m))
        rows = rows.with_columns(
            low=pl.col("mean") - 2 * pl.col("error"), high=pl.col("mean") + 2 * pl.col("error")
        )
        T, closed, least = (rows[column].to_numpy() for column in ("round", "closed", "least"))
        figures.curve(axes, T, closed, label="Theorem 1", colour=figures.ORANGE, dashed=True)
        figures.mean_curve(axes, rows.drop("n", "m"), label="regret", colour=figures.BLUE, points=True)
        figures.curve(axes, T, least, label="Theorem 3", colour=figures.GREEN, dashed=True)
        figures.log_axis(axes, y=True)
        figures.name_axes(axes, x="rounds T", y=f"{n} items, {m} positions")
    return figures.finish(figure)


def _lemma_1(results: pl.DataFrame) -> Figure:
    figure, panels = figures.canvas(
        title="Regret bounds how often wrong positions are explored: the constraint behind O(log T)",
        subtitle="stochastic worlds, mean over the runs",
        caption="Green: half the sum of the gaps of Definition 1 times x_t, which Lemma 1 says is no more than the "
        "regret. Both grow alike: exploring wrong positions often costs regret.",
        columns=3,
        width=16.0,
        height=4.9,
    )
    for (source, label), axes in zip(SOURCES.items(), panels, strict=True):
        mean = along(results, World(source, STOCHASTIC)).filter(pl.col("round") >= 10)
        t = mean["round"].to_numpy()
        figures.curve(axes, t, mean["pseudo"].to_numpy(), label="regret", colour=figures.BLUE)
        figures.curve(axes, t, mean["gaps"].to_numpy(), label="Lemma 1", colour=figures.GREEN, dashed=True)
        figures.log_axis(axes, y=True)
        axes.set_xticks(TICKS)
        figures.name_axes(axes, x="round t", y=label)
    return figures.finish(figure)
