"""The pictures of `top-2016-fig1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rankloop.experiments.runs import mean_and_error
from rankloop.experiments.top_2016 import tables
from rankloop.experiments.top_2016.setting import label_of
from rankloop.experiments.top_2016.tables import LEARNERS, LISTNET, OURS, PAPERS, RANDOM, SMOOTH
from rankloop.plotting import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_START = 100
COLOURS = {"RankSVM": figures.ORANGE, "KL": figures.BLUE, "Squared": figures.GREEN}
COLOURS |= {SMOOTH: figures.PURPLE, LISTNET: figures.INK, RANDOM: figures.MUTED}


def draw(results: pl.DataFrame) -> dict[str, Figure]:
    """The paper's figure with its constants, the same with ours, what epsilon does, and new queries."""
    return {
        "average-ndcg": _curves(
            results,
            PAPERS,
            title="What the label of one document, or of two, teaches of what all labels teach",
            subtitle="the paper's constants; bands: one standard error over the runs",
            caption="ListNet (black) observes the label of every document, KL, Squared and SmoothDCG of the one on "
            "top, RankSVM of the top two, Random of none. " + _ways(results, PAPERS),
        ),
        "average-ndcg-ours": _curves(
            results,
            OURS,
            title="The same with larger steps and more exploration",
            subtitle="steps 0.1 t^(-2/3), exploration t^(-1/3), epsilon 1, ListNet's steps t^(-1/2)",
            caption="Our constants, which are the same for all data sets. "
            + _ways(results, OURS)
            + _leaders(results),
        ),
        "epsilon": _epsilon(results),
        "held-out": _held_out(results),
    }


def _ways(results: pl.DataFrame, constants: str) -> str:
    """How far each surrogate goes from Random to ListNet, over the data sets that were played."""
    told = []
    for learner in (*tables.CONVEX, SMOOTH):
        shares = [tables.share(results, name, learner, constants) for name in tables.sets(results)]
        told.append(f"{learner} {figures.span(shares)}")
    return f"Of the way from Random to ListNet they end at: {', '.join(told)}."


def _leaders(results: pl.DataFrame) -> str:
    changed = []
    for name in tables.sets(results):
        first, ours = (
            max(tables.CONVEX, key=lambda learner: tables.level(results, name, learner, constants))
            for constants in (PAPERS, OURS)
        )
        if first != ours:
            changed.append(f"{label_of(name)} ({first}, now {ours})")
    return (
        f" Another of the three convex surrogates leads than with the paper's on {', '.join(changed)}."
        if changed
        else ""
    )


def _panels(
    results: pl.DataFrame, *, title: str, caption: str, subtitle: str = ""
) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each data set, two in a row."""
    sets = tables.sets(results)
    rows, columns = (len(sets) + 1) // 2, min(len(sets), 2)
    width = 13.0 if columns > 1 else 8.6
    figure, panels = figures.canvas(
        title=title,
        caption=caption,
        subtitle=subtitle,
        rows=rows,
        columns=columns,
        width=width,
        height=1.0 + 4.0 * rows,
    )
    for axes in panels[len(sets) :]:
        axes.remove()
    return figure, dict(zip(sets, panels, strict=False))


def _curves(results: pl.DataFrame, constants: str, **words: str) -> Figure:
    figure, panels = _panels(results, **words)
    for name, axes in panels.items():
        for learner in LEARNERS:
            found = tables.curve(results, name, learner, PAPERS if learner == RANDOM else constants)
            found = found.filter(pl.col("round") >= _START)
            label = f"{learner} {found['mean'][-1]:.3f}"
            figures.mean_curve(axes, found, label=label, colour=COLOURS[learner], dashed=learner == RANDOM)
        figures.log_axis(axes)
        axes.set_xlim(_START, float(found["round"][-1]))
        figures.name_axes(axes, x="up to round t", y=f"{label_of(name)}: average NDCG@10")
    return figures.finish(figure)


def _epsilon(results: pl.DataFrame) -> Figure:
    first = tables.sets(results)[0]
    constants = set(results.filter(pl.col("set") == first)["constants"])
    tried = [epsilon for epsilon in tables.EPSILONS if tables.with_epsilon(epsilon) in constants]
    told = []
    for name in tables.sets(results):
        low, high, kl = (
            tables.share(results, name, learner, constants)
            for learner, constants in (
                (SMOOTH, PAPERS),
                (SMOOTH, tables.with_epsilon(tried[-1])),
                ("KL", PAPERS),
            )
        )
        told.append(f"{label_of(name)} {low:.0%}, {high:.0%} (KL {kl:.0%})")
    figure, panels = _panels(
        results,
        title="SmoothDCG by its epsilon",
        subtitle="steps and exploration as in the paper, only epsilon changes; bands: all runs",
        caption=f"Of the way from Random to ListNet SmoothDCG goes, with epsilon {tried[0]:g} and {tried[-1]:g}: "
        f"{'; '.join(told)}. Its order depends on w / epsilon alone, which moves by eta / epsilon^2: at the left end "
        f"steps are {(tried[-1] / tried[0]) ** 2:,.0f} times those at the right end.",
    )
    for name, axes in panels.items():
        constants = set(results.filter(pl.col("set") == name)["constants"])
        played = [epsilon for epsilon in tables.EPSILONS if tables.with_epsilon(epsilon) in constants]
        runs = np.array(
            [tables.ends(results, name, SMOOTH, tables.with_epsilon(epsilon)) for epsilon in played]
        )
        mean, band, colour = runs.mean(axis=1), (runs.min(axis=1), runs.max(axis=1)), COLOURS[SMOOTH]
        figures.curve(axes, played, mean, band=band, label=SMOOTH, colour=colour, points=True)
        for learner in ("KL", RANDOM):
            level = [tables.level(results, name, learner)] * len(played)
            figures.curve(axes, played, level, label=learner, colour=COLOURS[learner], dashed=True)
        figures.log_axis(axes)
        axes.set_xticks(played)
        figures.name_axes(axes, x="epsilon", y=f"{label_of(name)}: average NDCG@10")
    return figures.finish(figure)


def _held_out_shares(results: pl.DataFrame) -> str:
    shares = [
        tables.share(results, name, learner, OURS, column="held out")
        for name in tables.sets(results)
        for learner in ("KL", "Squared", SMOOTH)
    ]
    return figures.span(shares)


def _held_out(results: pl.DataFrame) -> Figure:
    figure, panels = _panels(
        results,
        title="What was learnt from the top of the list, on new queries",
        subtitle="NDCG@10 of the greedy order on held-out queries at the end; bars: two standard errors to each side",
        caption="Each run holds out another fifth of the queries. Filled dots: our constants. Open dots: the "
        f"paper's. With ours, one label per round (KL, Squared, SmoothDCG) closes {_held_out_shares(results)} of the "
        "gap between Random and ListNet.",
    )
    for name, axes in panels.items():
        for place, learner in enumerate(reversed(LEARNERS)):
            for constants, lift in ((PAPERS, -0.16), (OURS, 0.16))[: 1 if learner == RANDOM else 2]:
                mean, error = mean_and_error(
                    tables.ends(results, name, learner, constants, column="held out")
                )
                colour, ours = COLOURS[learner], constants == OURS
                figures.dot(axes, mean, place + lift, error=2 * error, colour=colour, filled=ours, line=1.4)
        figures.name_axes(axes, x="held-out NDCG@10", y=label_of(name))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        figures.row_axis(axes, LEARNERS)
    return figure
