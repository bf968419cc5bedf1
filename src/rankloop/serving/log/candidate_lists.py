"""Lists for which the request left the ranker only some of the choice, or brought a list of its own.

Candidates, fewer positions, pinned items: the ranker fills the free positions with candidates. Pinned items stand where
the request wants them: the ranker has no part in that, and nothing is learnt from them.

Baseline: the application's own order, or the ranker's list, is shown. A share of all lists, the holdout, always shows
the baseline. Of the others the ranker has the share that it was promoted to. Which list is whose follows from the
decision's key, as everything that is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Memo, Ranker, Ranking
from rankloop.serving.confidence import Watched
from rankloop.serving.log import records
from rankloop.serving.log.randomness import coin
from rankloop.serving.log.records import Choice, Decision, Policy, PolicyHistory, Rails, Trial
from rankloop.serving.log.stored_features import features_of, request_of
from rankloop.serving.verdict_answers import Lift

if TYPE_CHECKING:
    from rankloop.serving.log.fold import Fold


_INT = np.dtype("<i4")
_FLOAT = np.dtype("<f8")
Whole = NDArray[np.int64]


class Free(NamedTuple):
    """What a request leaves to the ranker.

    among: numbers of the candidates in the catalogue; None where the request brings a list of its own.
    positions: those to fill. pinned: numbers of the items at the others, by position.
    """

    among: Whole | None
    positions: Whole
    pinned: dict[int, int]


class Drawn(NamedTuple):
    """A list for all positions, and what the ranker said about its part of it; numbers are of the catalogue."""

    shown: Whole
    propensities: NDArray[np.float64] | None
    memo: Memo
    explored: bool
    ranking: Ranking | None = None  # of the ranker itself; None where nothing was left to it
    choice: Choice | None = None
    trial: Trial | None = None
    rails: Rails | None = None


def draw(
    fold: Fold, features: NDArray[np.float32] | None, free: Free | None, rng: np.random.Generator
) -> Drawn:
    """A list from the present state; nothing changes."""
    if free is None:
        ranking = fold.ranker.rank(features, rng=rng)
        shown = fold.active[ranking.items] if fold.has_items else ranking.items
        return Drawn(shown, ranking.propensities, ranking.memo, ranking.explored, ranking)
    n_free = len(free.positions)
    ranking = _ranked(fold, features, free, rng) if n_free else Ranking(np.empty(0, np.int64), np.empty(0))
    numbers = fold.active[ranking.items] if fold.has_items and n_free else ranking.items
    shown = np.empty(n_free + len(free.pinned), np.int64)
    shown[free.positions] = numbers[:n_free]
    for position, number in free.pinned.items():
        shown[position] = number
    chances = None
    if ranking.propensities is not None:
        chances = np.ones(len(shown))
        chances[free.positions] = ranking.propensities[:n_free]
    behind = b"" if ranking.propensities is None else ranking.propensities[n_free:].astype(_FLOAT).tobytes()
    choice = Choice(
        b"" if free.among is None else free.among.astype(_INT).tobytes(),
        free.positions.astype(_INT).tobytes(),
        numbers[n_free:].astype(_INT).tobytes(),
        behind,
    )
    return Drawn(shown, chances, ranking.memo, ranking.explored, ranking if n_free else None, choice)


def _ranked(
    fold: Fold, features: NDArray[np.float32] | None, free: Free, rng: np.random.Generator
) -> Ranking:
    if free.among is None:
        return fold.ranker.rank(features, rng=rng)
    found: Ranking = fold.ranker.rank_among(fold.places(free.among), free.positions, rng=rng)
    return found


def free_of(decision: Decision) -> Free | None:
    """What was left to the ranker when a decision was drawn; None where it was everything."""
    choice = decision.choice
    if choice is None:
        return None
    shown = np.frombuffer(decision.shown, _INT).tolist()
    positions = np.frombuffer(choice.positions, _INT).astype(np.int64)
    filled = set(positions.tolist())
    pinned = {j: number for j, number in enumerate(shown) if j not in filled}
    own_list = decision.candidates is not None or decision.stored is not None
    among = None if own_list else np.frombuffer(choice.among, _INT).astype(np.int64)
    return Free(among, positions, pinned)


def feedback_length(ranker: Ranker, decision: Decision) -> int:
    """How many values the feedback on a list must have, from the top: down to the last that is learnt from."""
    n_shown = len(decision.shown) // _INT.itemsize
    choice = decision.choice
    if choice is None:
        return ranker.feedback.length(n_shown)
    positions = np.frombuffer(choice.positions, _INT)
    n_revealed = revealed(ranker, len(choice.among) // _INT.itemsize, _n_ordered(choice))
    return n_shown if n_revealed >= len(positions) else int(positions[n_revealed - 1]) + 1


def revealed(ranker: Ranker, n_among: int, n_ordered: int) -> int:
    """How many items of its own part of a list a ranker learns from."""
    feedback = ranker.feedback_among(n_among) if n_among else ranker.feedback
    length: int = feedback.length(n_ordered)
    return length


def _n_ordered(choice: Choice) -> int:
    return (len(choice.positions) + len(choice.rest)) // _INT.itemsize


def by_ranker(decision: Decision) -> bool:
    """Whether any of the list is the ranker's, and not the baseline's."""
    if not decision.key or (decision.trial is not None and decision.trial.would):
        return False
    return decision.choice is None or bool(decision.choice.positions)


def is_chosen(decision: Decision) -> bool:
    """Whether any of the list is as the ranker drew it: neither moved by a guard rail nor the best of the moment."""
    rails = decision.rails
    return by_ranker(decision) and (rails is None or not (rails.greedy or rails.own))


def ticket(fold: Fold, decision: Decision) -> Ranking | None:
    """The ranking of a list that was the ranker's alone, for `learn`; None where the items have changed too much."""
    shown = np.frombuffer(decision.shown, _INT)
    items = fold.places(shown) if fold.has_items else shown.astype(np.int64)
    chances = decision.propensities
    ranking = Ranking(
        items,
        None if chances is None else np.frombuffer(chances, _FLOAT).astype(np.float64),
        _memo(fold, decision, items),
        decision.explored,
    )
    if decision.generation == fold.generation:
        return ranking
    translated: Ranking | None = fold.ranker.translate(ranking, items)
    return translated


