"""What a call comes to, once its row is durable and folded: the answer to it, and the row that keeps a conflict."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.serving.admission import digest_of
from rankloop.serving.api import EventAnswer, RankAnswer
from rankloop.serving.group_commit import Written
from rankloop.serving.log import records
from rankloop.serving.log.records import Entry
from rankloop.serving.served_ranker import ServedRanker


def unlogged_answer(served: ServedRanker, decision: records.Decision, decision_id: str) -> RankAnswer:
    """A list that is not logged: nothing can be learnt from feedback on it."""
    chances = decision.propensities
    return RankAnswer(
        decision_id,
        served.fold.names(decision),
        None if chances is None else np.frombuffer(chances, "<f8").tolist(),
        decision.model_seq,
        False,
        degraded=True,
    )


def rank_answer(served: ServedRanker, decision: records.Decision, written: Written) -> RankAnswer:
    """The list of a decision that is in the log."""
    chances = decision.propensities
    return RankAnswer(
        written.row.event_id,
        served.fold.names(decision),
        None if chances is None else np.frombuffer(chances, "<f8").tolist(),
        decision.model_seq,
        not written.new,
    )


def event_answer(written: Written) -> EventAnswer:
    """What an event came to."""
    if not written.new or written.outcome is None:
        return EventAnswer("duplicate", written.row.seq, duplicate=True)
    status: Any = written.outcome.status
    return EventAnswer(status, written.row.seq, status == "duplicate", written.outcome.learns)


def conflict(entry: Entry) -> Entry:
    """The entry that keeps another one, which came under an ID that was taken."""
    body = records.encode(records.Conflict(entry.kind, entry.event_id, entry.body))
    event_id = digest_of(entry.kind, entry.event_id, entry.digest).hex()
    return Entry(entry.ranker, "conflict", event_id, body, entry.digest, entry.decision)
