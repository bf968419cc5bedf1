"""The pictures of `top-2016-fig1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rankloop.experiments.plotting import figures as drawing
from rankloop.experiments.top_2016 import tables
from rankloop.experiments.top_2016.setting import label_of
from rankloop.experiments.top_2016.tables import (
    EPSILONS,
    LEARNERS,
    LISTNET,
    OURS,
    PAPERS,
    RANDOM,
    SMOOTH,
    with_epsilon,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_START = 100
_COLOURS = {
    "RankSVM": drawing.ORANGE,
    "KL": drawing.BLUE,
    "Squared": drawing.GREEN,
    SMOOTH: drawing.PURPLE,
    LISTNET: drawing.INK,
    RANDOM: drawing.MUTED,
}


def figures(results: pl.DataFrame) -> dict[str, Figure]:
    """The paper's figure with its constants, the same with ours, what epsilon does, and new queries."""
    return {
        "average-ndcg": _curves(
            results,
            PAPERS,
            title="The label of one document, or two, teaches most of what all labels teach",
            subtitle="the paper's constants; bands: one standard error over the runs",
            caption="ListNet (black) hears the label of every document, KL, Squared and SmoothDCG of the one on top, "
            "RankSVM of the top two, Random of none. The three convex surrogates end far above Random. SmoothDCG at "
            "the paper's epsilon = 0.01 is a matter of luck, as its wide band shows.",
        ),
        "average-ndcg-ours": _curves(
            results,
            OURS,
            title="Larger steps and more exploring: nearly all learn more, and SmoothDCG joins them",
            subtitle="steps 0.1 t^(-2/3), exploration t^(-1/3), epsilon 1, ListNet's steps t^(-1/2)",
            caption="The same with our constants, which are the same for all data sets. Bands are narrow: less depends "
            "on luck. Who leads among the surrogates changes with the constants, so the paper's order of them is one "
            "of step sizes. For RankSVM these steps are too large on long lists (MSLR).",
        ),
        "epsilon": _epsilon(results),
        "held-out": _held_out(results),
    }


def _canvas(count: int, *, title: str, subtitle: str, caption: str) -> tuple[Figure, list[Axes]]:
    rows = (count + 1) // 2
    figure, panels = drawing.canvas(
        title=title,
        subtitle=subtitle,
        caption=caption,
        rows=rows,
        columns=min(count, 2),
        width=13.0 if count > 1 else 8.6,
        height=1.0 + 4.0 * rows,
    )
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def _curves(results: pl.DataFrame, constants: str, *, title: str, subtitle: str, caption: str) -> Figure:
    sets = tables.sets(results)
    figure, panels = _canvas(len(sets), title=title, subtitle=subtitle, caption=caption)
    for axes, name in zip(panels, sets, strict=True):
        for learner in LEARNERS:
            found = tables.curve(
                results, dataset=name, learner=learner, constants=PAPERS if learner == RANDOM else constants
            ).filter(pl.col("round") >= _START)
            drawing.curve(
                axes,
                found["round"].to_numpy(),
                found["mean"].to_numpy(),
                band=(found["low"].to_numpy(), found["high"].to_numpy()),
                label=f"{learner} {found['mean'][-1]:.3f}",
                colour=_COLOURS[learner],
                dashed=learner == RANDOM,
            )
        drawing.log_axis(axes)
        axes.set_xlim(_START, float(found["round"][-1]))
        drawing.name_axes(axes, x="up to round t", y=f"{label_of(name)}: average NDCG@10")
    return drawing.finish(figure)


def _epsilon(results: pl.DataFrame) -> Figure:
    sets = tables.sets(results)
    figure, panels = _canvas(
        len(sets),
        title="SmoothDCG fails because of its epsilon, not for want of convexity",
        subtitle="steps and exploration as in the paper, only epsilon changes; bands: all runs",
        caption="At the paper's epsilon of 0.01 (left end) luck decides. Thirty times smoother, SmoothDCG does what "
        "the convex KL does (dashed, blue) with the same steps and the same single label a round. Its order depends on "
        "w / epsilon alone, which moves by eta / epsilon^2: at the left end steps are ten thousand times those at the "
        "right end.",
    )
    for axes, name in zip(panels, sets, strict=True):
        constants = set(results.filter(pl.col("set") == name)["constants"])
        played = [epsilon for epsilon in EPSILONS if with_epsilon(epsilon) in constants]
        runs = np.array(
            [
                tables.ends(results, dataset=name, learner=SMOOTH, constants=with_epsilon(epsilon))
                for epsilon in played
            ]
        )
        band = (runs.min(axis=1), runs.max(axis=1))
        drawing.curve(
            axes, played, runs.mean(axis=1), band=band, label=SMOOTH, colour=drawing.PURPLE, points=True
        )
        for learner in ("KL", RANDOM):
            level = tables.level(results, dataset=name, learner=learner)
            drawing.curve(
                axes, played, [level] * len(played), label=learner, colour=_COLOURS[learner], dashed=True
            )
        drawing.log_axis(axes)
        axes.set_xticks(played)
        drawing.name_axes(axes, x="epsilon", y=f"{label_of(name)}: average NDCG@10")
    return drawing.finish(figure)


def _held_out(results: pl.DataFrame) -> Figure:
    sets = tables.sets(results)
    figure, panels = _canvas(
        len(sets),
        title="What was learnt from the top of the list holds for new queries",
        subtitle="NDCG@10 of the greedy order on held-out queries at the end; bars: two standard errors to each side",
        caption="Each run holds out another fifth of the queries. Filled dots: our constants. Open dots: the paper's. "
        "With ours, one label a round (KL, Squared, SmoothDCG) buys most of what all labels buy (ListNet).",
    )
    for axes, name in zip(panels, sets, strict=True):
        for place, learner in enumerate(reversed(LEARNERS)):
            for constants, lift in ((PAPERS, -0.16), (OURS, 0.16)):
                if learner == RANDOM and constants == OURS:
                    continue
                ends = np.array(
                    tables.ends(
                        results, dataset=name, learner=learner, constants=constants, column="held out"
                    )
                )
                axes.errorbar(
                    ends.mean(),
                    place + lift,
                    xerr=2 * ends.std(ddof=1) / len(ends) ** 0.5,
                    marker="o",
                    markersize=9,
                    color=_COLOURS[learner],
                    markerfacecolor=_COLOURS[learner] if constants == OURS else drawing.PAPER,
                    markeredgewidth=1.8,
                    elinewidth=1.4,
                )
        axes.set_yticks(range(len(LEARNERS)), reversed(LEARNERS), size=drawing.LABEL_SIZE)
        axes.set_ylim(-0.6, len(LEARNERS) - 0.4)
        drawing.name_axes(axes, x="held-out NDCG@10", y=label_of(name))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        slot = axes.get_position()  # names of learners are wider than numbers
        axes.set_position((slot.x0 + 0.04, slot.y0, slot.width - 0.06, slot.height))
    return figure
