"""Which lists nobody answered in time: what a search of a part of the log comes to."""

from __future__ import annotations

from typing import NamedTuple

from rankloop.serving.log.records import Row


class OpenList(NamedTuple):
    """A list that has no answer in time."""

    seq: int
    decision: str
    has_feedback: bool


class Due(NamedTuple):
    """A part of the log that was searched for lists that nobody answered in time.

    Parameters
    ----------
    open : list of OpenList
        The lists without an answer in time.
    through : int
        The row up to which was searched.
    next_at : int, optional
        The time of the first list that still has time; None where there is none.
    """

    open: list[OpenList]
    through: int
    next_at: int | None = None


def search(rows: list[Row], stories: dict[str, list[Row]], *, before: int, allowed: int) -> Due:
    """Search these rows, given the rows about their lists. Stores that can ask their database do it there."""
    found: list[OpenList] = []
    through = rows[0].seq - 1 if rows else 0
    for row in rows:
        if row.kind == "decision":
            if row.at >= before:
                return Due(found, through, row.at)
            story = stories[row.event_id]
            if not any(_settles(one, row, allowed) for one in story):
                found.append(OpenList(row.seq, row.event_id, any(one.kind == "feedback" for one in story)))
        through = row.seq
    return Due(found, through)


def _settles(row: Row, decision: Row, allowed: int) -> bool:
    """Whether this row is an answer in time to the decision, or its expiry."""
    if row.kind == "feedback":
        return row.seq > decision.seq and row.at <= decision.at + allowed
    return row.kind == "expire"
