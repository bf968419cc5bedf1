"""Ranges of arguments: what a ranker declares as tunable, and what `simulation.tune` searches."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

from rankloop.arguments import number, whole
from rankloop.kernels.elementary import power as raised

__all__ = ["Between", "Falling", "OneOf", "Range", "Whole"]


class Range(abc.ABC):
    """The values that an argument may take in a search."""

    @abc.abstractmethod
    def at(self, share: float) -> Any:
        """The value at a `share` of the way through the range, from 0 up to, not including, 1.

        Evenly spread shares cover the range evenly. Numbers have three significant digits, so that they can be typed.
        """


@dataclass(frozen=True)
class Between(Range):
    """Numbers between two positive bounds, evenly spread on a logarithmic scale.

    Parameters
    ----------
    low : float
        The smallest, above 0.
    high : float
        The largest.

    Examples
    --------
    >>> Between(0.01, 100).at(0.5)
    1.0
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high)

    def at(self, share: float) -> float:
        return _rounded(_between(self.low, self.high, share), self.low, self.high)


@dataclass(frozen=True)
class Whole(Range):
    """Whole numbers between two positive bounds, both included, evenly spread on a logarithmic scale.

    Parameters
    ----------
    low : int
        The smallest, at least 1.
    high : int
        The largest.

    Examples
    --------
    >>> [Whole(1, 1_000).at(share) for share in (0.0, 0.5, 0.99)]
    [1, 32, 933]
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        whole("high", self.high, at_least=whole("low", self.low, at_least=1))

    def at(self, share: float) -> int:
        return round(_rounded(_between(self.low, self.high, share), self.low, self.high))


@dataclass(frozen=True)
class Falling(Range):
    """Schedules scale * t**-power, as the pair (scale, power): the scale is searched, the power fixed.

    Parameters
    ----------
    low : float
        The smallest scale, above 0.
    high : float
        The largest scale.
    power : float
        The power, not negative.

    Examples
    --------
    >>> Falling(0.01, 1.0, power=0.5).at(0.5)
    (0.1, 0.5)
    """

    low: float
    high: float
    power: float

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high)
        number("power", self.power, at_least=0)

    def at(self, share: float) -> tuple[float, float]:
        return _rounded(_between(self.low, self.high, share), self.low, self.high), self.power


class OneOf(Range):
    """One of a few values, equally often; where one of them is a range, a value of it.

    Parameters
    ----------
    *values : object
        What may be chosen.

    Examples
    --------
    >>> steps = OneOf("adagrad", Falling(0.01, 1.0, power=0.5))
    >>> steps.at(0.2), steps.at(0.75)
    ('adagrad', (0.1, 0.5))
    """

    def __init__(self, *values: Any) -> None:
        if not values:
            raise ValueError("values must be at least one, got none")
        self.values = values

    def at(self, share: float) -> Any:
        place = share * len(self.values)
        chosen = self.values[int(place)]
        return chosen.at(place - int(place)) if isinstance(chosen, Range) else chosen

    def __repr__(self) -> str:
        return f"OneOf({', '.join(map(repr, self.values))})"


def _check_bounds(low: float, high: float) -> None:
    number("high", high, above=number("low", low, above=0))


def _between(low: float, high: float, share: float) -> float:
    return float(low * raised(high / low, share))


def _rounded(value: float, low: float, high: float) -> float:
    return min(max(float(f"{value:.3g}"), float(low)), float(high))
