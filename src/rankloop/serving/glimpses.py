"""What the page shows at a glance: the newest lists of a ranker, and a short line for each ranker. Both are bounded."""

from __future__ import annotations

import msgspec
import numpy as np

from rankloop.serving.log import records
from rankloop.serving.log.records import Row
from rankloop.serving.series import Series
from rankloop.serving.served_ranker import Live

_LISTS = 20  # told of
_ROWS = 400  # looked at
_POINTS = 40  # in a short line
_SMOOTH = 5  # points that each is the mean of


class Glimpse(msgspec.Struct, frozen=True):
    """One list in a line; `values` is what came back about it so far."""

    decision_id: str
    seq: int
    at: int
    top: str
    length: int
    explored: bool
    values: list[float] | None


class DecisionsAnswer(msgspec.Struct, frozen=True):
    """The newest lists, newest first."""

    decisions: list[Glimpse]


class SparksAnswer(msgspec.Struct, frozen=True):
    """For each ranker the mean reward of what was answered, oldest first, in a few points."""

    sparks: dict[str, list[float | None]]


async def decisions_answer(live: Live) -> DecisionsAnswer:
    """The newest lists, found in the last rows of the log."""
    last = await live.store.last_seq(live.name)
    answers: dict[str, Row] = {}
    found: list[Glimpse] = []
    for row in reversed(await live.store.read(live.name, after=max(0, last - _ROWS), limit=_ROWS)):
        if row.kind == "feedback" and row.decision is not None:
            answers[row.decision] = row
        elif row.kind == "decision":
            found.append(_glimpse(live, row, answers.get(row.event_id)))
            if len(found) == _LISTS:
                break
    return DecisionsAnswer(found)


def _glimpse(live: Live, row: Row, answer: Row | None) -> Glimpse:
    decision = records.read_decision(row.body)
    names = live.fold.names(decision)
    values = None if answer is None else np.frombuffer(records.read_body(answer).values, "<f8").tolist()
    return Glimpse(row.event_id, row.seq, row.at, names[0], len(names), decision.explored, values)


def spark(series: Series) -> list[float | None]:
    """The series in at most 40 points.

    >>> series = Series(width=1)
    >>> for seq in range(1, 201):
    ...     series.answered(series.at(seq, seq), reward=float(seq > 100), delay=0.0)
    >>> points = spark(series)
    >>> len(points), points[0], points[-1]
    (40, 0.0, 1.0)
    """
    size = max(1, -(-len(series.buckets) // _POINTS))
    points: list[float | None] = []
    for end in range(min(size, len(series.buckets)), len(series.buckets) + 1, size):
        piece = series.buckets[max(0, end - _SMOOTH * size) : end]
        learnt = sum(one.learnt for one in piece)
        points.append(sum(one.reward for one in piece) / learnt if learnt else None)
    return points
