"""The cascade model: users read from the top, click on the first item that attracts them, and leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback import examination_chain
from rankloop.feedback.click_model import Chances, ClickModel, chances


@dataclass(frozen=True, eq=False)
class CascadeModel(ClickModel):
    """Users read down the list until they find an item that they like, click on it and leave: at most one click.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.

    References
    ----------
    N. Craswell, O. Zoeter, M. Taylor, B. Ramsey (2008). An experimental comparison of click position-bias models.
    *WSDM*.

    Examples
    --------
    >>> CascadeModel(attraction=[0.5, 0.5, 0.5]).click_probabilities([2, 0, 1])
    array([0.5  , 0.25 , 0.125])
    """

    attraction: Chances

    def __post_init__(self) -> None:
        object.__setattr__(self, "attraction", chances("attraction", self.attraction))

    def _chain(self, items: NDArray[np.int64]) -> tuple[Chances, Chances, Chances]:
        return self.attraction[items], np.zeros(items.shape), np.ones(items.shape)

    def _draw(self, items: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        return examination_chain.draw(*self._chain(items), rng)

    def _marginals(self, items: NDArray[np.int64]) -> Chances:
        return examination_chain.marginals(*self._chain(items))

    def _likelihood(self, items: NDArray[np.int64], clicks: NDArray[np.bool_]) -> Chances:
        return examination_chain.likelihood(*self._chain(items), clicks)
