"""A linear ranker from a log of clicks: clicks are corrected for the positions that they were made at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number
from rankloop.feedback import LoggedLists, Sessions
from rankloop.logs.corrected_clicks import corrected_clicks
from rankloop.logs.item_features import item_features

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedRanker:
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
        given = item_features(features, len(self.weights))
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
    number("ridge", ridge, above=0)
    found = corrected_clicks(log, examination=examination, features=features, method=method, clip=clip)
    square = (found.x * found.times[:, None]).T @ found.x + ridge * np.eye(found.x.shape[1])
    weights = np.linalg.solve(square, found.x.T @ found.total).astype(np.float64)
    return FittedRanker(
        weights=weights,
        attraction=found.rates,
        method=method,
        clip=float(clip),
        bias=found.bias,
        n_impressions=int(found.times.sum()),
    )
