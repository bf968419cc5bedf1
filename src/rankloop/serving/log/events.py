"""What happens to a ranker, row after row of its log, as events for others: what was learnt, and what was changed.

Whoever wants them asks for the rows after the last one that it has, as often as it likes: nothing is kept about that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from rankloop.serving.log import records
from rankloop.serving.log.digests import check_row
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.reader import learnt_rows
from rankloop.serving.log.records import Row
from rankloop.serving.stores.contract import Store

Event = dict[str, Any]
_ABOUT_LISTS = ("decision", "feedback", "expire")

_CHANGES: dict[str, Callable[[Any], Event]] = {
    "config": lambda body: {"algorithm": body.algorithm, "parameters": body.parameters},
    "reset": lambda body: {"algorithm": body.algorithm, "parameters": body.parameters},
    "items": lambda body: {"add": body.add, "retire": body.retire},
    "freeze": lambda body: {"frozen": body.frozen},
    "promote": lambda body: {"share": body.share},
    "rollback": lambda body: {"to_seq": body.to_seq},
    "policy": lambda body: {"policy": msgspec.to_builtins(body.policy)},
    "import": lambda body: {"source": body.source, "part": body.part, "last": body.last},
    "upgrade": lambda body: {"version": body.version},
}


async def events_of(store: Store, ranker: str, fold: Fold, rows: list[Row]) -> list[Event]:
    """The events of rows that follow each other, all of which are folded."""
    decisions = {_decision(row) for row in rows if row.kind in _ABOUT_LISTS}
    stories = await store.stories(ranker, sorted(decisions)) if decisions else {}
    frozen = await _frozen_before(store, ranker, rows[0].seq)
    events = []
    for row in rows:
        check_row(row)
        if row.kind in ("freeze", "reset"):
            frozen = _freezes(row)
        about: list[Event] = []
        if row.kind in _CHANGES:
            about = [_CHANGES[row.kind](records.read_body(row))]
        elif row.kind in _ABOUT_LISTS and not frozen:
            about = _learnt(fold, row, stories[_decision(row)])
        kind = "learnt" if row.kind in _ABOUT_LISTS else row.kind
        head = {"id": f"{ranker}/{row.seq}", "ranker": ranker, "seq": row.seq, "at": row.at, "kind": kind}
        events += [head | one for one in about]
    return events


def _decision(row: Row) -> str:
    return row.event_id if row.kind == "decision" else row.decision or ""


async def _frozen_before(store: Store, ranker: str, seq: int) -> bool:
    rows = [*await store.rows_of(ranker, "freeze"), *await store.rows_of(ranker, "reset")]
    before = [row for row in rows if row.seq < seq]
    return bool(before) and _freezes(max(before, key=lambda row: row.seq))


def _freezes(row: Row) -> bool:
    return row.kind == "freeze" and bool(records.read_body(row).frozen)


def _learnt(fold: Fold, row: Row, story: list[Row]) -> list[Event]:
    """What this row made the ranker learn: feedback, a deadline, or a list whose feedback had come before it."""
    state, learnt = learnt_rows(fold, story, through=row.seq)
    if state is None:
        return []
    chances = state.decision.propensities
    return [
        {
            "decision_id": _decision(row),
            "items": fold.names(state.decision),
            fold.ranker.feedback.kind: values.tolist(),
            "propensities": None if chances is None else np.frombuffer(chances, "<f8").tolist(),
            "explored": state.decision.explored,
        }
        for one, values in learnt
        if one.seq == row.seq or (row.kind == "decision" and one.seq < row.seq)
    ]
