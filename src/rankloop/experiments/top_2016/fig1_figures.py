"""The pictures of `top-2016-fig1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rankloop.experiments.plotting import figures
from rankloop.experiments.runs import mean_and_error
from rankloop.experiments.top_2016 import tables
from rankloop.experiments.top_2016.setting import label_of
from rankloop.experiments.top_2016.tables import LEARNERS, LISTNET, OURS, PAPERS, RANDOM, SMOOTH

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
            title="The label of one document, or two, teaches most of what all labels teach",
            subtitle="the paper's constants; bands: one standard error over the runs",
            caption="ListNet (black) observes the label of every document, KL, Squared and SmoothDCG of the one on "
            "top, RankSVM of the top two, Random of none. The three convex surrogates end far above "
            "Random. SmoothDCG at the paper's epsilon = 0.01 varies strongly between runs, as its wide "
            "band shows.",
        ),
        "average-ndcg-ours": _curves(
            results,
            OURS,
            title="Larger steps and more exploration: nearly all learn more, SmoothDCG too",
            subtitle="steps 0.1 t^(-2/3), exploration t^(-1/3), epsilon 1, ListNet's steps t^(-1/2)",
            caption="The same with our constants, which are the same for all data sets. Bands are narrow: runs "
            "differ less. Who leads among the surrogates changes with the constants, so the paper's order "
            "of them is one of step sizes. For RankSVM these steps are too large on long lists (MSLR).",
        ),
        "epsilon": _epsilon(results),
        "held-out": _held_out(results),
    }


def _panels(results: pl.DataFrame, **words: str) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each data set, two in a row."""
    sets = tables.sets(results)
    rows, columns = (len(sets) + 1) // 2, min(len(sets), 2)
    width = 13.0 if columns > 1 else 8.6
    figure, panels = figures.canvas(**words, rows=rows, columns=columns, width=width, height=1.0 + 4.0 * rows)
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
    figure, panels = _panels(
        results,
        title="SmoothDCG fails because of its epsilon, not for lack of convexity",
        subtitle="steps and exploration as in the paper, only epsilon changes; bands: all runs",
        caption="At the paper's epsilon of 0.01 (left end) runs differ widely. Thirty times smoother, SmoothDCG "
        "does what the convex KL does (dashed, blue) with the same steps and the same single label a "
        "round. Its order depends on w / epsilon alone, which moves by eta / epsilon^2: at the left end "
        "steps are ten thousand times those at the right end.",
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


def _held_out(results: pl.DataFrame) -> Figure:
    figure, panels = _panels(
        results,
        title="What was learnt from the top of the list holds for new queries",
        subtitle="NDCG@10 of the greedy order on held-out queries at the end; bars: two standard errors to each side",
        caption="Each run holds out another fifth of the queries. Filled dots: our constants. Open dots: the paper's. "
        "With ours, one label per round (KL, Squared, SmoothDCG) gives most of what all labels give (ListNet).",
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
