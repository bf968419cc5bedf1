"""How good lists are, and which are better: the part of the API's answers that is about numbers with bounds."""

from __future__ import annotations

import msgspec


class Interval(msgspec.Struct, frozen=True):
    """A mean, bounds that hold at all times with 95% probability, and the number of lists behind it.

    Parameters
    ----------
    mean, low, high : float
        The mean, and the ends of the interval.
    rounds : int
        How many lists it was computed from.
    """

    mean: float
    low: float
    high: float
    rounds: int


class Lift(msgspec.Struct, frozen=True):
    """How much better the ranker's lists are than the baseline, with bounds that hold at all times, 95%.

    Parameters
    ----------
    mean, low, high : float
        The ranker's mean reward less the baseline's at the same time, and the bounds.
    """

    mean: float
    low: float
    high: float


class PairAnswer(msgspec.Struct, frozen=True):
    """How two rankings of a comparison compare.

    Parameters
    ----------
    one, other : str
        Their names.
    wins, losses : int
        How many searches preferred the one, and the other; those that preferred neither are not decided.
    share : Interval or None
        The share of the decided ones that preferred the one.
    margin : Lift or None
        The mean preference of all, from -1 to 1, whatever changes over time.
    winner : str or None
        The one that wins; None where they are not told apart.
    """

    one: str
    other: str
    wins: int
    losses: int
    share: Interval | None
    margin: Lift | None
    winner: str | None


class ComparisonAnswer(msgspec.Struct, frozen=True):
    """The verdict of a comparison as it stands; it may be looked at at any time.

    Parameters
    ----------
    rankings : list of str
        Their names, the one that was shown before first.
    lists : int
        How many lists have counted; of each unit, where requests have one, up to the first that was decided.
    pairs : list of PairAnswer
        How each two of them compare.
    winner : str or None
        The one that wins against every other.
    shown : str or None
        The one whose order is shown since the comparison was stopped; None while lists are mixed.
    sentence : str
        The verdict in words.
    """

    rankings: list[str]
    lists: int
    pairs: list[PairAnswer]
    winner: str | None
    shown: str | None
    sentence: str


class TrialAnswer(msgspec.Struct, frozen=True):
    """How the ranker's lists compare with the baseline.

    Parameters
    ----------
    live, holdout : float
        The shares of requests with a baseline that get the ranker's list, and that always get the baseline.
    ranker_lists : int
        Lists of the ranker with feedback.
    ranker_mean : float or None
        Their mean reward.
    baseline_lists : int
        Baseline lists with feedback.
    baseline_mean : float or None
        Their mean reward.
    lift : Lift or None
        How much better the ranker's lists are than the baseline at the same time. The two means are of different times
        where the ranker's share has changed.
    agreed, at_least : float or None
        The share of positions of baseline lists where the ranker would have shown the same item, and the mean reward
        of baseline lists at these positions alone.
    """

    live: float
    holdout: float
    ranker_lists: int
    ranker_mean: float | None
    baseline_lists: int
    baseline_mean: float | None
    lift: Lift | None
    agreed: float | None
    at_least: float | None
