"""The click chain model: whether a user reads on depends on what they clicked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback.browsing import Browsing, browsing
from rankloop.feedback.click_model import Chances, chances
from rankloop.feedback.examination_chain import ChainModel


@dataclass(frozen=True, eq=False)
class ClickChainModel(ChainModel):
    """Users read down the list, and read on with a chance that depends on the click and on how good the item was.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks; it is also how relevant the item turns out.
    continuation : Chances
        Three chances to read on: without a click, after a click on an item that is irrelevant, and after a click on
        one that is relevant. An item of attraction a counts as relevant with the chance a.

    Notation
    --------
    R_i -> attraction[i], alpha_1, alpha_2, alpha_3 -> continuation[0], continuation[1], continuation[2].

    References
    ----------
    F. Guo, C. Liu, A. Kannan, T. Minka, M. Taylor, Y.-M. Wang, C. Faloutsos (2009). Click chain model in web search.
    *WWW*.

    Examples
    --------
    >>> model = ClickChainModel(attraction=[1.0, 0.5], continuation=[1.0, 1.0, 0.5])
    >>> model.click_probabilities([0, 1]), model.click_probabilities([1, 0])
    (array([1.  , 0.25]), array([0.5  , 0.875]))
    """

    attraction: Chances
    continuation: Chances

    def __post_init__(self) -> None:
        object.__setattr__(self, "attraction", chances("attraction", self.attraction))
        object.__setattr__(self, "continuation", chances("continuation", self.continuation))
        if len(self.continuation) != 3:
            raise ValueError(f"continuation must have 3 numbers, got {len(self.continuation)}")

    def _browsing(self, m: int) -> Browsing:
        likes = self.attraction[:, None]
        skipped, irrelevant, relevant = self.continuation
        after_click = irrelevant * (1.0 - likes) + relevant * likes
        return browsing(self.attraction, m, after_click=after_click, after_none=float(skipped))

    def _chain(self, items: NDArray[np.int64]) -> tuple[Chances, Chances, Chances]:
        likes = self.attraction[items]
        skipped, irrelevant, relevant = self.continuation
        return likes, irrelevant * (1.0 - likes) + relevant * likes, np.full(items.shape, skipped)
