"""The state of one decision, from its rows alone."""

from __future__ import annotations

import pytest

from rankloop.serving.log import records
from rankloop.serving.log.decision_state import (
    PARKED_PER_DECISION,
    DecisionCache,
    DecisionState,
    Outcome,
    RecentDecisions,
    in_time,
    replay_decision,
)
from rankloop.serving.log.records import Decision, Kind, Policy, Row

DEADLINE = 1_000
IGNORE, LEARN = Policy(late="ignore", parking_seconds=1), Policy(late="learn", parking_seconds=1)


def _row(seq: int, kind: Kind, *, at: int = 0, digest: bytes = b"1") -> Row:
    body = b""
    if kind == "decision":
        body = records.encode(Decision(0, 0, b"\0" * 8, b"k", DEADLINE, False))
    return Row(seq, at, kind, f"{kind}{seq}", body, digest, None if kind == "decision" else "d")


def _fresh() -> DecisionState:
    return DecisionState.of(_row(1, "decision"))


def test_the_row_is_read_once() -> None:
    state = _fresh()
    assert (state.seq, state.n_shown, state.decision.deadline) == (1, 2, DEADLINE)


def test_the_first_answer_counts() -> None:
    state = _fresh()
    assert state.feedback(b"1", at=5, policy=IGNORE) == Outcome("accepted", True)
    assert state.feedback(b"1", at=6, policy=IGNORE) == Outcome("duplicate")
    assert state.feedback(b"2", at=6, policy=IGNORE) == Outcome("conflict")


@pytest.mark.parametrize(("policy", "learns"), [(IGNORE, False), (LEARN, True)])
def test_an_answer_after_the_deadline_is_late(policy: Policy, learns: bool) -> None:
    assert _fresh().feedback(b"1", at=DEADLINE, policy=policy) == Outcome("accepted", True)
    assert _fresh().feedback(b"1", at=DEADLINE + 1, policy=policy) == Outcome("late", learns)


def test_the_deadline_is_measured_from_the_row_of_the_list() -> None:
    body = records.encode(Decision(0, 0, b"\0" * 8, b"k", 0, False, allowed=60_000))
    state = DecisionState.of(Row(1, 5_000_000, "decision", "d", body))
    assert state.deadline == 5_060_000
    assert state.feedback(b"1", at=5_060_000, policy=IGNORE) == Outcome("accepted", True)
    state = DecisionState.of(Row(1, 5_000_000, "decision", "d", body))
    assert state.feedback(b"1", at=5_060_001, policy=IGNORE) == Outcome("late")


def test_of_many_that_wait_for_one_list_the_newest_count() -> None:
    story = [_row(i, "feedback", at=0, digest=bytes([i])) for i in range(1, 30)]
    state = replay_decision(
        [*story, _row(30, "decision", at=1)], through=99, policy=IGNORE, silence_counts=True
    )
    assert state is not None
    assert state.answer == bytes([30 - PARKED_PER_DECISION])


@pytest.mark.parametrize(
    ("activated", "silence_counts", "learns"),
    [(False, False, False), (False, True, False), (True, False, False), (True, True, True)],
)
def test_silence_says_something_only_about_clicks_on_a_list_that_was_seen(
    activated: bool, silence_counts: bool, learns: bool
) -> None:
    state = _fresh()
    if activated:
        assert state.activate() == Outcome("accepted")
        assert state.activate() == Outcome("duplicate")
    assert state.expire(silence_counts=silence_counts) == Outcome("expired", learns)
    assert state.expire(silence_counts=silence_counts) == Outcome("duplicate")
    assert state.activate() == Outcome("duplicate" if activated else "late")
    # Silence that was learnt from is an answer: a late one is not learnt on top of it.
    assert state.feedback(b"1", at=5, policy=LEARN) == Outcome("late", not learns)


def test_an_answered_decision_does_not_expire() -> None:
    state = _fresh()
    state.feedback(b"1", at=5, policy=IGNORE)
    assert state.expire(silence_counts=True) == Outcome("duplicate")


def test_the_rows_of_a_decision_tell_its_state_and_what_each_came_to() -> None:
    story = [
        _row(1, "feedback", at=0),
        _row(2, "activate", at=0),
        _row(3, "decision", at=900),
        _row(4, "feedback", at=901),
        _row(5, "feedback", at=902, digest=b"2"),
        _row(6, "conflict", at=903),
        _row(7, "expire", at=5_000),
    ]
    told: dict[int, Outcome] = {}
    state = replay_decision(story, through=99, policy=IGNORE, silence_counts=True, outcomes=told)
    assert state is not None
    assert {seq: outcome.status for seq, outcome in told.items()} == {
        1: "accepted",  # it waited for its decision, and is the answer that counts
        2: "unknown",
        4: "duplicate",
        5: "conflict",
        6: "conflict",
        7: "duplicate",
    }
    assert [seq for seq, outcome in told.items() if outcome.learns] == [1]
    assert replay_decision(story, through=2, policy=IGNORE, silence_counts=True) is None
    before = replay_decision(story, through=3, policy=Policy(parking_seconds=0.5), silence_counts=True)
    assert before is not None
    assert before.answer is None  # its time to wait was over


def test_feedback_waits_as_long_as_the_policy_says() -> None:
    row = _row(1, "feedback", at=100)
    assert in_time(row, at=1_100, policy=IGNORE)
    assert not in_time(row, at=1_101, policy=IGNORE)


def test_the_newest_decisions_are_kept_and_the_oldest_let_go() -> None:
    size = _fresh().n_bytes + 500
    recent = RecentDecisions(DecisionCache(3 * size))
    for name in "abcd":
        recent.put(name, _fresh())
    assert ["a" in recent, "b" in recent, "d" in recent] == [False, True, True]
    assert recent.get("a") is None
    recent.clear()
    assert recent.get("d") is None
    recent.put("huge", _fresh())
    assert "huge" in recent


def test_rankers_share_one_bound_and_the_oldest_go_first() -> None:
    size = _fresh().n_bytes + 500
    cache = DecisionCache(4 * size)
    one, other = RecentDecisions(cache), RecentDecisions(cache)
    one.put("early", _fresh())
    for name in "abc":
        one.put(name, _fresh())
        other.put(name, _fresh())
    assert [name in one for name in ("early", "a", "b", "c")] == [False, False, True, True]
    assert [name in other for name in "abc"] == [False, True, True]
    one.put("c", _fresh())  # again: counted once
    assert cache.n_bytes == 4 * size
    other.clear()
    assert (cache.n_bytes, "b" in one, "c" in other) == (2 * size, True, False)
