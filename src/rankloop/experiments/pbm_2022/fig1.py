"""Figure 1 of the 2022 paper: FTRL-PBM and five other algorithms on synthetic clicks, constant and changing."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.experiment import Claim, Job
from rankloop.experiments.pbm_2022 import comparison, comparison_claims, comparison_figures, setting

PANELS = comparison.panels(("gap 0.03", "gap 0.01"), "abcdef")
DEPARTURES = (
    (
        "The paper does not state the horizon (its figure is not available to us), nor whether rewards are drawn "
        "or expected (erratum C13): a million rounds, ten phases of 100,000, and expected clicks of what was "
        "shown."
    ),
    (
        "PMED's optimisation is solved to within 5% of its optimum whenever the rounds have grown by half, about "
        "thirty times in a run; the paper speaks of fixed iterations."
    ),
    "PBM-PIE re-estimates examinations every 20 rounds, with epsilon = 0.01; neither is in the paper.",
    "Where an algorithm needs the horizon, it is given the true one.",
)


class PBMFigure1(comparison.Comparison):
    """Average reward of six algorithms in six worlds."""

    name = "pbm-2022-fig1"
    title = "FTRL-PBM and five other algorithms, where users stay the same and where they change"
    paper = setting.PAPER + ", Figure 1"
    caption = (
        "Ten items, five positions with examinations 1, 1/2, ..., 1/5, items 0.03 apart (a-c) or 0.01 (d-f). In "
        "(a) and (d) users stay the same. In (b) and (e) the halves of the items are exchanged every phase, in (c) "
        "and (f) items and positions are reversed. Shown is the average reward up to round t."
    )
    departures = DEPARTURES

    def jobs(self, *, quick: bool) -> list[Job]:
        return comparison.jobs(PANELS, quick=quick, also=self.also)

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        return comparison_claims.synthetic(results, quick=quick)

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        caption = (
            "Where users stay the same (a, d) the dashed line is the best list. Where they change, every phase leaves "
            "a tooth: in (b, e) the halves of the items are exchanged, in (c, f) items and positions are reversed."
        )
        return comparison_figures.draw(results, PANELS, title=self.title, caption=caption, also=self.also)
