"""What is proved about the regret of FTRL-PBM: Theorem 1 with its lower terms, the hybrid, and forgetting."""

from __future__ import annotations

import numpy as np

from rankloop.kernels.rankers import ftrl_pbm_hybrid


def bound(
    m: int, n: int, rounds: int, *, hybrid: bool, forget: int | None, kept: float, never_negative: bool
) -> float:
    """The bound on the regret after `rounds` with m positions and n items.

    Parameters
    ----------
    m : int
        Positions.
    n : int
        Items.
    rounds : int
        T.
    hybrid : bool
        Whether the regulariser is the hybrid.
    forget : int or None
        Rounds that are remembered; None for all.
    kept : float
        What is kept of a sum from one round to the next; 1 where nothing is forgotten.
    never_negative : bool
        Whether estimates are of losses, which are not negative.

    Returns
    -------
    float
        The bound.
    """
    if forget is None and not hybrid:
        return float(3 * m + 2 * m * np.log(rounds) + 6 * m * np.sqrt(float(n) * rounds))
    weight = ftrl_pbm_hybrid.WEIGHT if hybrid else 2.0
    # By how much a negative estimate may be worse than a positive one.
    factor = 1.0 if never_negative else 1.0 / (1.0 - 2 * ftrl_pbm_hybrid.GUARD / kept)
    unit = m * np.sqrt(float(n)) * (weight * kept + 4.0 * factor / (weight * kept))
    if forget is None:
        return float(unit * np.sqrt(rounds))
    return float((rounds / forget + kept) * unit * np.sqrt(min(rounds, forget)))
