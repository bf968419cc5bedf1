"""A linear ranker from a log of clicks: clicks are corrected for the positions that they were made at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, numbers, one_of, shares
from rankloop.feedback import Sessions

Numbers = NDArray[np.float64]

METHODS = ("ips", "doubly-robust")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedRanker:
    """Weights of features that predict how attractive an item is.

    Parameters
    ----------
    weights : ndarray of float
        One for each feature.
    attraction : ndarray of float
        The corrected click rate of each item that the weights were fitted to; not a number for one never shown.
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

    weights: Numbers
    attraction: Numbers
    method: str
    clip: float
    bias: float
    n_impressions: int

    def __repr__(self) -> str:
        told = f"{len(self.weights)} weights from {self.n_impressions:,} impressions by {self.method}"
        return f"FittedRanker({told}" + (
            f", bias of at most {self.bias:.3f} by clipping)" if self.bias else ")"
        )

    def order(self, features: ArrayLike) -> NDArray[np.int64]:
        """Items by falling score.

        Parameters
        ----------
        features : array_like
            Items by features.

        Returns
        -------
        ndarray of int
            Item numbers, best first.
        """
        given = numbers("features", features)
        if given.ndim != 2 or given.shape[1] != len(self.weights):
            raise ValueError(
                f"features must be items by {len(self.weights)} features, got shape {given.shape}"
            )
        return np.argsort(-(given * self.weights).sum(axis=1), kind="stable")

    def as_argument(self) -> list[float]:
        """The weights, as the argument `warm_start` of a linear ranker is written down.

        Returns
        -------
        list of float
            One for each feature.
        """
        return [float(weight) for weight in self.weights]


def fit_ranker(
    sessions: Sessions,
    *,
    examination: ArrayLike,
    features: ArrayLike,
    method: str = "doubly-robust",
    clip: float = 20.0,
    ridge: float = 1.0,
) -> FittedRanker:
    """Fit weights of features to clicks, each weighed by how seldom users look at its position.

    Where users look with the chances `examination`, a click divided by the chance at its position is on average the
    attraction of the item, wherever the log showed it. The weights are those of least squares to these.

    Parameters
    ----------
    sessions : Sessions
        The pages.
    examination : array_like
        For each position, the chance that users look there, such as `FittedModel.examination`.
    features : array_like
        Items by features.
    method : str, optional
        ``"ips"`` for clicks over chances; ``"doubly-robust"`` for a guess of each item's attraction from one half of
        the pages, corrected so by the clicks of the other half. The two differ where weights are clipped: there the
        guess makes up for what is cut off. Without clipping it cancels.
    clip : float, optional
        The largest weight of a click. `bias` of the result says what clipping may have done.
    ridge : float, optional
        How much weights are pulled to 0, in impressions.

    Returns
    -------
    FittedRanker
        The weights.

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
    one_of("method", method, METHODS)
    number("clip", clip, at_least=1)
    number("ridge", ridge, above=0)
    beta = shares("examination", examination, length=sessions.n_positions, positive=True)
    x = numbers("features", features)
    if x.ndim != 2 or len(x) != sessions.n_items or not np.isfinite(x).all():
        raise ValueError(
            f"features must be {sessions.n_items} items by features, finite, got shape {x.shape}"
        )
    w = np.minimum(1.0 / beta, clip)
    halves = [_counts(sessions, half) for half in (0, 1)]
    corrected = np.zeros(len(x))
    for half, (shown, clicked) in enumerate(halves):
        guess = _guess(*halves[1 - half], beta) if method == "doubly-robust" else np.zeros(len(x))
        corrected += ((clicked - shown * beta * guess[:, None]) * w).sum(axis=1) + shown.sum(axis=1) * guess
    times = halves[0][0].sum(axis=1) + halves[1][0].sum(axis=1)
    square = (x * times[:, None]).T @ x + ridge * np.eye(x.shape[1])
    weights = np.linalg.solve(square, x.T @ corrected)
    at = (halves[0][0] + halves[1][0]).sum(axis=0)
    return FittedRanker(
        weights=weights,
        attraction=np.divide(corrected, times, out=np.full(len(x), np.nan), where=times > 0),
        method=method,
        clip=float(clip),
        bias=float((at * (1.0 - beta * w)).sum() / at.sum()),
        n_impressions=int(at.sum()),
    )


def _counts(sessions: Sessions, half: int) -> tuple[Numbers, Numbers]:
    """Impressions and clicks of every other page, items by positions."""
    items, clicks = sessions.items[half::2], sessions.clicks[half::2]
    rows, places = np.nonzero(items >= 0)
    cells = items[rows, places].astype(np.int64) * sessions.n_positions + places
    shape = (sessions.n_items, sessions.n_positions)
    shown = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    clicked = np.bincount(cells, clicks[rows, places], shape[0] * shape[1]).reshape(shape)
    return shown.astype(np.float64), clicked.astype(np.float64)


def _guess(shown: Numbers, clicked: Numbers, beta: Numbers) -> Numbers:
    """The click rate of each item among those who looked, with one more of them that clicks as often as all do."""
    looks = (shown * beta).sum(axis=1)
    mean = clicked.sum() / max(float(looks.sum()), 1e-12)
    rate: Numbers = (clicked.sum(axis=1) + mean) / (looks + 1.0)
    return rate.clip(0.0, 1.0)
