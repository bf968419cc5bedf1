"""How a fold takes in the feedback that counts: the ranker learns, and what is reported about it is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankloop.serving.log import choices, guard_rails
from rankloop.serving.log.decision_state import DecisionState, Outcome
from rankloop.serving.log.records import Row
from rankloop.serving.log.saved_state import DeadLetter

if TYPE_CHECKING:
    from rankloop.serving.log.fold import Fold


def learn_from(
    fold: Fold, outcome: Outcome, row: Row, state: DecisionState, values: NDArray[np.float64], *, at: int
) -> Outcome:
    """Learn from the feedback on one list."""
    decision = state.decision
    if decision.trial is not None:
        fold.trial.answered(fold.ranker, decision, values)
    if fold.frozen:
        return Outcome(outcome.status)
    delay = state.delay(row, at=at)
    try:
        before = fold.ranker.exploration_block()
        learnt, ranking = guard_rails.learn(fold, decision, values)
    except ValueError as error:
        # Checked before it was written, but for parked feedback, whose list was not there yet.
        fold.bury(DeadLetter(row.seq, row.at, row.decision or "", str(error)))
        return Outcome("unknown")
    if not learnt:
        if choices.is_chosen(decision):
            return Outcome("late")
        if delay is not None:
            fold.series.heard(row.seq, at, delay=delay)
        return Outcome(outcome.status)
    fold.rounds += 1
    fold.counts.learnt += 1
    if ranking is not None:
        fold.estimates.add(fold.ranker, ranking, values, decision, before)
    elif choices.by_ranker(decision):
        fold.estimates.add_part(values, fold.ranker.exploration_block() != before)
    fold.item_counts.observed(decision, values, n_items=len(fold.catalogue) or len(fold.stored.names))
    fold.series.answered(row.seq, at, reward=_mean(values), delay=delay, estimate=fold.estimates.points())
    return outcome


def _mean(values: NDArray[np.float64]) -> float:
    if len(values) == 1:
        return float(values[0])
    return float(np.add.reduce(values)) / len(values) if len(values) else 0.0
