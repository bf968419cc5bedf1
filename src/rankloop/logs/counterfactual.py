"""A linear ranker from a log of clicks: clicks are corrected for the positions that they were made at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, one_of, shares
from rankloop.feedback import LoggedLists, Sessions
from rankloop.logs.regression import OrdersItems, features_of_items, item_features

# Clicks corrected for the positions that they were made at, so that they average to attractions.


Floats = NDArray[np.float64]

METHODS = ("ips", "doubly-robust")


@dataclass(frozen=True, slots=True)
class CorrectedClicks:
    """For each item (or, in lists with features, each shown candidate) its features and its corrected clicks.

    `total / times` estimates the attraction. `bias` is the most by which clipping may have moved it, on average over
    impressions.
    """

    x: Floats
    times: Floats
    total: Floats
    bias: float

    @property
    def rates(self) -> Floats:
        """Corrected click rates; not a number for an item never shown."""
        unknown = np.full(len(self.x), np.nan)
        rates: Floats = np.divide(self.total, self.times, out=unknown, where=self.times > 0)
        return rates


def corrected_clicks(
    log: Sessions | LoggedLists, *, examination: Any, features: Any, method: str, clip: float
) -> CorrectedClicks:
    """Read the arguments, and divide clicks by the chance of a look, at most by as much as `clip` says.

    With ``"doubly-robust"`` a guess at the attraction, from the other half of the rows, stands in for what is cut off.
    """
    one_of("method", method, METHODS)
    number("clip", clip, at_least=1)
    beta = shares("examination", examination, length=log.n_positions, positive=True)
    w = np.minimum(1.0 / beta, clip)
    guessing = method == "doubly-robust"
    x = features_of_items(log, features)
    if x is None:
        assert isinstance(log, LoggedLists)
        return _of_candidates(log, beta, w, guessing)
    halves = [_counts(log, half) for half in (0, 1)]
    total = np.zeros(len(x))
    for half, (shown, clicked) in enumerate(halves):
        guess = _guess(*halves[1 - half], beta) if guessing else np.zeros(len(x))
        total += ((clicked - shown * beta * guess[:, None]) * w).sum(axis=1) + shown.sum(axis=1) * guess
    times = halves[0][0] + halves[1][0]
    at = times.sum(axis=0)
    bias = float((at * (1.0 - beta * w)).sum() / at.sum())
    return CorrectedClicks(x, times.sum(axis=1), total, bias)


def _of_candidates(log: LoggedLists, beta: Floats, w: Floats, guessing: bool) -> CorrectedClicks:
    assert log.features is not None
    shown = log.items >= 0
    rows = np.broadcast_to(np.arange(log.n_rows)[:, None], log.items.shape)[shown]
    x = log.features.rows[(log.features.starts[:-1, None] + log.items)[shown]]
    place, clicks = log.positions[shown], log.clicks[shown].astype(np.float64)
    guess = np.zeros(len(x))
    if guessing:
        for half in (0, 1):
            here = rows % 2 == half
            guess[here] = _guess_by_features(x[~here], place[~here], clicks[~here], beta, x[here])
    total = (clicks - beta[place] * guess) * w[place] + guess
    return CorrectedClicks(x, np.ones(len(x)), total, float((1.0 - beta * w)[place].mean()))


def _counts(log: Sessions | LoggedLists, half: int) -> tuple[Floats, Floats]:
    """Impressions and clicks of every other page, items by positions."""
    items, clicks = log.items[half::2], log.clicks[half::2]
    rows, columns = np.nonzero(items >= 0)
    places = log.positions[half::2][rows, columns] if isinstance(log, LoggedLists) else columns
    cells = items[rows, columns].astype(np.int64) * log.n_positions + places
    shape = (log.n_items, log.n_positions)
    shown = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    clicked = np.bincount(cells, clicks[rows, columns], shape[0] * shape[1]).reshape(shape)
    return shown.astype(np.float64), clicked.astype(np.float64)


def _guess(shown: Floats, clicked: Floats, beta: Floats) -> Floats:
    """The click rate of each item among those who looked, with one more of them that clicks as often as all do."""
    looks = (shown * beta).sum(axis=1)
    mean = clicked.sum() / max(float(looks.sum()), 1e-12)
    rate: Floats = (clicked.sum(axis=1) + mean) / (looks + 1.0)
    return rate.clip(0.0, 1.0)


def _guess_by_features(
    x: Floats, place: NDArray[np.int64], clicks: Floats, beta: Floats, wanted: Floats
) -> Floats:
    """Attractions linear in the features, by least squares of clicks to examination times attraction."""
    seen = np.column_stack([np.ones(len(x)), x]) * beta[place][:, None]
    fitted = np.linalg.solve(seen.T @ seen + np.eye(seen.shape[1]), seen.T @ clicks)
    guess: Floats = fitted[0] + wanted @ fitted[1:]
    return guess.clip(0.0, 1.0)


def told_of(ranker: Any, what: str) -> str:
    """What was fitted to corrected clicks, in a line."""
    bias = f", bias of at most {ranker.bias:.3f} by clipping" if ranker.bias else ""
    return (
        f"{type(ranker).__name__}({what} from {ranker.n_impressions:,} impressions by {ranker.method}{bias})"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedRanker(OrdersItems):
    """Weights of features that predict how attractive an item is.

    Parameters
    ----------
    weights : ndarray of float
        One for each feature.
    attraction : ndarray of float
        The corrected click rate of each item that the weights were fitted to; not a number for one never shown. For
        lists with features of their own, of each shown candidate, list by list.
    method : str
        How clicks were corrected.
    clip : float
        The largest weight of a click.
    bias : float
        The most by which clipping may have moved the corrected click rates, on average over impressions, whatever the
        guess; 0 where no weight was clipped.
    n_impressions : int
        How many impressions the log has.
    """

    weights: Floats
    attraction: Floats
    method: str
    clip: float
    bias: float
    n_impressions: int

    def __repr__(self) -> str:
        return told_of(self, f"{len(self.weights)} weights")

    def _scores(self, features: ArrayLike) -> Floats:
        scores: Floats = (item_features(features, len(self.weights)) * self.weights).sum(axis=1)
        return scores

    def as_argument(self) -> list[float]:
        """The weights, as the argument `warm_start` of a linear ranker is written down."""
        return [float(weight) for weight in self.weights]


def fit_ranker(
    log: Sessions | LoggedLists,
    *,
    examination: ArrayLike,
    features: ArrayLike | None = None,
    method: str = "doubly-robust",
    clip: float = 20.0,
    ridge: float = 1.0,
) -> FittedRanker:
    """Fit weights of features to clicks, each weighed by how seldom users look at its position.

    Where users look with the chances `examination`, a click divided by the chance at its position is on average the
    attraction of the item, wherever the log showed it. The weights are those of least squares to these.

    Parameters
    ----------
    log : Sessions or LoggedLists
        The lists. Those of `LoggedLists` with features bring their own.
    examination : array_like
        For each position, the chance that users look there, such as `FittedModel.examination`.
    features : array_like, optional
        Items by features, for items that are the same in every list.
    method : str, optional
        ``"ips"`` for clicks over chances; ``"doubly-robust"`` for a guess of each item's attraction from one half of
        the pages, corrected so by the clicks of the other half. The two differ where weights are clipped: there the
        guess makes up for what is cut off. Without clipping it cancels.
    clip : float, optional
        The largest weight of a click. `bias` of the result says what clipping may have done.
    ridge : float, optional
        How much weights are pulled to 0, in impressions.

    References
    ----------
    T. Joachims, A. Swaminathan, T. Schnabel (2017). Unbiased learning-to-rank with biased feedback. *WSDM*.
    H. Oosterhuis (2023). Doubly robust estimation for correcting position bias in click feedback for unbiased learning
    to rank. *ACM Transactions on Information Systems*.

    Examples
    --------
    >>> import numpy as np
    >>> from rankloop import feedback, logs
    >>> features = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> users = feedback.PositionBasedModel(attraction=features @ [0.2, 0.8], examination=[1.0, 0.3, 0.1])
    >>> rng = np.random.default_rng(1)
    >>> items = rng.permuted(np.tile(np.arange(3), (10_000, 1)), axis=1)
    >>> pages = feedback.Sessions(items=items, clicks=users.click(items, rng=rng))
    >>> logs.fit_ranker(pages, examination=[1.0, 0.3, 0.1], features=features).weights.round(1)
    array([0.2, 0.8])
    """
    number("ridge", ridge, above=0)
    corrected = corrected_clicks(log, examination=examination, features=features, method=method, clip=clip)
    square = (corrected.x * corrected.times[:, None]).T @ corrected.x + ridge * np.eye(corrected.x.shape[1])
    weights = np.linalg.solve(square, corrected.x.T @ corrected.total).astype(np.float64)
    return FittedRanker(
        weights=weights,
        attraction=corrected.rates,
        method=method,
        clip=float(clip),
        bias=corrected.bias,
        n_impressions=int(corrected.times.sum()),
    )
