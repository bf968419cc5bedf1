"""A position-based model from a log of clicks."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

import rankloop
from rankloop.arguments import number, whole
from rankloop.feedback import ClickLog, ClickParameters, PositionBasedModel
from rankloop.kernels import click_fits
from rankloop.logs import intervals
from rankloop.logs.fitted_models import item_names
from rankloop.logs.intervals import Cells, Floats, Prior, by_moments


class Maximum(NamedTuple):
    """Where the steps ended."""

    alpha: Floats
    beta: Floats
    trace: Floats  # the objective at the start of each step
    converged: bool


def log_prior(prior: Prior, alpha: Floats) -> float:
    """The prior's part of the objective."""
    if prior.impressions == 0.0:
        return 0.0
    liked = xlogy(prior.mean, alpha) + xlog1py(1.0 - prior.mean, -alpha)
    return float(prior.impressions * liked.sum())


# Newton's method for the position-based model, on counts.
#
# A click has probability p = alpha_i beta_j, which depends on the product alone, so that one position, the reference,
# can be taken as always examined. In the logarithms of alpha and beta the log likelihood is concave, so
# that there is one maximum and nothing to be caught in. Given beta, each alpha_i is the root of one rising convex
# function; what remains is a concave function of a few positions, and Newton's method on it converges where EM, whose
# steps become shorter and shorter along a nearly flat ridge, takes hundreds of thousands of them.
#
# Steps are made of sums in the order of the cells and of +, -, * and /; logarithms only decide how long a step is.


_HALVINGS = 30
_RISE = 1e-4  # of what the slope promises, which a step must bring


class _ByItem(NamedTuple):
    """The cells of each item, one item after another."""

    starts: NDArray[np.int64]
    other: NDArray[np.int64]  # the position of each cell
    clicked: Floats
    missed: Floats


def _by_item(cells: Cells) -> _ByItem:
    if (cells.items[1:] >= cells.items[:-1]).all():
        positions, shown, clicked = cells.positions.copy(), cells.shown, cells.clicked
    else:
        order = np.argsort(cells.items, kind="stable")
        positions, shown, clicked = cells.positions[order], cells.shown[order], cells.clicked[order]
    ends = np.cumsum(np.bincount(cells.items, minlength=cells.n_items))
    return _ByItem(np.append(0, ends), positions, clicked, shown - clicked)


