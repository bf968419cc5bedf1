"""Figure 2 of the 2022 paper: the same six algorithms with click probabilities of the Yandex log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.experiment import Claim, Job
from rankloop.experiments.own import check_name
from rankloop.experiments.pbm_2022 import (
    comparison,
    comparison_claims,
    comparison_figures,
    own_log,
    setting,
)
from rankloop.experiments.pbm_2022.comparison import FITTED, Panel
from rankloop.experiments.pbm_2022.fig1 import DEPARTURES


def wanted() -> tuple[Panel, ...]:
    """The paper's three panels; and three more where our own estimates from the log are available."""
    sources = ("Yandex",) if comparison.why_not_fitted() else ("Yandex", FITTED)
    return comparison.panels(sources, "abcdef"[: 3 * len(sources)])


class PBMFigure2(comparison.Comparison):
    """Average reward of six algorithms with real click probabilities.

    Parameters
    ----------
    also : sequence of str, optional
        Rankers to play beside the six, by any name that `rankloop.rankers.registry.find` knows.
    datasets : mapping of str to str or Path, optional
        A click log to play instead of Yandex's: its name, and its files as `rankloop.data.read_clicks` takes them, a
        log or counts. Of the queries with ten items on five positions the two with most impressions are played.
    """

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

    def __init__(self, *, also: Sequence[str] = (), datasets: Mapping[str, str | Path] | None = None) -> None:
        super().__init__(also=also)
        given = dict(datasets or {})
        for name in given:
            check_name(name, (*setting.SOURCES, "yandex"))
        if len(given) > 1:
            raise ValueError(f"experiment {self.name!r} plays one click log, got datasets={list(given)}")
        self._own: list[own_log.OwnLog] = [own_log.read(name, path) for name, path in given.items()]

    def panels(self) -> tuple[Panel, ...]:
        """The paper's, or those of a log of one's own."""
        if not self._own:
            return wanted()
        sources = [one.source for own in self._own for one in own.users]
        return comparison.panels(sources, "abcdef"[: 3 * len(sources)])

    def jobs(self, *, quick: bool) -> list[Job]:
        return comparison.jobs(self.panels(), quick=quick, also=self.also)

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        if self._own:
            return comparison_claims.own(results)
        return comparison_claims.real(results, quick=quick)

    def notes(self, results: pl.DataFrame) -> tuple[str, ...]:
        if self._own:
            return tuple(f"Played on data of one's own instead of the Yandex log: {own}" for own in self._own)
        return (comparison_claims.fitted_note(results),)

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        shown = [panel for panel in self.panels() if panel.name in set(results["panel"])]
        caption = (
            "Where users stay the same the dashed line is the best list; where they change, every phase leaves a "
            "tooth."
        )
        return comparison_figures.draw(results, shown, title=self.title, caption=caption, also=self.also)
