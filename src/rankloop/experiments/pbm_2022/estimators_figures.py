"""The pictures of `pbm-2022-estimators`."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rankloop.experiments.pbm_2022.setting import SOURCES, STOCHASTIC, WORLDS, ends
from rankloop.experiments.plotting import figures as drawing

LOSS, REDUCED, MEAN, REWARD = "loss", "reduced-variance", "mean", "bare reward"
OFFERED = (LOSS, REDUCED, MEAN)
NAMES = {LOSS: "loss", REDUCED: "reduced", MEAN: "mean", REWARD: "reward"}
COLOURS = {LOSS: drawing.BLUE, REDUCED: drawing.ORANGE, MEAN: drawing.GREEN, REWARD: drawing.PURPLE}


def figures(results: pl.DataFrame) -> dict[str, Figure]:
    """Regret over time with what is offered, and every run's regret with what is not."""
    return {"estimators": _curves(results), "all-runs": _all_runs(results)}


def _curves(results: pl.DataFrame) -> Figure:
    figure, panels = drawing.canvas(
        title="A baseline saves regret where users stay, and where they change it seldom does harm",
        subtitle="regret against the best fixed list so far; bands: two standard errors over the runs",
        caption="Blue: the paper's loss / x. Orange: one half is taken off first. Green: the mean so far is. Left: "
        "users stay as they are. Middle and right: they change every phase. The scales differ from panel to panel.",
        rows=3,
        columns=3,
        width=16.0,
        height=11.5,
    )
    for world, axes in zip(WORLDS, panels, strict=True):
        for estimator in OFFERED:
            found = (
                results.filter(
                    pl.col("source") == world.source,
                    pl.col("kind") == world.kind,
                    pl.col("estimator") == estimator,
                )
                .group_by("round")
                .agg(
                    pl.col("regret").mean().alias("mean"),
                    (pl.col("regret").std() / pl.len().sqrt()).alias("e"),
                )
                .sort("round")
            )
            x, mean, e = (found[column].to_numpy() for column in ("round", "mean", "e"))
            drawing.curve(
                axes,
                x,
                mean,
                band=(mean - 2 * e, mean + 2 * e),
                label=NAMES[estimator],
                colour=COLOURS[estimator],
            )
        axes.set_xlim(0, float(x[-1]))
        axes.set_xticks([0, float(x[-1]) / 2, float(x[-1])])
        drawing.count_axis(axes)
        drawing.name_axes(axes, x="round t", y=world.label)
    return drawing.finish(figure)


def _all_runs(results: pl.DataFrame) -> Figure:
    figure, panels = drawing.canvas(
        title="The bare reward form is good on average on Yandex, and ruinous elsewhere",
        subtitle="regret at the end of every run, stochastic worlds",
        caption="A dot is a run, a line its mean. With -click / x a lucky click of an unlikely item is a large "
        "negative loss that nothing takes back: the item is shown, clicked now and then, and stays.",
        columns=3,
        width=16.0,
        height=4.9,
    )
    for source, axes in zip(SOURCES, panels, strict=True):
        for place, estimator in enumerate(reversed((*OFFERED, REWARD))):
            runs = ends(results, "regret", source=source, kind=STOCHASTIC, estimator=estimator)
            lift = place + 0.5 * ((np.arange(len(runs)) * 0.618) % 1 - 0.5)
            axes.plot(runs, lift, "o", color=COLOURS[estimator], alpha=0.55, markersize=5, markeredgewidth=0)
            axes.plot(
                [runs.mean()] * 2, [place - 0.35, place + 0.35], color=COLOURS[estimator], linewidth=2.4
            )
        names = [NAMES[estimator] for estimator in (*OFFERED, REWARD)]
        axes.set_yticks(range(4), reversed(names), size=drawing.LABEL_SIZE)
        axes.set_ylim(-0.6, 3.6)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        drawing.count_axis(axes)
        drawing.name_axes(axes, x="regret at the end", y=SOURCES[source])
        slot = axes.get_position()
        axes.set_position((slot.x0 + 0.03, slot.y0, slot.width - 0.05, slot.height))
    return figure
