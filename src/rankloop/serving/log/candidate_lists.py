"""Lists for which the request left the ranker only some of the choice: candidates, fewer positions, pinned items.

The ranker fills the free positions with candidates. Pinned items stand where the request wants them: the ranker has no
part in that, and nothing is learnt from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Memo, Ranker, Ranking
from rankloop.serving.log import records
from rankloop.serving.log.records import Choice, Decision, Rails, Trial
from rankloop.serving.log.stored_features import features_of

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
    if decision.trial is not None and decision.trial.would:
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
    if fold.has_items:
        return memo
    whole: Memo = fold.ranker.whole_memo(memo, items, lambda: features_of(fold.stored, decision))
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
    fold.ranker.learn_logged(shown, values, features=features)
    return True