class Newton:
    """One fit: the counts by position, the prior, and where the steps are."""

    def __init__(
        self, cells: Cells, *, alpha: Floats, beta: Floats, prior: Prior, pinned: NDArray[np.int64]
    ) -> None:
        order = np.argsort(cells.positions, kind="stable")
        self.cells = Cells(
            cells.items[order],
            cells.positions[order],
            cells.shown[order],
            cells.clicked[order],
            cells.n_items,
            cells.n_positions,
        )
        self.by_item = _by_item(cells)
        self.missed = self.cells.shown - self.cells.clicked
        self.starts = np.searchsorted(self.cells.positions, np.arange(cells.n_positions + 1))
        self.prior = prior
        self.clicks_at = self.cells.by_position(self.cells.clicked)
        # Without a click at a position, nobody looks there; the pinned ones stay as they are.
        self.free = self.clicks_at > 0
        self.free[pinned] = False
        self.beta = np.where(self.free, beta.clip(1e-6, 1.0), beta)
        self.beta[(self.clicks_at == 0)] = 0.0
        self.beta[pinned] = beta[pinned]
        self.alpha = self._best_alpha(self.beta, alpha.clip(1e-6, 1.0 - 1e-6))
        self.beta = self._best_beta()
        self.alpha = self._best_alpha(self.beta, self.alpha)

    def maximise(self, *, tolerance: float, max_steps: int) -> Maximum:
        """Steps until none moves an examination by more than `tolerance`."""
        trace = [self.objective(self.alpha, self.beta)]
        for _ in range(max_steps):
            slope, curvature = self._derivatives()
            free = self.free & ~((self.beta >= 1.0) & (slope > 0.0))
            direction = np.zeros_like(self.beta)
            direction[free] = _solve(curvature[np.ix_(free, free)], slope[free])
            small = float(np.abs(direction * self.beta).max(initial=0.0)) <= tolerance
            risen = self._step(direction / max(1.0, np.abs(direction).max(initial=0.0)), slope, trace[-1])
            level = bool((np.abs(slope[free]) <= 1e-9 * self.clicks_at[free]).all())
            if small and (risen or level):
                return Maximum(self.alpha, self.beta, np.array(trace), True)
            if not risen:  # a corner: given alpha, each position by itself, and then the other way round
                self.beta = self._best_beta()
                self.alpha = self._best_alpha(self.beta, self.alpha)
            trace.append(self.objective(self.alpha, self.beta))
        return Maximum(self.alpha, self.beta, np.array(trace), False)

    def objective(self, alpha: Floats, beta: Floats) -> float:
        """The log likelihood and the prior."""
        p = alpha[self.cells.items] * beta[self.cells.positions]
        likelihood = xlogy(self.cells.clicked, p).sum() + xlog1py(self.missed, -p).sum()
        return float(likelihood + log_prior(self.prior, alpha))

    def _step(self, direction: Floats, slope: Floats, value: float) -> bool:
        """Go along `direction`, in logarithms, as far as the objective rises enough; False if nowhere."""
        length = 1.0
        for _ in range(_HALVINGS):
            half = 0.5 * length * direction
            beta = np.minimum(self.beta * (1.0 + half) / (1.0 - half), 1.0)  # exp up to the second order
            beta = np.where(self.free, beta, self.beta)
            both = beta + self.beta
            moved = 2.0 * np.divide(beta - self.beta, both, out=np.zeros_like(both), where=both > 0)
            alpha = self._best_alpha(beta, self.alpha)
            # Sums of a million logarithms are exact to about this much.
            noise = 1e-13 * abs(value)
            if self.objective(alpha, beta) >= value + _RISE * float((slope * moved).sum()) - noise:
                self.alpha, self.beta = alpha, beta
                return True
            length *= 0.5
        return False

    def _best_alpha(self, beta: Floats, start: Floats) -> Floats:
        prior, by_item, x = self.prior, self.by_item, start.copy()
        liked = prior.impressions * prior.mean
        click_fits.likeliest(
            by_item.starts,
            by_item.other,
            beta,
            by_item.clicked,
            by_item.missed,
            liked,
            prior.impressions - liked,
            x,
        )
        return x

    def _best_beta(self) -> Floats:
        cells, x = self.cells, self.beta.copy()
        click_fits.likeliest(self.starts, cells.items, self.alpha, cells.clicked, self.missed, 0.0, 0.0, x)
        return np.where(self.free, x, self.beta)

    def _derivatives(self) -> tuple[Floats, Floats]:
        """Slope and curvature (its negative) of the objective in log beta, each alpha being the best for it."""
        cells, prior = self.cells, self.prior
        p = self.alpha[cells.items] * self.beta[cells.positions]
        odds = np.divide(p, 1.0 - p, out=np.zeros_like(p), where=self.missed > 0)
        slope = cells.by_position(cells.clicked - self.missed * odds)
        bend = self.missed * odds * (1.0 + odds)
        inside = self.alpha < 1.0
        of_items = cells.by_item(bend)
        missed = prior.impressions * (1.0 - prior.mean)
        of_items[inside] += missed * self.alpha[inside] / (1.0 - self.alpha[inside]) ** 2
        inside &= of_items > 0.0
        curvature = np.diag(cells.by_position(bend))
        share = np.zeros(cells.n_items)
        for j in np.flatnonzero(self.free):
            here = slice(self.starts[j], self.starts[j + 1])
            share[:] = 0.0
            share[cells.items[here]] = bend[here]
            share = np.divide(share, of_items, out=np.zeros_like(share), where=inside)
            curvature[j] -= cells.by_position(bend * share[cells.items])
        return slope, curvature


