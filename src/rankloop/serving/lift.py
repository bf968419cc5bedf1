"""How much better the ranker's lists are than the application's own, with an interval that may be watched at any time.

Each list has one reward in [0, 1]. The interval of each kind of list is the empirical Bernstein confidence sequence of
Waudby-Smith and Ramdas (2024, Theorem 2). It holds for all sample sizes at once: looking at it after every
list, and stopping when it looks good, does not make it wrong.
"""

from __future__ import annotations

import math

import msgspec

from rankloop.kernels.elementary import log

_ALPHA = 0.05 / 2  # of the difference; half of it for each kind of list
_LOG = float(log(2.0 / _ALPHA))
_MOST = 0.5  # of a bet


class RewardSums(msgspec.Struct):
    """Running sums over the rewards of one kind of list; all that its interval needs, however many there are."""

    n: int = 0
    total: float = 0.0
    spread: float = 0.0  # of each reward around the mean before it, squared
    bets: float = 0.0
    weighed: float = 0.0
    cost: float = 0.0

    def add(self, reward: float) -> None:
        """Count one list."""
        before = (0.5 + self.total) / (self.n + 1)
        variance = (0.25 + self.spread) / (self.n + 1)
        t = self.n + 1
        bet = min(math.sqrt(2.0 * _LOG / (variance * t * float(log(1.0 + t)))), _MOST)
        self.n += 1
        self.total += reward
        self.bets += bet
        self.weighed += bet * reward
        self.cost += (reward - before) ** 2 * (-float(log(1.0 - bet)) - bet)
        after = (0.5 + self.total) / (self.n + 1)
        self.spread += (reward - after) ** 2

    def interval(self) -> tuple[float, float, float]:
        """The mean, and bounds that hold at all times together with 97.5% probability.

        Examples
        --------
        >>> sums = RewardSums()
        >>> for i in range(2_000):
        ...     sums.add(float(i % 2))
        >>> [round(value, 2) for value in sums.interval()]
        [0.5, 0.45, 0.55]
        """
        if not self.n:
            return 0.5, 0.0, 1.0
        mean = self.weighed / self.bets
        reach = (_LOG + self.cost) / self.bets
        return mean, max(0.0, mean - reach), min(1.0, mean + reach)


class Lift(msgspec.Struct, frozen=True):
    """The mean reward of the ranker's lists less that of the baseline's, and bounds that hold at all times, 95%."""

    mean: float
    low: float
    high: float


def lift(ranker: RewardSums, baseline: RewardSums) -> Lift | None:
    """The difference of two means with its interval; None before there is a list of each kind."""
    if not (ranker.n and baseline.n):
        return None
    (own, own_low, own_high), (other, low, high) = ranker.interval(), baseline.interval()
    return Lift(own - other, own_low - high, own_high - low)
