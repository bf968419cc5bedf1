"""Lists with a baseline: which of the two is shown, the application's own order or the ranker's list; what came of it.

A share of all lists, the holdout, always shows the baseline. Of the others the ranker has the share that it was
promoted to. Which list is whose follows from the decision's key, as everything that is drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker
from rankloop.kernels.elementary import log
from rankloop.serving.api import Lift
from rankloop.serving.log.candidate_lists import Drawn, Free, feedback_length
from rankloop.serving.log.guard_rails import draw_within
from rankloop.serving.log.randomness import coin
from rankloop.serving.log.records import Decision, Rails, Trial

if TYPE_CHECKING:
    from rankloop.serving.log.fold import Fold


_INT = np.dtype("<i4")
Whole = NDArray[np.int64]

# How much better the ranker's lists are than the application's own, with an interval that may be watched at any time.
#
# Each list has one reward in [0, 1]. The interval of each kind of list is the empirical Bernstein confidence sequence
# of Waudby-Smith and Ramdas (2024, Theorem 2). It holds for all sample sizes at once: looking at it after every list,
# and stopping when it looks good, does not make it wrong.


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


def lift(ranker: RewardSums, baseline: RewardSums) -> Lift | None:
    """The difference of two means with its interval; None before there is a list of each kind."""
    if not (ranker.n and baseline.n):
        return None
    (own, own_low, own_high), (other, low, high) = ranker.interval(), baseline.interval()
    return Lift(own - other, own_low - high, own_high - low)


class TrialSums(msgspec.Struct):
    """What came of lists with a baseline.

    live: the share that the ranker was promoted to; None before that.
    compared, agreed: positions of baseline lists, and those where the ranker would have shown the same item.
    at_least: rewards at these positions, summed; of lists with feedback.
    """

    live: float | None = None
    ranker: RewardSums = msgspec.field(default_factory=RewardSums)
    baseline: RewardSums = msgspec.field(default_factory=RewardSums)
    compared: int = 0
    agreed: int = 0
    at_least: float = 0.0

    def shown(self, decision: Decision) -> None:
        """Count where the ranker agrees, if a list shows the baseline."""
        trial = decision.trial
        if trial is not None and trial.would:
            same = np.frombuffer(trial.would, _INT) == np.frombuffer(trial.baseline, _INT)
            self.compared += len(same)
            self.agreed += int(same.sum())

    def answered(self, ranker: Ranker, decision: Decision, values: NDArray[np.float64]) -> None:
        """Count the reward of a list with a baseline: the mean of its feedback, as a share of the largest grade."""
        trial = decision.trial
        if trial is None or not len(values) or len(values) != feedback_length(ranker, decision):
            return
        rewards = np.minimum(values / float(ranker.max_grade or 1), 1.0)
        total = 0.0
        for reward in rewards.tolist():
            total += reward
        arm = self.baseline if trial.would else self.ranker
        arm.add(total / len(rewards))
        if trial.would:
            positions = free_positions(decision)
            same = np.frombuffer(trial.would, _INT) == np.frombuffer(trial.baseline, _INT)
            for j in positions[same].tolist():
                if j < len(rewards):
                    self.at_least += float(rewards[j]) / len(rewards)


def free_positions(decision: Decision) -> Whole:
    """The positions of a list that were not pinned."""
    if decision.choice is None:
        return np.arange(len(decision.shown) // _INT.itemsize)
    return np.frombuffer(decision.choice.positions, _INT).astype(np.int64)


def shows_baseline(fold: Fold, key: bytes) -> bool:
    """Whether the decision with this key shows the baseline that its request brought."""
    policy = fold.config.policy
    holdout = policy.holdout if isinstance(policy.holdout, float) else 0.0
    live = fold.trial.live
    if live is None:
        live = 0.0 if policy.apprentice is True else 1.0
    drawn = coin(key, b"baseline")
    return drawn < holdout or drawn >= holdout + (1.0 - holdout) * live


def draw_for(
    fold: Fold,
    features: NDArray[np.float32] | None,
    free: Free | None,
    baseline: Whole | None,
    key: bytes,
    rng: np.random.Generator,
    reach: Whole | None = None,
) -> Drawn:
    """A list from the present state: the ranker's, or the baseline."""
    drawn = draw_within(fold, features, free, baseline, reach, key, rng)
    if baseline is None:
        return drawn
    positions = np.arange(len(drawn.shown)) if free is None else free.positions
    packed = baseline.astype(_INT).tobytes()
    if not shows_baseline(fold, key) or not len(positions):
        return drawn._replace(trial=Trial(packed))
    would = drawn.shown[positions].astype(_INT).tobytes()
    shown = drawn.shown.copy()
    shown[positions] = baseline
    choice = drawn.choice
    if choice is not None:
        choice = msgspec.structs.replace(choice, rest=b"", rest_chances=b"")
    rails = drawn.rails
    if rails is not None:
        rails = Rails(rails.greedy, rails.reach, rails.tiles)
    return Drawn(shown, np.ones(len(shown)), (), False, None, choice, Trial(packed, would), rails)


def baseline_of(decision: Decision) -> Whole | None:
    """The baseline that a decision's request brought; None where it brought none."""
    if decision.trial is None:
        return None
    return np.frombuffer(decision.trial.baseline, _INT).astype(np.int64)
