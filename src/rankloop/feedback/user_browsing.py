"""The user browsing model: who looks where depends on where they clicked last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback.browsing import Browsing, browsing
from rankloop.feedback.click_model import Chances, ClickModel, chances


@dataclass(frozen=True, eq=False)
class UserBrowsingModel(ClickModel):
    """The chance to look at a position depends on the position and on the last click above it.

    With rows that do not depend on the last click it is the position-based model.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.
    examination : Chances
        A square matrix: in row j (from 0), column 0 is the chance to look at position j when nothing above was
        clicked; column r that chance when the last click was on the r-th position from the top. Columns beyond
        j are never used and may hold anything from 0 to 1.

    Notation
    --------
    gamma_{r, d} with rank r and distance d -> examination[r - 1, r - d], and column 0 where there was no click.

    References
    ----------
    G. Dupret, B. Piwowarski (2008). A user browsing model to predict search engine click data from past
    observations. *SIGIR*.

    Examples
    --------
    >>> model = UserBrowsingModel(attraction=[0.5, 0.5], examination=[[1.0, 0.0], [0.2, 0.8]])
    >>> model.click_probabilities([0, 1])
    array([0.5 , 0.25])
    """

    attraction: Chances
    examination: Chances

    def __post_init__(self) -> None:
        object.__setattr__(self, "attraction", chances("attraction", self.attraction))
        object.__setattr__(self, "examination", chances("examination", self.examination, ndim=2))
        rows, columns = self.examination.shape
        if rows != columns:
            raise ValueError(f"examination must be a square matrix, got {rows} by {columns}")
        object.__setattr__(self, "n_positions", rows)

    def _browsing(self, m: int) -> Browsing:
        return browsing(self.attraction, m, examination=self.examination[:m, :m])

    def _draw(self, items: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        likes = rng.random(items.shape) < self.attraction[items]
        luck = rng.random(items.shape)
        last = np.zeros(items.shape[:-1], np.int64)
        for j in range(items.shape[-1]):
            likes[..., j] &= luck[..., j] < self.examination[j, last]
            last = np.where(likes[..., j], j + 1, last)
        return likes

    def _marginals(self, items: NDArray[np.int64]) -> Chances:
        m = items.shape[-1]
        likes = self.attraction[items]
        # The chance that the last click was there, with 0 for none yet.
        last = np.zeros((*items.shape[:-1], m + 1))
        last[..., 0] = 1.0
        p = np.empty(items.shape)
        for j in range(m):
            clicks = last[..., : j + 1] * self.examination[j, : j + 1] * likes[..., j, None]
            p[..., j] = clicks.sum(axis=-1)
            last[..., : j + 1] -= clicks
            last[..., j + 1] = p[..., j]
        return p

    def _likelihood(self, items: NDArray[np.int64], clicks: NDArray[np.bool_]) -> Chances:
        likes = self.attraction[items]
        last = np.zeros(items.shape[:-1], np.int64)
        chance = np.ones(items.shape[:-1])
        for j in range(items.shape[-1]):
            p = likes[..., j] * self.examination[j, last]
            chance = chance * np.where(clicks[..., j], p, 1.0 - p)
            last = np.where(clicks[..., j], j + 1, last)
        return chance
