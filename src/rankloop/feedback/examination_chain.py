"""Users who read down the list and may stop after each item: what cascade, dependent click and dynamic Bayesian share.

The user looks at the first item for certain. Having looked at an item, they click with the chance `likes`; then they
look at the next one with the chance `after_click` or `after_none`. A user who stops never looks again. All arrays have
the position as their last axis.
"""

from __future__ import annotations

import abc

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback.click_model import Chances, ClickModel


def draw(
    likes: Chances, after_click: Chances, after_none: Chances, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """The clicks of one user on each list."""
    clicks = rng.random(likes.shape) < likes
    goes_on = rng.random(likes.shape) < np.where(clicks, after_click, after_none)
    looks = np.ones(likes.shape, np.bool_)
    looks[..., 1:] = np.logical_and.accumulate(goes_on[..., :-1], axis=-1)
    return clicks & looks


def marginals(likes: Chances, after_click: Chances, after_none: Chances) -> Chances:
    """The chance of a click at each position."""
    goes_on = likes * after_click + (1.0 - likes) * after_none
    looks = np.ones(likes.shape)
    looks[..., 1:] = np.multiply.accumulate(goes_on[..., :-1], axis=-1)
    return looks * likes


def likelihood(
    likes: Chances, after_click: Chances, after_none: Chances, clicks: NDArray[np.bool_]
) -> Chances:
    """The chance of these clicks: the sum over all places where the user may have stopped."""
    reading, stopped = np.ones(likes.shape[:-1]), np.zeros(likes.shape[:-1])
    for j in range(likes.shape[-1]):
        clicked = clicks[..., j]
        seen = reading * np.where(clicked, likes[..., j], 1.0 - likes[..., j])
        goes_on = np.where(clicked, after_click[..., j], after_none[..., j])
        # A click proves that the user was still reading.
        stopped = np.where(clicked, 0.0, stopped) + seen * (1.0 - goes_on)
        reading = seen * goes_on
    return reading + stopped


class ChainModel(ClickModel):
    """A click model of this kind: subclasses say which chances each list has."""

    @abc.abstractmethod
    def _chain(self, items: NDArray[np.int64]) -> tuple[Chances, Chances, Chances]:
        """The chances `likes`, `after_click` and `after_none` at each position of lists that were checked."""

    def _draw(self, items: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        return draw(*self._chain(items), rng)

    def _marginals(self, items: NDArray[np.int64]) -> Chances:
        return marginals(*self._chain(items))

    def _likelihood(self, items: NDArray[np.int64], clicks: NDArray[np.bool_]) -> Chances:
        return likelihood(*self._chain(items), clicks)
