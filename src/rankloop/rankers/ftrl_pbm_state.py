"""What a saved state of FTRL-PBM without a plan must be, where x is written out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankloop.base import Array
from rankloop.rankers.click_ranker import are_chances


def check(saved: Mapping[str, Array], *, positive: bool) -> None:
    """ValueError where arrays of the right shape are no state.

    Parameters
    ----------
    saved : mapping of str to ndarray
        The arrays by name.
    positive : bool
        Whether losses and multipliers must have positive sums.
    """
    t, x, seen, lost = int(saved["t"][0]), *(np.asarray(saved[name]) for name in ("x", "seen", "lost"))
    if t < 1:
        raise ValueError(f"saved state 't' must be at least 1, got {t}")
    if not are_chances(x, saved["rows"]):
        raise ValueError(
            "saved state 'x' must be probabilities: columns that sum to 1, rows to at most 1, as 'rows' says"
        )
    D = np.asarray(saved["L_hat"]) + saved["u"] + np.asarray(saved["v"])[:, None]
    if positive and not (D > 0).all():
        raise ValueError("saved state 'u' and 'v' must be multipliers for 'L_hat', with positive sums")
    if not ((lost >= 0) & (lost <= seen)).all():
        raise ValueError("saved state 'lost' must lie between 0 and 'seen'")
