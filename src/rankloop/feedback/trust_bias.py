"""Trust bias: users also click on items that do not attract them, more readily near the top."""

from __future__ import annotations

from dataclasses import dataclass

from rankloop.feedback.click_model import Chances, chances
from rankloop.feedback.position_based import IndependentModel


@dataclass(frozen=True, eq=False)
class TrustBiasModel(IndependentModel):
    """The position-based model with clicks by mistake: a user who looks at position j trusts what is shown there.

    They click on an item that attracts them with the chance `true_clicks[j]`, and on one that does not with the chance
    `false_clicks[j]`. With `true_clicks` 1 and `false_clicks` 0 everywhere it is the position-based model.

    Parameters
    ----------
    attraction : Chances
        For each item, the chance that it attracts a user.
    examination : Chances
        For each position, the chance that a user looks there.
    true_clicks : Chances
        For each position, the chance of a click on an item that attracts the user.
    false_clicks : Chances
        For each position, the chance of a click on an item that does not.

    Notation
    --------
    theta_k -> examination[k - 1], epsilon+_k -> true_clicks[k - 1], epsilon-_k -> false_clicks[k - 1].

    References
    ----------
    A. Agarwal, X. Wang, C. Li, M. Bendersky, M. Najork (2019). Addressing trust bias for unbiased learning-to-rank.
    *WWW*.

    Examples
    --------
    >>> model = TrustBiasModel(
    ...     attraction=[1.0, 0.0], examination=[1.0, 0.5], true_clicks=[1.0, 1.0], false_clicks=[0.5, 0.25]
    ... )
    >>> model.click_probabilities([1, 0]), model.click_probabilities([0, 1])
    (array([0.5, 0.5]), array([1.   , 0.125]))
    """

    attraction: Chances
    examination: Chances
    true_clicks: Chances
    false_clicks: Chances

    def __post_init__(self) -> None:
        for name in ("attraction", "examination", "true_clicks", "false_clicks"):
            object.__setattr__(self, name, chances(name, getattr(self, name)))
        m = len(self.examination)
        for name in ("true_clicks", "false_clicks"):
            if len(getattr(self, name)) != m:
                raise ValueError(
                    f"{name} must have {m} numbers, one for each position as examination has,"
                    f" got {len(getattr(self, name))}"
                )
        object.__setattr__(self, "n_positions", m)

    def _examined(self, m: int) -> Chances:
        return self.examination[:m]

    def _clicked(self, attraction: Chances) -> Chances:
        m = attraction.shape[-1]
        return attraction * self.true_clicks[:m] + (1.0 - attraction) * self.false_clicks[:m]
