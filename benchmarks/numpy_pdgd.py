"""PDGD as a careful NumPy user writes it: each step of the round is one call on whole arrays."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logsumexp


class PDGD:
    """Linear PDGD on lists of documents, with users who go down the list and stop."""

    def __init__(
        self, *, n_features: int, n_positions: int, learning_rate: float, rng: np.random.Generator
    ) -> None:
        self.w = np.zeros(n_features)
        self.n_positions, self.eta, self.rng = n_positions, learning_rate, rng

    def rank(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The shown documents, drawn by adding Gumbel noise to the scores, and all scores."""
        scores = X @ self.w
        noisy = scores + self.rng.gumbel(size=len(scores))
        m = min(self.n_positions, len(scores))
        top = np.argpartition(-noisy, m - 1)[:m]
        return top[np.argsort(-noisy[top])], scores

    def learn(self, X: np.ndarray, shown: np.ndarray, scores: np.ndarray, clicks: np.ndarray) -> None:
        """One step: every preference at once, the weight from logarithms of what is left at each position."""
        clicked = np.flatnonzero(clicks)
        if not len(clicked):
            return
        seen = min(clicked[-1] + 2, len(shown))
        others = np.flatnonzero(clicks[:seen] == 0)
        if not len(others):
            return
        s = scores[shown]
        k, l = np.repeat(clicked, len(others)), np.tile(others, len(clicked))  # noqa: E741
        odds = self._log_odds(s, np.delete(scores, shown), np.minimum(k, l), np.maximum(k, l))
        slope = expit(s[k] - s[l]) * expit(s[l] - s[k])
        size = expit(-odds) * slope
        step = np.bincount(k, size, len(shown)) - np.bincount(l, size, len(shown))
        self.w += self.eta * (step @ X[shown])

    @staticmethod
    def _log_odds(s: np.ndarray, rest: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # log P(R) - log P(R*): the sum over positions from a + 1 to b of log(Z + e^a - e^b) - log(Z).
        top = max(s.max(), rest.max(initial=-np.inf))
        weights = np.exp(s - top)
        tail = float(np.exp(logsumexp(rest) - top)) if len(rest) else 0.0
        left = np.cumsum(weights[::-1])[::-1] + tail
        positions = np.arange(len(s))
        between = (positions > a[:, None]) & (positions <= b[:, None])
        without = np.maximum(left - weights[b][:, None], 0.0) + weights[a][:, None]
        ratio: np.ndarray = np.where(between, np.log(without) - np.log(left), 0.0).sum(axis=1)
        return ratio


def clicks_on(
    grades: np.ndarray, attraction: np.ndarray, stop: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """One user's clicks on documents of these grades, from the top."""
    luck = rng.random((2, len(grades)))
    clicks = luck[0] < attraction[grades]
    stops = np.flatnonzero(clicks & (luck[1] < stop[grades]))
    if len(stops):
        clicks[stops[0] + 1 :] = False
    return clicks.astype(np.float64)
