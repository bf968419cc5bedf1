"""The pictures of `top-2016-beyond`."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments import runs
from rankloop.experiments.top_2016 import tables, tuning
from rankloop.experiments.top_2016.fig1_figures import COLOURS
from rankloop.experiments.top_2016.setting import label_of
from rankloop.experiments.top_2016.tuning import ANNEALED, ESTIMATORS, EVERY, SMOOTH
from rankloop.plotting import figures

AMBITION = 0.95
_ESTIMATOR_COLOURS = dict(zip(ESTIMATORS, (figures.ORANGE, figures.SKY, figures.BLUE), strict=True))
_ROWS = (
    *(tuning.LISTNET_PLAIN, tuning.LISTNET_PAPER, "RankSVM, paper", f"RankSVM, {EVERY}"),
    *(f"{surrogate}, {estimator}" for surrogate in ("Squared", "KL") for estimator in (*ESTIMATORS, EVERY)),
    *(f"{SMOOTH}, {estimator}" for estimator in ESTIMATORS),
    *(ANNEALED, f"{SMOOTH}, {EVERY}"),
)


def shares(results: pl.DataFrame) -> Figure:
    """What part of the gap every learner closes, over the run and on new queries."""
    sets = tables.sets(results)
    figure, panels = figures.canvas(
        title="Two labels per round, well used, compared with full information",
        subtitle="0: random order, 1: ListNet, full information; bars: one standard error over the parts held out",
        caption="Filled: NDCG@10 averaged over the run, on the queries it learns from. Open: the greedy order at the "
        "end, on held-out queries. Every learner, the ListNet that is 1 too, has settings chosen by the same rule, and "
        "observes two labels per round unless stated otherwise. HT, for Horvitz-Thompson, uses both of them; dotted is "
        "95 %.",
        width=13.0,
        height=9.0,
        columns=len(sets),
    )
    for panel, (axes, name) in enumerate(zip(panels, sets, strict=True)):
        axes.axvline(AMBITION, color=figures.MUTED, linewidth=1.2, linestyle=(0, (2, 2)))
        for place, method in enumerate(reversed(_ROWS)):
            for column, lift in (("average", 0.15), ("held out", -0.15)):
                mean, error = tuning.share(results, name, method, column=column)
                colour, filled = COLOURS[method.split(",")[0]], column == "average"
                figures.dot(axes, mean, place + lift, error=error, colour=colour, filled=filled)
        axes.set_yticks(range(len(_ROWS)), reversed(_ROWS) if panel == 0 else [])
        axes.set_ylim(-0.6, len(_ROWS) - 0.4)
        figures.name_axes(axes, x="share of the gap that is closed", y=label_of(name))
        # The names of the rows stand on the left, once, and the panels share what is left of the width.
        slot, width = axes.get_position(), 0.78 / len(sets)
        axes.set_position((0.2 + panel * width, slot.y0, width - 0.03, slot.height))
    return figure


def steps(results: pl.DataFrame) -> Figure:
    """Average NDCG of the runs that were tried, against the size of the steps, by estimator."""
    sets = tables.sets(results)
    figure, panels = figures.canvas(
        title="What each size of the steps gives, by estimator",
        subtitle="runs that were tried to choose the steps; exploration t^(-1/3), radius 30; bands: one standard error",
        caption="Steps fall as t^(-2/3), for SmoothDCG as t^(-1/3). The paper's estimators use one of the two labels "
        "that are seen. Horvitz-Thompson (HT) uses both; a guess at the labels, the document's score for Squared and "
        "the mean label for the others, takes further noise out.",
        width=15.0,
        height=1.0 + 4.0 * len(sets),
        rows=len(sets),
        columns=3,
    )
    tried = runs.chosen(results, kind="tried", exploration=1.0, radius=30.0)
    shown = ((name, surrogate) for name in sets for surrogate in ("Squared", "KL", SMOOTH))
    for axes, (name, surrogate) in zip(panels, shown, strict=True):
        for estimator, colour in _ESTIMATOR_COLOURS.items():
            rows = runs.chosen(tried, set=name, method=f"{surrogate}, {estimator}")
            # The spread of a single run is unknown: drawn as none.
            found = runs.over_runs(rows, "average", by="learning_rate", errors=1).with_columns(
                pl.col("low", "high").fill_null(pl.col("mean"))
            )
            figures.mean_curve(axes, found, label=estimator, colour=colour, points=True)
        figures.log_axis(axes)
        axes.set_xticks(sorted(set(tried.filter(pl.col("method") == f"{surrogate}, HT")["learning_rate"])))
        figures.name_axes(axes, x="scale of the steps", y=f"{surrogate}, {label_of(name)}")
    return figures.finish(figure)
