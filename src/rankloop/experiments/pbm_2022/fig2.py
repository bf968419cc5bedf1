"""Figure 2 of the 2022 paper: the same six algorithms with click probabilities of the Yandex log."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.experiment import Claim, Job
from rankloop.experiments.pbm_2022 import comparison, comparison_claims, comparison_figures, setting
from rankloop.experiments.pbm_2022.comparison import FITTED, Panel
from rankloop.experiments.pbm_2022.fig1 import DEPARTURES


def wanted() -> tuple[Panel, ...]:
    """The paper's three panels; and three more where our own estimates from the log are available."""
    sources = ("Yandex",) if comparison.why_not_fitted() else ("Yandex", FITTED)
    return comparison.panels(sources, "abcdef"[: 3 * len(sources)])


class PBMFigure2(comparison.Comparison):
    """Average reward of six algorithms with real click probabilities."""

    name = "pbm-2022-fig2"
    title = "The same six with click probabilities of a real log"
    paper = setting.PAPER + ", Figure 2 and Appendix E"
    caption = (
        "As in Figure 1, with the attractions and examinations that the paper estimated from the Yandex log (a-c), and "
        "where a sample of that log is available with those that our own EM estimates from it (d-f). By the paper's "
        "estimates one item has nearly all the clicks at the first position, and clicks further down are rare."
    )
    departures = (
        *DEPARTURES,
        "(d-f) use all pages of the ten most frequent items in the sample; the paper keeps pages of these items only.",
    )

    def jobs(self, *, quick: bool) -> list[Job]:
        return comparison.jobs(wanted(), quick=quick, also=self.also)

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        return comparison_claims.real(results, quick=quick)

    def notes(self, results: pl.DataFrame) -> tuple[str, ...]:
        return (comparison_claims.fitted_note(results),)

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        shown = [panel for panel in wanted() if panel.name in set(results["panel"])]
        caption = (
            "Where users stay the same the dashed line is the best list; where they change, every phase leaves a "
            "tooth."
        )
        return comparison_figures.draw(results, shown, title=self.title, caption=caption, also=self.also)
