"""Reads the rows of a log: in pages, folded with all that folding them asks for, and what a ranker learnt from each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.serving.log import imports, records
from rankloop.serving.log.decision_state import DecisionState, Outcome, RelatedRows, replay_decision
from rankloop.serving.log.digests import check_row
from rankloop.serving.log.fold import Fold, at_deadline
from rankloop.serving.log.records import Row
from rankloop.serving.stores.contract import Damaged, Store

_END = 1 << 60
_AT_ONCE = 250  # rows folded before others get a turn


async def pages(
    store: Store, ranker: str, *, after: int = 0, through: int = _END, limit: int = 1_000
) -> AsyncIterator[list[Row]]:
    """The rows of a log after `after`, to its end or up to and with `through`."""
    while after < through:
        page = await store.read(ranker, after=after, limit=min(limit, through - after))
        page = [row for row in page if row.seq <= through]  # in a damaged log, numbers may be missing
        if not page:
            return
        after = page[-1].seq
        yield page


async def fold_through(fold: Fold, store: Store, ranker: str, last: int) -> None:
    """Fold the rows up to and with `last`, while others are served; `Damaged` where there are not so many."""
    async for page in pages(store, ranker, after=fold.applied, through=last, limit=_AT_ONCE):
        for row in page:
            check_row(row)
        await fold_rows(fold, store, ranker, page)
        await asyncio.sleep(0)
    if fold.applied < last:
        raise Damaged(f"row {fold.applied + 1} of {ranker!r} is missing")


async def fold_rows(
    fold: Fold,
    store: Store,
    ranker: str,
    rows: list[Row],
    *,
    contents: dict[int, Any] | None = None,
    outcomes: dict[int, Outcome] | None = None,
) -> None:
    """Fold the next rows of a log, which were checked.

    contents: by number of the row, what bodies were written from, as far as that is known. outcomes: gets what each row
    came to, but for decisions, which are always accepted.
    """
    related = await related_rows(fold, store, ranker, rows)
    related.contents = contents or {}
    for row in rows:
        if row.kind == "import":
            await imports.learn_ahead(fold, row, related)
        outcome = fold.fold(row, related)
        if outcomes is not None and row.kind != "decision":
            outcomes[row.seq] = outcome


async def related_rows(fold: Fold, store: Store, ranker: str, new: list[Row]) -> RelatedRows:
    """Everything that folding `new` will ask for."""
    related = RelatedRows()
    if any(row.kind == "import" for row in new):
        await imports.find_parts(store, ranker, new, related)
    wanted: dict[str, None] = {}
    for row in new:
        about = row.decision
        if row.kind == "decision" and fold.parked and row.event_id in fold.parked:
            about = row.event_id
        if about is not None:
            state = fold.recent.get(about)
            if state is None:
                # Feedback waits for this one, so it is not there yet: nothing to read.
                if row.kind == "decision" or about not in fold.parked:
                    wanted[about] = None
            else:
                related.states[about] = state
    if wanted:
        for about, story in (await store.stories(ranker, list(wanted))).items():
            for row in story:
                check_row(row)
            state = state_of(fold, story, through=fold.applied)
            if state is not None:
                related.states[about] = state
                fold.recent.put(about, state)
            related.early[about] = [
                row for row in story if row.kind == "feedback" and row.seq <= fold.applied
            ]
    return related


def state_of(
    fold: Fold, story: list[Row], *, through: int = _END, outcomes: dict[int, Outcome] | None = None
) -> DecisionState | None:
    """The state of a list of this ranker after row `through`; None where the list is not in its `story` by then."""
    return replay_decision(
        story, through=through, policy=fold.policies, silence_counts=fold.silence_counts, outcomes=outcomes
    )


class LearntRow(NamedTuple):
    """A row that a ranker was to learn from, feedback or a deadline, and the values by position."""

    row: Row
    values: NDArray[np.float64]


def learnt_rows(
    fold: Fold, story: list[Row], *, through: int = _END
) -> tuple[DecisionState | None, list[LearntRow]]:
    """The state of a list after row `through`, and the rows of its `story` up to there that were to be learnt from."""
    outcomes: dict[int, Outcome] = {}
    state = state_of(fold, story, through=through, outcomes=outcomes)
    found: list[LearntRow] = []
    if state is None:
        return None, found
    for row in story:
        if row.seq in outcomes and outcomes[row.seq].learns:
            if row.kind == "expire":
                values = at_deadline(state, fold.policies.at(state.seq), fold.ranker)
            else:
                values = np.frombuffer(records.read_body(row).values, "<f8")
            if values is not None:
                found.append(LearntRow(row, values))
    return state, found