def written_memo(fold: Fold, memo: Memo) -> Memo:
    """What of a ticket's memo is written: not what follows from the features, which the row has anyway."""
    if fold.has_items:
        return memo
    short: Memo = fold.ranker.short_memo(memo)
    return short


def _memo(fold: Fold, decision: Decision, items: Whole) -> Memo:
    """The whole memo of a ticket; of older rows it is all there."""
    memo = tuple(records.unpack(part) for part in decision.memo)
    if decision.unit:
        return (*memo, np.frombuffer(decision.unit, "<u8"))
    if fold.has_items:
        return memo
    whole: Memo = fold.ranker.whole_memo(memo, items, lambda: request_of(fold.ranker, fold.stored, decision))
    return whole


def learn(fold: Fold, decision: Decision, values: NDArray[np.float64]) -> tuple[bool, Ranking | None]:
    """Let the ranker learn from a list, or from its part of it."""
    if not is_chosen(decision):
        return _learn_other(fold, decision, values), None
    free, choice = free_of(decision), decision.choice
    if free is None or choice is None:
        whole = ticket(fold, decision)
        if whole is not None:
            fold.ranker.learn(whole, values)
        return whole is not None, whole
    if len(values) != feedback_length(fold.ranker, decision):
        raise ValueError(
            f"feedback must have {feedback_length(fold.ranker, decision)} values, got {len(values)}"
        )
    shown = np.frombuffer(decision.shown, _INT).astype(np.int64)[free.positions]
    order = np.concatenate([shown, np.frombuffer(choice.rest, _INT)]).astype(np.int64)
    told = values[free.positions[free.positions < len(values)]]
    told = told[: revealed(fold.ranker, len(choice.among) // _INT.itemsize, len(order))]
    chances = None
    if decision.propensities is not None:
        own = np.frombuffer(decision.propensities, _FLOAT)[free.positions]
        chances = np.concatenate([own, np.frombuffer(choice.rest_chances, _FLOAT)]).astype(np.float64)
    memo = _memo(fold, decision, order)
    if free.among is None:
        fold.ranker.learn(Ranking(order, chances, memo, decision.explored), told)
        return True, None
    among = fold.places(free.among)
    if (among < 0).any():
        return False, None
    ranking = Ranking(fold.places(order), chances, memo, decision.explored)
    fold.ranker.learn_among(ranking, told, among, free.positions)
    return True, None


def _learn_other(fold: Fold, decision: Decision, values: NDArray[np.float64]) -> bool:
    """Learn from a list that the ranker did not draw, where that is sound."""
    shown = np.frombuffer(decision.shown, _INT).astype(np.int64)
    if not fold.has_items:
        return _learn_other_rows(fold, decision, shown, values)
    if decision.choice is not None or (fold.places(shown) < 0).any():
        return False
    return bool(fold.ranker.learn_shown(fold.places(shown), values))


def _learn_other_rows(fold: Fold, decision: Decision, shown: Whole, values: NDArray[np.float64]) -> bool:
    """The same for a ranker with features: from whole lists, because a ticket has all items of its request."""
    if not fold.ranker.learns_others_lists():
        return False
    features = features_of(fold.stored, decision)
    if features is None or sorted(shown.tolist()) != list(range(len(features))):
        return False
    if len(values) != feedback_length(fold.ranker, decision):
        raise ValueError(
            f"feedback must have {feedback_length(fold.ranker, decision)} values, got {len(values)}"
        )
    fold.ranker.learn_logged(shown, values, features=request_of(fold.ranker, fold.stored, decision))
    return True


class Rewards(msgspec.Struct):
    """How many lists of one kind have feedback, and the sum of their rewards."""

    n: int = 0
    total: float = 0.0


class TrialSums(msgspec.Struct):
    """What came of lists with a baseline.

    live: the share that the ranker was promoted to; None before that.
    compared, agreed: positions of baseline lists, and those where the ranker would have shown the same item.
    at_least: rewards at these positions, summed; of lists with feedback.
    since: the row after which lists count for the lift; -1 in snapshots from before they had a lift that allows drift.
    shares: the rows of the log that promoted the ranker, with the shares.
    difference: of the ranker's rewards and the baseline's, list by list.
    """

    live: float | None = None
    ranker: Rewards = msgspec.field(default_factory=Rewards)
    baseline: Rewards = msgspec.field(default_factory=Rewards)
    compared: int = 0
    agreed: int = 0
    at_least: float = 0.0
    since: int = -1
    shares: list[tuple[int, float]] = []
    difference: Watched = msgspec.field(default_factory=Watched)

    def promoted(self, seq: int, share: float) -> None:
        self.live = share
        self.shares.append((seq, share))

    def resumed(self, seq: int) -> TrialSums:
        """The same after row `seq`, whose snapshot it is from."""
        if self.since < 0:
            self.since = seq
            self.shares = [] if self.live is None else [(seq, self.live)]
        return self

    def chance(self, policies: PolicyHistory, model_seq: int) -> float:
        """The chance that a list that was drawn after row `model_seq` shows the ranker's order."""
        live = next((share for seq, share in reversed(self.shares) if seq <= model_seq), None)
        holdout, live = _shares(policies.at(model_seq + 1), live)
        return (1.0 - holdout) * live

    def shown(self, decision: Decision) -> None:
        """Count where the ranker agrees, if a list shows the baseline."""
        trial = decision.trial
        if trial is not None and trial.would:
            same = np.frombuffer(trial.would, _INT) == np.frombuffer(trial.baseline, _INT)
            self.compared += len(same)
            self.agreed += int(same.sum())

    def answered(
        self, ranker: Ranker, policies: PolicyHistory, decision: Decision, values: NDArray[np.float64]
    ) -> None:
        """Count the reward of a list with a baseline: the mean of its feedback, as a share of the largest grade."""
        trial = decision.trial
        if trial is None or not len(values) or len(values) != feedback_length(ranker, decision):
            return
        rewards = np.minimum(values / float(ranker.max_grade or 1), 1.0)
        positions = free_positions(decision)
        counts = len(positions) > 0 and decision.model_seq >= self.since >= 0
        chance = self.chance(policies, decision.model_seq) if counts else 0.0
        self.count(sum(rewards.tolist()) / len(rewards), chance, shows_ranker=not trial.would)
        if trial.would:
            same = np.frombuffer(trial.would, _INT) == np.frombuffer(trial.baseline, _INT)
            for j in positions[same].tolist():
                if j < len(rewards):
                    self.at_least += float(rewards[j]) / len(rewards)

    def count(self, reward: float, chance: float, *, shows_ranker: bool) -> None:
        """Count one list, which had this chance to show the ranker's order."""
        if 0.0 < chance < 1.0:
            # The coin alone decides whose list is shown, so that the mean of this is the present difference, whatever
            # is taken off the reward beforehand and however users change. Little spread is left where it is about this.
            off = (1.0 - chance) * _mean(self.ranker) + chance * _mean(self.baseline)
            sign, weight = (1.0, 1.0 / chance) if shows_ranker else (-1.0, 1.0 / (1.0 - chance))
            low = -max(off / chance, (1.0 - off) / (1.0 - chance))
            high = max((1.0 - off) / chance, off / (1.0 - chance))
            self.difference.add_difference(sign * weight * (reward - off), low, high)
        arm = self.ranker if shows_ranker else self.baseline
        arm.n += 1
        arm.total += reward

    def lift(self) -> Lift | None:
        """The mean reward of the ranker's lists less that of the baseline's at the same time.

        Over the lists for which a coin chose between the two, weighed by its known chances; None without any.
        """
        found = self.difference.bounds()
        if found is None:
            return None
        low, high = max(found.low, -1.0), min(found.high, 1.0)
        return Lift(min(max(found.mean, low), high), low, high)


def _mean(rewards: Rewards) -> float:
    return (0.5 + rewards.total) / (1.0 + rewards.n)


def _shares(policy: Policy, live: float | None) -> tuple[float, float]:
    """The holdout, and of the other lists the ranker's share, where it was promoted to `live`."""
    holdout = policy.holdout if isinstance(policy.holdout, float) else 0.0
    if live is None:
        live = 0.0 if policy.apprentice is True else 1.0
    return holdout, live


def free_positions(decision: Decision) -> Whole:
    """The positions of a list that were not pinned."""
    if decision.choice is None:
        return np.arange(len(decision.shown) // _INT.itemsize)
    return np.frombuffer(decision.choice.positions, _INT).astype(np.int64)


def may_show_baseline(fold: Fold) -> bool:
    """Whether some lists show the baseline that their request brings."""
    return _shares(fold.config.policy, fold.trial.live) != (0.0, 1.0)


def shows_baseline(fold: Fold, key: bytes) -> bool:
    """Whether the decision with this key shows the baseline that its request brought."""
    holdout, live = _shares(fold.config.policy, fold.trial.live)
    drawn = coin(key, b"baseline")
    return drawn < holdout or drawn >= holdout + (1.0 - holdout) * live


def baseline_of(decision: Decision) -> Whole | None:
    """The baseline that a decision's request brought; None where it brought none."""
    if decision.trial is None:
        return None
    return np.frombuffer(decision.trial.baseline, _INT).astype(np.int64)
