"""How far to trust means over few runs: intervals, tests on paired differences, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

EXACT_RUNS = 16  # up to here every pattern of signs is tried
DRAWN_PATTERNS = 19_999  # of signs, for more runs than that


def mean_interval(
    values: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The mean over the first axis, and the ends of Student's t interval for it; NaN ends for a single run.

    >>> mean, low, high = mean_interval([1.0, 2.0, 3.0])
    >>> float(mean), round(float(low), 3), round(float(high), 3)
    (2.0, -0.484, 4.484)
    """
    from scipy.special import stdtrit

    runs = np.asarray(values, dtype=np.float64)
    mean = np.asarray(runs.mean(axis=0))
    n = len(runs)
    if n < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown.copy()
    reach = float(stdtrit(n - 1, 0.5 + level / 2)) * runs.std(axis=0, ddof=1) / math.sqrt(n)
    return mean, mean - reach, mean + reach


def paired_t(differences: ArrayLike) -> float:
    """Two-sided p-value of Student's t test that the mean difference is 0; NaN for a single pair.

    >>> round(paired_t([1.0, 2.0, 3.0]), 4)
    0.0742
    """
    from scipy.special import stdtr

    pairs = np.asarray(differences, dtype=np.float64)
    n = len(pairs)
    if n < 2:
        return math.nan
    error = float(pairs.std(ddof=1)) / math.sqrt(n)
    mean = float(pairs.mean())
    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return float(2.0 * stdtr(n - 1, -abs(mean / error)))


def sign_flips(differences: ArrayLike) -> float:
    """Two-sided p-value of the permutation test that each difference could as well have the other sign.

    Up to 16 pairs every pattern of signs counts, beyond that 19,999 patterns drawn with a fixed seed. NaN for a
    single pair.

    >>> sign_flips([1.0, 2.0, 3.0])  # 2 of the 8 patterns have a sum as far from 0
    0.25
    """
    pairs = np.asarray(differences, dtype=np.float64)
    n = len(pairs)
    if n < 2:
        return math.nan
    # A pattern whose sum is the same but for rounding counts as one that is as far from 0.
    reached = abs(float(pairs.sum())) - 1e-9 * float(np.abs(pairs).sum())
    if n <= EXACT_RUNS:
        signs = 1.0 - 2.0 * (np.arange(1 << n)[:, None] >> np.arange(n) & 1)
        return float(np.mean(np.abs(signs @ pairs) >= reached))
    signs = 1.0 - 2.0 * np.random.default_rng(0).integers(0, 2, size=(DRAWN_PATTERNS, n))
    return float((1 + np.count_nonzero(np.abs(signs @ pairs) >= reached)) / (1 + DRAWN_PATTERNS))


TESTS = {"t": paired_t, "permutation": sign_flips}


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values of many tests, corrected by Holm's step-down rule: the chance of one false alarm or more stays small.

    NaN stays NaN and counts for nothing.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [math.nan] * len(p_values)
    known = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    so_far = 0.0
    for step, (p, place) in enumerate(known):
        so_far = max(so_far, min(1.0, (len(known) - step) * p))
        corrected[place] = so_far
    return corrected
