"""The pictures of `pbm-2022-bounds`."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.pbm_2022 import setting
from rankloop.experiments.pbm_2022.bounds_claims import along, lower
from rankloop.experiments.pbm_2022.setting import SOURCES, STOCHASTIC, WORLDS, World
from rankloop.plotting import figures

TICKS = (10, 1_000, 100_000)


def draw(results: pl.DataFrame) -> dict[str, Figure]:
    """Theorem 1 in nine worlds, Theorem 3 in its own, Lemma 1 in the three that stay."""
    return {"theorem-1": _theorem_1(results), "theorem-3": _theorem_3(results), "lemma-1": _lemma_1(results)}


def _theorem_1(results: pl.DataFrame) -> Figure:
    last = [along(results, world).row(-1, named=True) for world in WORLDS]
    above, shares = (
        [one["chance"] > one["closed"] for one in last],
        [one["regret"] / one["closed"] for one in last],
    )
    figure, panels = setting.grid(
        title="Regret and Theorem 1, in its closed form and as a sum over x",
        subtitle="regret against the best fixed list so far, mean over the runs; where a line stops it is negative",
        caption="Orange: the closed form. Green: the sum in the theorem, taken over x_t as it was. Grey: a random "
        f"list, which by the end is above the closed form in {sum(above)} of the {len(above)} worlds; only there the "
        f"bound says something. At the end regret is {figures.span(shares)} of the closed form.",
    )
    for world, axes in panels.items():
        mean = along(results, world).filter(pl.col("round") >= 10)
        t = mean["round"].to_numpy()
        for label, column, colour in (
            ("closed form", "closed", figures.ORANGE),
            ("sum over x", "sum", figures.GREEN),
            ("random", "chance", figures.MUTED),
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
    shares, times = ((found["mean"] / found[other]).to_list() for other in ("chance", "least"))
    figure, panels = figures.canvas(
        title="Where one list is better by too little to detect",
        subtitle="regret at T in the world of Theorem 3, a run for each T; mean over the runs",
        caption="Each T has a world of its own, whose best list is better by sqrt((n-m+1)/T)/8 per position. FTRL-PBM "
        f"(blue) loses {figures.span(shares)} of what a random list does (grey), and {figures.span(times, '.1f')} "
        "times the lower bound (green). Orange: Theorem 1.",
        columns=len(sizes),
        width=max(8.6, 5.4 * len(sizes)),
        height=4.9,
    )
    for (n, m), axes in zip(sizes, panels, strict=True):
        rows = found.filter((pl.col("n") == n) & (pl.col("m") == m))
        rows = rows.with_columns(
            low=pl.col("mean") - 2 * pl.col("error"), high=pl.col("mean") + 2 * pl.col("error")
        )
        T, closed, least, chance = (
            rows[column].to_numpy() for column in ("round", "closed", "least", "chance")
        )
        figures.curve(axes, T, closed, label="Theorem 1", colour=figures.ORANGE, dashed=True)
        figures.mean_curve(axes, rows.drop("n", "m"), label="regret", colour=figures.BLUE, points=True)
        figures.curve(axes, T, chance, label="random", colour=figures.MUTED, dashed=True)
        figures.curve(axes, T, least, label="Theorem 3", colour=figures.GREEN, dashed=True)
        figures.log_axis(axes, y=True)
        figures.name_axes(axes, x="rounds T", y=f"{n} items, {m} positions")
    return figures.finish(figure)


def _lemma_1(results: pl.DataFrame) -> Figure:
    ends = {}
    for source, label in SOURCES.items():
        last = along(results, World(source, STOCHASTIC)).row(-1, named=True)
        ends[label] = last["pseudo"] / last["gaps"]
    figure, panels = figures.canvas(
        title="Regret bounds how often wrong positions are explored: the constraint behind O(log T)",
        subtitle="stochastic worlds, mean over the runs",
        caption="Green: half the sum of the gaps of Definition 1 times x_t, which Lemma 1 says is no more than the "
        f"regret. At the end regret is {', '.join(f'{label} {times:.1f}' for label, times in ends.items())} times "
        "that.",
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