def _solve(matrix: Floats, right: Floats) -> Floats:
    """The solution for a symmetric matrix without negative directions, by elimination; flat ones are damped."""
    size = len(right)
    a, b = matrix.copy(), right.copy()
    scale = np.diag(matrix).copy()
    a[np.arange(size), np.arange(size)] += 1e-12 * scale
    for k in range(size):
        pivot = max(a[k, k], 1e-10 * scale[k])
        a[k, k] = pivot
        if pivot <= 0.0:
            continue
        factor = a[k + 1 :, k] / pivot
        a[k + 1 :, k + 1 :] -= factor[:, None] * a[k, k + 1 :]
        b[k + 1 :] -= factor * b[k]
    x = np.zeros(size)
    for k in range(size - 1, -1, -1):
        rest = b[k]
        for j in range(k + 1, size):
            rest = rest - a[k, j] * x[j]
        x[k] = rest / a[k, k] if a[k, k] > 0.0 else np.sign(rest)
    return x


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
    shown, clicked : ndarray of int
        How often each item was shown, and clicked.
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
        How the maximum was found: ``"newton"``.
    warnings : tuple of str
        What the log does not tell, in sentences.
    log : ClickLog
        The log that the model was fitted to.
    """

    attraction: Floats
    examination: Floats
    attraction_interval: Floats
    examination_interval: Floats
    items: tuple[tuple[str, str], ...]
    shown: NDArray[np.int64]
    clicked: NDArray[np.int64]
    reference: int
    confidence: float
    smoothing: float
    trace: Floats
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
        """Write the parameters to the JSON file `path`, for `feedback.read_parameters` and position-based environments.

        The file of a fit that did not converge says so, and whoever reads it is warned.
        """
        self.parameters().save(path)


def fit_pbm(
    log: ClickLog,
    *,
    smoothing: float = 1.0,
    confidence: float = 0.95,
    tolerance: float = 1e-7,
    max_steps: int = 200,
    method: str | None = None,
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
        When to give up, with a warning and `converged` False.
    method : str, optional
        Ignored: Newton's method takes about ten steps where EM takes hundreds of thousands to the same place.

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
    steps = whole("max_steps", max_steps, at_least=1)
    if method is not None:
        said = "method is ignored and will go: Newton's method ends where EM does"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
    if log.clicked.sum() == 0:
        raise ValueError(f"log must have a click, got none in {log.n_rows:,} rows of {log.name!r}")
    items, which = log.pairs()
    shown, clicked = log.shown.astype(np.float64), log.clicked.astype(np.float64)
    cells = Cells(which, log.positions, shown, clicked, len(items), log.n_positions)

    alpha, beta, prior = by_moments(cells, impressions=float(smoothing))
    reference = int(np.argmax(beta))
    group = intervals.comparable_groups(cells)
    # One position of each group, the one that users look at most: without it the likelihood is flat.
    pinned = np.array([max(np.flatnonzero(group == g), key=beta.__getitem__) for g in np.unique(group)])
    climb = Newton(cells, alpha=alpha, beta=beta, prior=prior, pinned=pinned)
    end = climb.maximise(tolerance=tolerance, max_steps=steps)
    known = group == group[reference]
    off = intervals.errors(
        cells, alpha=end.alpha, beta=end.beta, prior=prior, reference=reference, known=known
    )
    beta = np.where(cells.by_position(shown) > 0, end.beta, np.nan)
    several = len(log.query_ids) > 1
    sentences = intervals.identification_warnings(
        cells, group, reference, off.beta, lambda i: item_names(items[i : i + 1], several=several)[0]
    )
    if not end.converged:
        stopped = f"the fit was stopped after {len(end.trace)} steps, before it converged"
        sentences += (f"{stopped}: estimates and intervals are not those of the maximum",)
    for sentence in sentences:
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
        method="newton",
        warnings=sentences,
        log=log,
    )
