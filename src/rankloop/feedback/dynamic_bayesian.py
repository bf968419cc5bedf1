"""The dynamic Bayesian model: an item may attract and then disappoint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback.browsing import Browsing, browsing
from rankloop.feedback.click_model import Chances, chances
from rankloop.feedback.examination_chain import ChainModel


@dataclass(frozen=True, eq=False)
class DynamicBayesianModel(ChainModel):
    """Users read down the list until an item that they clicked on satisfies them, or until they lose patience.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.
    satisfaction : Chances
        For each item, the chance that a user who clicked on it has what they wanted, and leaves.
    continuation : float, optional
        The chance that a user who is not satisfied goes on to the next item, clicked or not.

    Notation
    --------
    a_u -> attraction[u], s_u -> satisfaction[u], gamma -> continuation.

    References
    ----------
    O. Chapelle, Y. Zhang (2009). A dynamic Bayesian network click model for web search ranking. *WWW*.

    Examples
    --------
    >>> model = DynamicBayesianModel(attraction=[0.5, 0.5], satisfaction=[1.0, 0.0], continuation=0.8)
    >>> model.click_probabilities([0, 1]), model.click_probabilities([1, 0])
    (array([0.5, 0.2]), array([0.5, 0.4]))
    """

    attraction: Chances
    satisfaction: Chances
    continuation: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "attraction", chances("attraction", self.attraction))
        object.__setattr__(self, "satisfaction", chances("satisfaction", self.satisfaction))
        object.__setattr__(self, "continuation", float(chances("continuation", self.continuation, ndim=0)))
        if self.satisfaction.shape != self.attraction.shape:
            raise ValueError(
                f"satisfaction must have {self.n_items} numbers, one for each item as attraction has,"
                f" got {len(self.satisfaction)}"
            )

    def _browsing(self, m: int) -> Browsing:
        after_click = (1.0 - self.satisfaction[:, None]) * self.continuation
        return browsing(self.attraction, m, after_click=after_click, after_none=self.continuation)

    def _chain(self, items: NDArray[np.int64]) -> tuple[Chances, Chances, Chances]:
        after_click = (1.0 - self.satisfaction[items]) * self.continuation
        return self.attraction[items], after_click, np.full(items.shape, self.continuation)
