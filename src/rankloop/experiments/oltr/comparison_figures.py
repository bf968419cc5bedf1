"""The pictures of `oltr-comparison`."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments import runs
from rankloop.experiments.oltr.setting import FROM_CLICKS, FROM_LABELS, KINDS, RANDOM
from rankloop.experiments.top_2016.setting import label_of
from rankloop.plotting import figures

_COLOURS = {
    "PDGD": figures.BLUE,
    "MGD": figures.ORANGE,
    "DBGD": figures.SKY,
    "RTop-1F": figures.GREEN,
    **dict.fromkeys((*FROM_LABELS, RANDOM), figures.MUTED),
}
_TITLES = {
    "held out": ("What is learnt from clicks", "NDCG@10 of the greedy order on held-out queries"),
    "online": (
        "What users are shown meanwhile",
        "NDCG@10 of the shown lists so far, averaged from the first",
    ),
}


def curves(results: pl.DataFrame, column: str) -> Figure:
    """A panel for each data set and kind of users, a curve for each learner, with a band of one standard error."""
    sets = results["set"].unique(maintain_order=True).to_list()
    title, subtitle = _TITLES[column]
    figure, panels = figures.canvas(
        title=title,
        subtitle=f"{subtitle}; bands: one standard error over the parts held out",
        caption="Ten documents of each list are shown; every learner has its defaults. ListNet and PL-Rank, grey, "
        "observe all labels instead of clicks; dashed is a random order.",
        width=17.0,
        height=1.0 + 4.2 * len(sets),
        rows=len(sets),
        columns=len(KINDS),
    )
    places = ((name, kind) for name in sets for kind in KINDS)
    for axes, (name, kind) in zip(panels, places, strict=True):
        for learner, colour in _COLOURS.items():
            rows = runs.chosen(results, set=name, learner=learner)
            if learner in FROM_CLICKS:
                rows = runs.chosen(rows, kind=kind)
            found = runs.over_runs(rows, column, errors=1)
            label = learner.split(",")[0]
            figures.mean_curve(axes, found, label=label, colour=colour, dashed=learner == RANDOM)
        figures.log_axis(axes)
        figures.name_axes(axes, x="impressions", y=f"{label_of(name)}, {kind}")
    return figures.finish(figure)
