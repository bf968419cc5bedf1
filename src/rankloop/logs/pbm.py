"""A position-based model from a log of clicks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rankloop
from rankloop.arguments import number, one_of, whole
from rankloop.feedback import ClickLog, ClickParameters, PositionBasedModel
from rankloop.logs import identifiability, intervals
from rankloop.logs.em import Cells, by_moments, maximise
from rankloop.logs.newton import Newton

Numbers = NDArray[np.float64]


class ClickModelWarning(UserWarning):
    """A log does not identify everything that was asked of it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedPBM:
    """Attraction and examination, as estimated; items by falling attraction.

    Parameters
    ----------
    attraction : ndarray of float
        The estimated attraction of each item.
    examination : ndarray of float
        The estimated examination of each position; that of `reference` is 1 by convention, because only
        products of the two can be identified from clicks.
    attraction_interval : ndarray of float
        Lower and upper end of the interval of each attraction, a row for each item.
    examination_interval : ndarray of float
        Lower and upper end of the interval of each examination, a row for each position.
    items : tuple of (str, str)
        Query and item, by name.
    shown : ndarray of int
        How often each item was shown.
    clicked : ndarray of int
        How often each item was clicked.
    reference : int
        The position (from 0) that users look at most.
    confidence : float
        The level of the intervals.
    smoothing : float
        The impressions that were added for each item.
    trace : ndarray of float
        The log likelihood, prior included, at each step.
    converged : bool
        Whether the steps became short enough.
    method : str
        How the maximum was found, ``"newton"`` or ``"em"``.
    warnings : tuple of str
        What the log does not tell, in sentences.
    log : ClickLog
        The log that the model was fitted to.
    """

    attraction: Numbers
    examination: Numbers
    attraction_interval: Numbers
    examination_interval: Numbers
    items: tuple[tuple[str, str], ...]
    shown: NDArray[np.int64]
    clicked: NDArray[np.int64]
    reference: int
    confidence: float
    smoothing: float
    trace: Numbers
    converged: bool
    method: str
    warnings: tuple[str, ...]
    log: ClickLog

    def __repr__(self) -> str:
        end = f"{len(self.trace)} steps" + ("" if self.converged else ", not converged")
        return (
            f"FittedPBM({self.log.name!r}: {len(self.items)} items, {len(self.examination)} positions, {end})"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The items by name, with their query where there are several."""
        return item_names(self.items, several=len(self.log.query_ids) > 1)

    def model(self) -> PositionBasedModel:
        """The click model with these parameters."""
        return self.parameters().model()

    def parameters(self) -> ClickParameters:
        """The parameters and their origin, ready to be saved."""
        unknown = np.flatnonzero(~np.isfinite(self.examination))
        if unknown.size:
            raise ValueError(
                f"examination of position {unknown[0] + 1} is unknown: nothing was shown there; select fewer positions"
            )
        return ClickParameters(
            attraction=self.attraction,
            examination=self.examination,
            items=self.names,
            provenance={
                "source": self.log.name,
                "queries": list(self.log.query_ids[:100]),
                "rows": self.log.n_rows,
                "bad_rows": dict(self.log.bad_rows),
                "impressions": int(self.shown.sum()),
                "clicks": int(self.clicked.sum()),
                "estimator": f"maximum likelihood of the counts by item and position ({self.method})",
                "smoothing": self.smoothing,
                "steps": len(self.trace),
                "converged": self.converged,
                "confidence": self.confidence,
                "attraction_interval": self.attraction_interval.tolist(),
                "examination_interval": self.examination_interval.tolist(),
                "warnings": list(self.warnings),
                "rankloop": rankloop.__version__,
            },
        )

    def save(self, path: str | Path) -> None:
        """Write the parameters to a JSON file, for `feedback.read_parameters` and position-based environments.

        The file of a fit that did not converge says so, and whoever reads it is warned.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        self.parameters().save(path)


def fit_pbm(
    log: ClickLog,
    *,
    smoothing: float = 1.0,
    confidence: float = 0.95,
    tolerance: float = 1e-7,
    max_steps: int | None = None,
    method: str = "newton",
) -> FittedPBM:
    """Estimate a position-based model by maximum likelihood on counts, as appendix E of Chen, Zhao and Li (2022) does.

    Every (query, item) has an attraction of its own; all share the examinations. Time and memory depend on the number
    of different (query, item, position), not on the length of the log.

    Parameters
    ----------
    log : ClickLog
        Counts, from `data.read_clicks` or `ClickLog.count`; `log.select(query=..., top=10)` for less than all.
    smoothing : float, optional
        Keeps estimates of rare items away from 0 and 1: each gets so many more examined impressions, clicked as often
        as those of all items together. 0 for none, which is maximum likelihood.
    confidence : float, optional
        Of the intervals.
    tolerance : float, optional
        When to stop: a step moves nothing further than this.
    max_steps : int, optional
        When to give up, with a warning and `converged` False; by default after 200 steps, or 1,000,000 of EM.
    method : str, optional
        ``"newton"``, which takes about ten steps, or ``"em"``, which can take hundreds of thousands to the same place.

    Returns
    -------
    FittedPBM
        The estimates, with their intervals.

    Departures
    ----------
    The appendix keeps only pages that consist of the ten most frequent items. Under this model a click depends on
    nothing else on the page, so all impressions of those items are used. Its examination of the first position is
    0.891; here the largest is 1, and attractions are smaller by the same factor. The appendix climbs by EM; Newton's
    method ends at the same maximum, and always gets there.

    References
    ----------
    A. Dempster, N. Laird, D. Rubin (1977). Maximum likelihood from incomplete data via the EM algorithm. D. Bertsekas
    (1982). Projected Newton methods for optimization problems with simple constraints.

    Examples
    --------
    >>> import numpy as np
    >>> from rankloop import feedback, logs
    >>> users = feedback.PositionBasedModel(attraction=[0.6, 0.3, 0.1], examination=[1.0, 0.5, 0.2])
    >>> rng = np.random.default_rng(1)
    >>> items = rng.permuted(np.tile(np.arange(3), (20_000, 1)), axis=1)
    >>> found = logs.fit_pbm(feedback.ClickLog.count(items=items, clicks=users.click(items, rng=rng)))
    >>> found.attraction.round(1), found.examination.round(1)
    (array([0.6, 0.3, 0.1]), array([1. , 0.5, 0.2]))
    """
    number("smoothing", smoothing, at_least=0)
    number("confidence", confidence, above=0, below=1)
    number("tolerance", tolerance, above=0, below=1)
    one_of("method", method, ("newton", "em"))
    usual = 200 if method == "newton" else 1_000_000
    steps = usual if max_steps is None else whole("max_steps", max_steps, at_least=1)
    if log.clicked.sum() == 0:
        raise ValueError(f"log must have a click, got none in {log.n_rows:,} rows of {log.name!r}")
    items, which = log.pairs()
    shown, clicked = log.shown.astype(np.float64), log.clicked.astype(np.float64)
    cells = Cells(which, log.positions, shown, clicked, len(items), log.n_positions)

    alpha, beta, prior = by_moments(cells, impressions=float(smoothing))
    reference = int(np.argmax(beta))
    group = identifiability.groups(cells)
    # One position of each group, the one that users look at most: without it the likelihood is flat.
    pinned = np.array([max(np.flatnonzero(group == g), key=beta.__getitem__) for g in np.unique(group)])
    if method == "newton":
        climb = Newton(cells, alpha=alpha, beta=beta, prior=prior, pinned=pinned)
        end = climb.maximise(tolerance=tolerance, max_steps=steps)
    else:
        end = maximise(
            cells,
            alpha=alpha,
            beta=beta,
            prior=prior,
            pinned=pinned,
            tolerance=tolerance,
            max_steps=steps,
        )
    known = group == group[reference]
    off = intervals.errors(
        cells, alpha=end.alpha, beta=end.beta, prior=prior, reference=reference, known=known
    )
    beta = np.where(cells.by_position(shown) > 0, end.beta, np.nan)
    several = len(log.query_ids) > 1
    told = identifiability.told(
        cells, group, reference, off.beta, lambda i: item_names(items[i : i + 1], several=several)[0]
    )
    if not end.converged:
        stopped = f"the fit was stopped after {len(end.trace)} steps, before it converged"
        told += (f"{stopped}: estimates and intervals are not those of the maximum",)
    for sentence in told:
        warnings.warn(f"{log.name}: {sentence}", ClickModelWarning, stacklevel=2)
    most_shown = np.zeros(len(items))
    np.maximum.at(most_shown, which, shown)
    order = np.argsort(-end.alpha, kind="stable")
    return FittedPBM(
        attraction=end.alpha[order],
        examination=beta,
        attraction_interval=intervals.attraction_interval(
            end.alpha, off.alpha, most_shown, confidence=confidence
        )[order],
        examination_interval=intervals.examination_interval(end.beta, off.beta, confidence=confidence),
        items=tuple(items[i] for i in order),
        shown=cells.by_item(shown).astype(np.int64)[order],
        clicked=cells.by_item(clicked).astype(np.int64)[order],
        reference=reference,
        confidence=confidence,
        smoothing=float(smoothing),
        trace=end.trace,
        converged=end.converged,
        method=method,
        warnings=told,
        log=log,
    )


def item_names(items: Sequence[tuple[str, str]], *, several: bool) -> tuple[str, ...]:
    """Items by name, with their query where there are several."""
    return tuple(f"{query}/{item}" if several else item for query, item in items)
