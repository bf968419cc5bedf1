"""Losses that differ by rounding only: a class depends on ties, so whoever computed them is warned."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

_DOUBLE, _SHORTER = Fraction(1, 10**9), Fraction(1, 10**5)  # of the largest loss
_COMPUTED_DIGITS = 15  # nobody writes so many by hand


class NearTieWarning(UserWarning):
    """Two losses differ, but so little that they look like a tie that was computed with rounding."""


def warn_of_near_ties(given: Sequence[Sequence[Any]], exact: Sequence[Sequence[Fraction]]) -> None:
    """Warn where a rounded loss is almost, but not exactly, another loss or zero.

    Parameters
    ----------
    given : sequence of sequence
        The losses as they were given: only floats, and decimals with very many digits, may have been rounded.
    exact : sequence of sequence of Fraction
        The same as fractions.
    """
    doubts: dict[Fraction, Fraction] = {}
    places: dict[Fraction, tuple[int, int]] = {}
    for a, row in enumerate(exact):
        for x, value in enumerate(row):
            places.setdefault(value, (a, x))
            doubts[value] = max(doubts.get(value, Fraction(0)), _doubt(given[a][x]))
    doubts.setdefault(Fraction(0), Fraction(0))
    if not any(doubts.values()):
        return
    scale = max(map(abs, doubts))
    values = sorted(doubts)
    for low, high in pairwise(values):
        if high - low <= scale * max(doubts[low], doubts[high]):
            low_name, high_name = (
                f"loss[{places[value][0]}, {places[value][1]}] = {float(value)!r}" if value in places else "0"
                for value in (low, high)
            )
            warnings.warn(
                f"{low_name} and {high_name} differ by {float(high - low):.2g}, and the class of a game depends on "
                'exact ties: if the two should be equal, give fractions, or text such as "3/10"',
                NearTieWarning,
                stacklevel=3,
            )
            return


def _doubt(value: Any) -> Fraction:
    # How far a loss may be from what was meant, relative to the largest one.
    if isinstance(value, float):
        return _DOUBLE
    if isinstance(value, np.floating):
        return _SHORTER
    if isinstance(value, str) and "/" not in value:
        digits = [c for c in value.lower().partition("e")[0] if c.isdigit()]
        return _DOUBLE if len("".join(digits).strip("0")) >= _COMPUTED_DIGITS else Fraction(0)
    return Fraction(0)
