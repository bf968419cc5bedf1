"""Draws the decisions of a log again, each from the state that it says it was drawn from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankloop.serving.log import records
from rankloop.serving.log.choices import free_of, written_memo
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.guard_rails import reach_of
from rankloop.serving.log.randomness import Draws, key_of
from rankloop.serving.log.records import Row
from rankloop.serving.log.stored_features import features_of
from rankloop.serving.log.trials import baseline_of, draw_for
from rankloop.serving.stores.contract import Store


class Redraw:
    """To be told of every state of a replay. `done` counts what was drawn again.

    drawn: of each decision the number of the row that its state had folded last, and its own; in that order.
    """

    def __init__(
        self, store: Store, ranker: str, drawn: list[tuple[int, int]], complain: Callable[[str], object]
    ) -> None:
        self._store = store
        self._ranker = ranker
        self._drawn = drawn
        self._next = 0
        self._complain = complain
        self._draws = Draws()
        self.done = 0

    async def at(self, fold: Fold) -> None:
        """Draw all that were drawn from this state."""
        while self._next < len(self._drawn) and self._drawn[self._next][0] <= fold.applied:
            model_seq, seq = self._drawn[self._next]
            self._next += 1
            (row,) = await self._store.read(self._ranker, after=seq - 1, limit=1)
            if model_seq != fold.applied:
                self._complain(f"decision {row.event_id!r} says that it was drawn from row {model_seq}")
                continue
            self.done += 1
            if not self._same(fold, row):
                self._complain(f"decision {row.event_id!r} (row {seq}) cannot be drawn again")

    def _same(self, fold: Fold, row: Row) -> bool:
        decision = records.read_decision(row.body)
        if decision.key != key_of(fold.config.seed, row.event_id) or decision.generation != fold.generation:
            return False
        features = features_of(fold.stored, decision)
        rng = self._draws.generator(decision.key)
        asked = features, free_of(decision), baseline_of(decision)
        drawn = draw_for(fold, *asked, decision.key, rng, reach_of(decision))
        chances = None if drawn.propensities is None else drawn.propensities.astype("<f8").tobytes()
        memo = drawn.memo
        if len(decision.memo) < len(memo):
            memo = written_memo(fold, memo)
        return (
            np.array_equal(np.frombuffer(decision.shown, "<i4"), drawn.shown)
            and decision.propensities == chances
            and decision.memo == tuple(records.pack(part) for part in memo)
            and (decision.choice, decision.trial, decision.rails) == (drawn.choice, drawn.trial, drawn.rails)
        )
