"""The dependent click model: after a click, some users read on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback.browsing import Browsing, browsing
from rankloop.feedback.click_model import Chances, chances
from rankloop.feedback.examination_chain import ChainModel


@dataclass(frozen=True, eq=False)
class DependentClickModel(ChainModel):
    """A cascade with several clicks: after a click the user reads on with a chance that depends on the position.

    Without a click they always read on. With `continuation` 0 everywhere it is the cascade model.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.
    continuation : Chances
        For each position, the chance to read on after a click there.

    Notation
    --------
    lambda_j -> continuation[j].

    References
    ----------
    F. Guo, C. Liu, Y. M. Wang (2009). Efficient multiple-click models in web search. *WSDM*.

    Examples
    --------
    >>> model = DependentClickModel(attraction=[0.5, 0.5, 0.5], continuation=[0.5, 0.5, 0.5])
    >>> model.click_probabilities([2, 0, 1])
    array([0.5    , 0.375  , 0.28125])
    """

    attraction: Chances
    continuation: Chances

    def __post_init__(self) -> None:
        object.__setattr__(self, "attraction", chances("attraction", self.attraction))
        object.__setattr__(self, "continuation", chances("continuation", self.continuation))
        object.__setattr__(self, "n_positions", len(self.continuation))

    def _browsing(self, m: int) -> Browsing:
        return browsing(self.attraction, m, after_click=self.continuation[:m])

    def _chain(self, items: NDArray[np.int64]) -> tuple[Chances, Chances, Chances]:
        after_click = np.broadcast_to(self.continuation[: items.shape[-1]], items.shape)
        return self.attraction[items], after_click, np.ones(items.shape)
