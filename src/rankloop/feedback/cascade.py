"""The cascade model: users read from the top, click on the first item that attracts them, and leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback.browsing import Browsing, browsing
from rankloop.feedback.click_model import Chances, chances
from rankloop.feedback.examination_chain import ChainModel


@dataclass(frozen=True, eq=False)
class CascadeModel(ChainModel):
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

    def _browsing(self, m: int) -> Browsing:
        return browsing(self.attraction, m, after_click=0.0)

    def _chain(self, items: NDArray[np.int64]) -> tuple[Chances, Chances, Chances]:
        return self.attraction[items], np.zeros(items.shape), np.ones(items.shape)
