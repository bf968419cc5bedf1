"""History from elsewhere in the log of a ranker: lists that something else has shown, or a state.

A history is one row or several, its parts. The parts before the last are kept and change nothing; the last makes the
ranker learn from all of them at once. So a history that was interrupted has no effect, and sending it again completes
it. Lists that the ranker cannot use, because an item is not there any more, say, are left out and counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker
from rankloop.serving.adapters.registry import build
from rankloop.serving.log import records
from rankloop.serving.log.decision_state import Outcome
from rankloop.serving.log.digests import check_row
from rankloop.serving.log.records import Import, Learnt, Row
from rankloop.serving.stores.contract import Store

if TYPE_CHECKING:
    from rankloop.serving.log.decision_state import RelatedRows
    from rankloop.serving.log.fold import Fold

UNKNOWN = "an item that the ranker does not have"
SHORT = "fewer positions than the ranker learns from"


class LoggedList(NamedTuple):
    """One list: places of its items in the names of the import, what came back, and what else is known of it."""

    places: NDArray[np.int64]
    values: NDArray[np.float64]
    propensities: NDArray[np.float64] | None
    features: NDArray[np.float32] | None


def event_id(history: str, part: int) -> str:
    """The event ID of a part."""
    return f"{history}/{part}"


def lists_of(body: Import) -> Iterator[LoggedList]:
    """The lists of a part, one by one."""
    if body.lists is None or body.values is None:
        return
    places, values = records.unpack(body.lists).astype(np.int64), records.unpack(body.values).astype(float)
    chances = None if body.propensities is None else records.unpack(body.propensities)
    features = None if body.features is None else records.unpack(body.features)
    for i, length in enumerate((places >= 0).sum(axis=1).tolist()):
        yield LoggedList(
            places[i, :length],
            values[i, :length],
            None if chances is None else chances[i, :length],
            None if features is None else features[i, :length],
        )


class Learning:
    """A copy of a ranker that learns from the lists of a history, so that the ranker changes at once or not at all."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self.ranker: Ranker = build(fold.config, n_items=len(fold.active))
        self.ranker.load(fold.ranker.state_arrays())
        self.learnt = 0
        self.left_out: Counter[str] = Counter()

    def add(self, body: Import, *, until_learnt: bool = False) -> None:
        """Learn from a part; `until_learnt`: no further than its first list that can be learnt from."""
        here = np.array([self._fold.number.get(name, -1) for name in body.names], np.int64)
        if self._fold.has_items:
            here = np.where(here >= 0, self._fold.places(here), -1)
        for one in lists_of(body):
            reason = self.learn(one, here)
            if reason:
                self.left_out[reason] += 1
            else:
                self.learnt += 1
                if until_learnt:
                    return

    def learn(self, one: LoggedList, here: NDArray[np.int64]) -> str:
        """Learn from one list, where `here` are the ranker's numbers of the items; otherwise the reason why not."""
        ranker = self.ranker
        n = ranker.n_positions
        if n is None:
            items, features = np.arange(len(one.places)), one.features
        else:
            items, features = here[one.places][:n], None
            if len(items) < n:
                return SHORT
            if (items < 0).any():
                return UNKNOWN
        chances = None if one.propensities is None else one.propensities[: len(items)].copy()
        values = one.values[: ranker.feedback.length(len(items))].copy()
        try:
            ranker.learn_logged(items, values, propensities=chances, features=features)
        except ValueError as error:
            return str(error)
        return ""


def learn_from(fold: Fold, row: Row, related: RelatedRows) -> Learning | None:
    """What the ranker learns from the history that ends in `row`; None where parts are missing. Changes nothing."""
    parts = [*related.parts.get(row.seq, []), row]
    if len(parts) != records.read_body(row).part:
        return None
    learning = Learning(fold)
    for one in parts:
        learning.add(records.read_body(one))
    return learning


def take(fold: Fold, row: Row, related: RelatedRows) -> Outcome:
    """Fold one row of a history. A frozen ranker, or one to which parts are missing, takes nothing."""
    body: Import = records.read_body(row)
    if not body.last:
        return Outcome("accepted")
    if fold.frozen:
        return Outcome("conflict")
    if body.form == "state":
        return _take_state(fold, body)
    learning: Learning | None = related.learning.pop(row.seq, None) or learn_from(fold, row, related)
    if learning is None:
        return Outcome("conflict")
    fold.ranker = learning.ranker
    fold.rounds += learning.learnt
    fold.counts.imported += learning.learnt
    return Outcome("accepted", learning.learnt > 0, (learning.learnt, dict(learning.left_out)))


def _take_state(fold: Fold, body: Import) -> Outcome:
    if fold.rounds:
        return Outcome("conflict")
    learnt = records.decode(Learnt, body.learnt)
    try:
        fold.take_over(learnt)
    except ValueError:
        return Outcome("conflict")
    fold.counts.imported += learnt.rounds
    return Outcome("accepted", True, (learnt.rounds, {}))


async def learn_ahead(fold: Fold, row: Row, related: RelatedRows) -> None:
    """Learn from a history in a thread, so that others are answered meanwhile, right before its last row is folded."""
    body: Import = records.read_body(row)
    if body.last and body.form != "state" and not fold.frozen:
        related.learning[row.seq] = await asyncio.to_thread(learn_from, fold, row, related)


async def find_parts(store: Store, ranker: str, new: list[Row], related: RelatedRows) -> None:
    """Read the earlier parts of every history that ends in these rows."""
    for row in new:
        if row.kind != "import":
            continue
        body: Import = records.read_body(row)
        if not body.last or body.part == 1:
            continue
        found = []
        for part in range(1, body.part):
            one = await store.find(ranker, "import", event_id(body.history, part))
            if one is not None and one.seq < row.seq:
                check_row(one)
                found.append(one)
        related.parts[row.seq] = found
