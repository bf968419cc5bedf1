"""The position-based model: who looks where depends on the position alone."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback.browsing import Browsing, browsing
from rankloop.feedback.click_model import Chances, ClickModel, chances


class IndependentModel(ClickModel):
    """A click model in which positions do not influence each other: subclasses say who looks and who then clicks."""

    @abc.abstractmethod
    def _examined(self, m: int) -> Chances:
        """The chance to look at each of the first m positions."""

    @abc.abstractmethod
    def _clicked(self, attraction: Chances) -> Chances:
        """The chance of a click where the user looks, by position along the last axis."""

    def _browsing(self, m: int) -> Browsing:
        everywhere = np.broadcast_to(self.attraction[:, None], (self.n_items, m))
        return browsing(self._clicked(everywhere), m, examination=self._examined(m))

    def _draw(self, items: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        looks = rng.random(items.shape) < self._examined(items.shape[-1])
        likes = rng.random(items.shape) < self._clicked(self.attraction[items])
        return looks & likes

    def _marginals(self, items: NDArray[np.int64]) -> Chances:
        return self._clicked(self.attraction[items]) * self._examined(items.shape[-1])

    def _likelihood(self, items: NDArray[np.int64], clicks: NDArray[np.bool_]) -> Chances:
        p = self._marginals(items)
        chance: Chances = np.prod(np.where(clicks, p, 1.0 - p), axis=-1)
        return chance


@dataclass(frozen=True, eq=False)
class PositionBasedModel(IndependentModel):
    """A click at position j needs two independent events: the user looks there, and the item attracts them.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that a user who looks at it clicks.
    examination : Chances
        For each position, the chance that a user looks there.

    Notation
    --------
    alpha_i -> attraction[i], beta_j -> examination[j] (Chen, Zhao and Li 2022).

    References
    ----------
    M. Richardson, E. Dominowska, R. Ragno (2007). Predicting clicks. *WWW*. N. Craswell, O. Zoeter, M. Taylor,
    B. Ramsey (2008). An experimental comparison of click position-bias models. *WSDM*.

    Examples
    --------
    >>> model = PositionBasedModel(attraction=[0.8, 0.4, 0.1], examination=[1.0, 0.5])
    >>> model.click_probabilities([1, 0])
    array([0.4, 0.4])
    >>> model.click([[1, 0], [0, 2]], rng=np.random.default_rng(1)).shape
    (2, 2)
    """

    attraction: Chances
    examination: Chances

    def __post_init__(self) -> None:
        object.__setattr__(self, "attraction", chances("attraction", self.attraction))
        object.__setattr__(self, "examination", chances("examination", self.examination))
        object.__setattr__(self, "n_positions", len(self.examination))

    def _examined(self, m: int) -> Chances:
        return self.examination[:m]

    def _clicked(self, attraction: Chances) -> Chances:
        return attraction
