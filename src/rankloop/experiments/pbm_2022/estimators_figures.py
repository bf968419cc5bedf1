"""The pictures of `pbm-2022-estimators`."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rankloop.experiments import runs
from rankloop.experiments.pbm_2022 import setting
from rankloop.experiments.pbm_2022.setting import SOURCES, STOCHASTIC
from rankloop.plotting import figures

LOSS, REDUCED, MEAN, REWARD = "loss", "reduced-variance", "mean", "bare reward"
OFFERED = (LOSS, REDUCED, MEAN)
_LOOK = {
    LOSS: ("loss", figures.BLUE),
    REDUCED: ("reduced", figures.ORANGE),
    MEAN: ("mean", figures.GREEN),
    REWARD: ("reward", figures.PURPLE),
}


def draw(results: pl.DataFrame) -> dict[str, Figure]:
    """Regret over time with what is offered, and every run's regret with what is not."""
    return {"estimators": _curves(results), "all-runs": _all_runs(results)}


def _against(results: pl.DataFrame, kind: str) -> str:
    """The regret of each baseline as a share of the loss form's, over the sources."""
    told = []
    for estimator in (REDUCED, MEAN):
        ends = [
            [
                runs.ends(results, "regret", source=source, kind=kind, estimator=one).mean()
                for one in (estimator, LOSS)
            ]
            for source in SOURCES
        ]
        shares = [own / loss for own, loss in ends]
        told.append(f"“{estimator}” has {figures.span(shares)}")
    return ", ".join(told)


def _curves(results: pl.DataFrame) -> Figure:
    figure, panels = setting.grid(
        title="Regret with each estimator of the losses",
        subtitle="regret against the best fixed list so far; bands: two standard errors over the runs",
        caption="Blue: the paper's loss / x. Orange: one half is taken off first. Green: the mean so far is. Left: "
        f"users stay the same; at the end {_against(results, STOCHASTIC)} of what loss / x has. Middle and right: they "
        "change every phase. The scales differ from panel to panel.",
    )
    for world, axes in panels.items():
        for estimator in OFFERED:
            label, colour = _LOOK[estimator]
            rows = runs.chosen(results, source=world.source, kind=world.kind, estimator=estimator)
            found = runs.over_runs(rows, errors=2)
            figures.mean_curve(axes, found, label=label, colour=colour)
        figures.time_axis(axes, end=float(found["round"][-1]), label=world.label)
    return figures.finish(figure)


def _worst(results: pl.DataFrame) -> str:
    told = []
    for source, title in SOURCES.items():
        reward, loss = (
            runs.ends(results, "regret", source=source, kind=STOCHASTIC, estimator=one).max()
            for one in (REWARD, LOSS)
        )
        told.append(f"{title} {reward / loss:.1f}")
    return ", ".join(told)


def _all_runs(results: pl.DataFrame) -> Figure:
    figure, panels = figures.canvas(
        title="The plain reward form, run by run",
        subtitle="regret at the end of every run, stochastic worlds",
        caption="A dot is a run, a line the mean. With -click / x a lucky click of an unlikely item is a large "
        f"negative loss that is never corrected. Its worst run has {_worst(results)} times the regret of the loss "
        "form's worst.",
        columns=3,
        width=16.0,
        height=4.9,
    )
    for (source, title), axes in zip(SOURCES.items(), panels, strict=True):
        for place, (estimator, (_, colour)) in enumerate(reversed(_LOOK.items())):
            found = runs.ends(results, "regret", source=source, kind=STOCHASTIC, estimator=estimator)
            lift = place + 0.5 * ((np.arange(len(found)) * 0.618) % 1 - 0.5)
            axes.plot(found, lift, "o", color=colour, alpha=0.55, markersize=5, markeredgewidth=0)
            axes.plot([found.mean()] * 2, [place - 0.35, place + 0.35], color=colour, linewidth=2.4)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        figures.count_axis(axes)
        figures.name_axes(axes, x="regret at the end", y=title)
        figures.row_axis(axes, [name for name, _ in _LOOK.values()])
    return figure
