"""Judgments from clicks: how relevant each item is to a query, by a click model, for tools that take judged lists."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import ArgumentError, one_of, whole
from rankloop.logs.fitted_models import Estimate, FittedModel, from_log_odds, pair_numbers

Floats = NDArray[np.float64]
_RARE = 0.01  # of all impressions: as many are of items that may be more relevant than the best grade needs


@dataclass(frozen=True, slots=True, eq=False)
class Judgments:
    """How relevant items are to queries, by a click model and by clicks over expected clicks.

    Parameters
    ----------
    items : tuple of (str, str)
        Query and item, by name.
    relevance : Estimate
        The chance that a user who looks at the item is content with it: attraction, times satisfaction where the model
        has one.
    coec : ndarray of float
        Clicks over expected clicks, those of an average item at the same positions; not a number where none are
        expected.
    shown, clicked : ndarray of int
        Impressions and clicks of each.
    model : str
        The click model.
    log : str
        The name of the log.
    """

    items: tuple[tuple[str, str], ...]
    relevance: Estimate
    coec: Floats
    shown: NDArray[np.int64]
    clicked: NDArray[np.int64]
    model: str
    log: str

    @classmethod
    def of(cls, fit: FittedModel, *, least: int = 1) -> Judgments:
        """The judgments of the click model `fit`, of items that were shown at least `least` times for a query.

        Examples
        --------
        >>> from rankloop import feedback, logs
        >>> pages = feedback.Sessions(items=[[0, 1], [1, 0]] * 50, clicks=[[1, 0], [0, 1], [1, 0], [0, 0]] * 25)
        >>> Judgments.of(logs.fit_model(pages, "pbm")).relevance.value.round(1)
        array([1., 0.])
        """
        whole("least", least, at_least=1)
        if fit.name in ("rcm", "rctr"):
            raise ValueError(
                f"model must be one with items, got {fit.name!r}, to which all items are the same"
            )
        pairs, clicks = pair_numbers(fit.log, fit.codes), fit.log.clicks
        cells, places = pairs >= 0, np.broadcast_to(np.arange(pairs.shape[1]), pairs.shape)
        shown = np.bincount(pairs[cells], minlength=len(fit.items))
        clicked = np.bincount(pairs[cells], clicks[cells], minlength=len(fit.items)).astype(np.int64)
        at_rank = np.bincount(places[cells], clicks[cells]) / np.maximum(np.bincount(places[cells]), 1)
        expected = np.bincount(pairs[cells], at_rank[places[cells]], minlength=len(fit.items))
        kept = np.flatnonzero(shown >= least)
        if not len(kept):
            raise ArgumentError(
                "least", f"least must be at most {shown.max()}, as often as any item was shown, got {least}"
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            coec = np.where(expected > 0, clicked / expected, np.nan)
        return cls(
            items=tuple(fit.items[i] for i in kept),
            relevance=Estimate(*(part[kept] for part in _relevance(fit))),
            coec=coec[kept],
            shown=shown[kept],
            clicked=clicked[kept],
            model=fit.name,
            log=fit.log.name,
        )

    def ratings(self, *, grades: int = 3) -> Floats:
        """Ratings from 0 to `grades`, in proportion to the relevance.

        The best grade is what all but one impression in a hundred is of, at most, so that no rare item sets the scale.
        """
        whole("grades", grades, at_least=1)
        value = self.relevance.value
        order = np.argsort(value)
        seen = np.cumsum(self.shown[order]) / self.shown.sum()
        most = value[order][np.searchsorted(seen, 1.0 - _RARE)]
        return (grades * value / most).clip(0.0, grades) if most > 0 else np.zeros(len(value))

    def text(self, form: str = "csv", *, grades: int = 3) -> str:
        """The judgments as text: `form` "csv", "workbench", "quepid" or "letor", with ratings from 0 to `grades`."""
        return FORMS[one_of("form", form, FORMS)](self, self.ratings(grades=grades))


def _relevance(fit: FittedModel) -> Estimate:
    """Attraction, times satisfaction where there is one; errors of the two are taken to be independent."""
    first, second = fit.attraction, fit.satisfaction
    if second is None:
        return first
    value = first.value * second.value
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.hypot(first.standard_error / first.value, second.standard_error / second.value)
        error = np.nan_to_num(relative / (1.0 - value), nan=np.inf, posinf=np.inf)
    return from_log_odds(value, error, fit.confidence)


def _by_query(one: Judgments) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, (query, _) in enumerate(one.items):
        found.setdefault(query, []).append(i)
    return found


def _table(header: list[str], rows: list[list[object]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([header, *rows])
    return written.getvalue()


def _csv(one: Judgments, ratings: Floats) -> str:
    columns = (ratings, one.relevance.value, one.relevance.low, one.relevance.high, one.coec)
    rows: list[list[object]] = [
        [
            query,
            item,
            *("" if np.isnan(part[i]) else f"{part[i]:.4f}" for part in columns),
            one.shown[i],
            one.clicked[i],
        ]
        for i, (query, item) in enumerate(one.items)
    ]
    names = ["rating", "relevance", "low", "high", "coec", "impressions", "clicks"]
    return _table(["query", "item", *names], rows)


def _quepid(one: Judgments, ratings: Floats) -> str:
    rows: list[list[object]] = [
        [query, item, int(rating + 0.5)]
        for (query, item), rating in zip(one.items, ratings.tolist(), strict=True)
    ]
    return _table(["query", "docid", "rating"], rows)


def _workbench(one: Judgments, ratings: Floats) -> str:
    judged = [
        {"query": query, "ratings": [{"docId": one.items[i][1], "rating": f"{ratings[i]:.3f}"} for i in its]}
        for query, its in _by_query(one).items()
    ]
    what = f"{one.model} on {one.log}, by rankloop"
    body = {"name": what, "description": what, "type": "IMPORT_JUDGMENT", "judgmentRatings": judged}
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _letor(one: Judgments, ratings: Floats) -> str:
    lines = [
        f"{int(ratings[i] + 0.5)} qid:{number} # {_word(one.items[i][1])} {_word(query)}"
        f" from {one.relevance.low[i]:.4f} to {one.relevance.high[i]:.4f}\n"
        for number, (query, its) in enumerate(_by_query(one).items(), start=1)
        for i in its
    ]
    return "".join(lines)


def _word(text: str) -> str:
    """Text that ends no line."""
    return json.dumps(text, ensure_ascii=False)


FORMS: dict[str, Callable[[Judgments, Floats], str]] = {
    "csv": _csv,
    "workbench": _workbench,
    "quepid": _quepid,
    "letor": _letor,
}
