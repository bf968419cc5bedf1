"""The pictures of `pbm-2022-bounds`."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.pbm_2022.bounds_claims import along, lower
from rankloop.experiments.pbm_2022.setting import SOURCES, STOCHASTIC, WORLDS, World
from rankloop.experiments.plotting import figures as drawing

TICKS = (10, 1_000, 100_000)


def figures(results: pl.DataFrame) -> dict[str, Figure]:
    """Theorem 1 in nine worlds, Theorem 3 in its own, Lemma 1 in the three that stay."""
    return {"theorem-1": _theorem_1(results), "theorem-3": _theorem_3(results), "lemma-1": _lemma_1(results)}


def _theorem_1(results: pl.DataFrame) -> Figure:
    figure, panels = drawing.canvas(
        title="Regret stays below Theorem 1, in its closed form and as a sum over x",
        subtitle="regret against the best fixed list so far, mean over the runs; where a line stops it is negative",
        caption="Orange: the closed form. Green: the sum in the theorem, taken over x_t as it was. Where users stay as "
        "they are x_t sharpens, and the sum bends away from the closed form.",
        rows=3,
        columns=3,
        width=16.0,
        height=11.5,
    )
    for world, axes in zip(WORLDS, panels, strict=True):
        mean = along(results, world).filter(pl.col("round") >= 10)
        t = mean["round"].to_numpy()
        for label, column, colour in (
            ("closed form", "closed", drawing.ORANGE),
            ("sum over x", "sum", drawing.GREEN),
            ("regret", "regret", drawing.BLUE),
        ):
            y = mean[column].to_numpy().copy()
            positive = y > 1
            drawing.curve(
                axes, t[positive], y[positive], label=label, colour=colour, dashed=column != "regret"
            )
        drawing.log_axis(axes, y=True)
        axes.set_xlim(10, float(t[-1]))
        axes.set_xticks(TICKS)
        axes.set_ylim(1, None)
        drawing.name_axes(axes, x="round t", y=world.label)
    return drawing.finish(figure)


def _theorem_3(results: pl.DataFrame) -> Figure:
    found = lower(results)
    sizes = found.select("n", "m").unique(maintain_order=True).rows()
    figure, panels = drawing.canvas(
        title="Where one list is better by too little to see, nobody does much better",
        subtitle="regret at T in the world of Theorem 3, a run for each T; mean over the runs",
        caption="Each T has a world of its own, whose best list is better by sqrt((n-m+1)/T)/8 a position. Regret lies "
        "between the lower bound (green) and Theorem 1 (orange) and grows as fast as both: sqrt(T).",
        columns=len(sizes),
        width=5.4 * len(sizes),
        height=4.9,
    )
    for (n, m), axes in zip(sizes, panels, strict=True):
        rows = found.filter((pl.col("n") == n) & (pl.col("m") == m))
        T, mean, error = (rows[column].to_numpy() for column in ("round", "mean", "error"))
        drawing.curve(
            axes, T, rows["closed"].to_numpy(), label="Theorem 1", colour=drawing.ORANGE, dashed=True
        )
        drawing.curve(
            axes,
            T,
            mean,
            band=(mean - 2 * error, mean + 2 * error),
            label="regret",
            colour=drawing.BLUE,
            points=True,
        )
        drawing.curve(axes, T, rows["least"].to_numpy(), label="Theorem 3", colour=drawing.GREEN, dashed=True)
        drawing.log_axis(axes, y=True)
        drawing.name_axes(axes, x="rounds T", y=f"{n} items, {m} positions")
    return drawing.finish(figure)


def _lemma_1(results: pl.DataFrame) -> Figure:
    figure, panels = drawing.canvas(
        title="Regret bounds how often wrong places are tried: the constraint behind O(log T)",
        subtitle="stochastic worlds, mean over the runs",
        caption="Green: half the sum of the gaps of Definition 1 times x_t, which Lemma 1 says is no more than the "
        "regret. Both grow alike: who tries wrong places often has regret to show for it.",
        columns=3,
        width=16.0,
        height=4.9,
    )
    for (source, label), axes in zip(SOURCES.items(), panels, strict=True):
        mean = along(results, World(source, STOCHASTIC)).filter(pl.col("round") >= 10)
        t = mean["round"].to_numpy()
        drawing.curve(axes, t, mean["pseudo"].to_numpy(), label="regret", colour=drawing.BLUE)
        drawing.curve(axes, t, mean["gaps"].to_numpy(), label="Lemma 1", colour=drawing.GREEN, dashed=True)
        drawing.log_axis(axes, y=True)
        axes.set_xticks(TICKS)
        drawing.name_axes(axes, x="round t", y=label)
    return drawing.finish(figure)
