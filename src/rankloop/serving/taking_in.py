"""Rows that were just written are folded, each by its ranker, and who waits for one is told what it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankloop.serving.group_commit import Written
from rankloop.serving.log.decision_state import Outcome
from rankloop.serving.log.records import Entry
from rankloop.serving.stores.contract import Appended

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine


async def take_in(engine: Engine, entries: list[Entry], appended: list[Appended]) -> list[Written]:
    """Fold what is durable now."""
    rankers, shared = engine.rankers, engine.store.shared
    places: dict[str, list[int]] = {}  # of the rows of each ranker
    for i, (entry, one) in enumerate(zip(entries, appended, strict=True)):
        # Where others write as well, a row that was there already may not be folded here yet.
        if entry.ranker in rankers and (one.new or shared):
            places.setdefault(entry.ranker, []).append(i)
    outcomes: list[Outcome | None] = [None] * len(entries)
    failed: set[str] = set()
    for name, its in places.items():
        try:
            rows = [appended[i].row for i in its]
            contents = {appended[i].row.seq: entries[i].content for i in its if appended[i].new}
            told = await rankers[name].take_in(rows, contents)
            if shared:
                engine.roster.wrote(rankers[name])
            for i, outcome in zip(its, told, strict=True):
                outcomes[i] = outcome if appended[i].new else None
        except BaseException as error:
            await engine.roster.recover(name, error)
            failed.add(name)
        engine.housekeeping.changed.add(name)
    return [
        Written(
            one.row,
            one.new,
            outcome,
            entry.ranker in failed or (shared and one.new and engine.roster.let_go_of(entry)),
        )
        for entry, one, outcome in zip(entries, appended, outcomes, strict=True)
    ]
