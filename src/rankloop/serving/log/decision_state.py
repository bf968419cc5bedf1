"""The state of one decision: shown, answered, expired. It follows from its own rows in the log, and nothing else."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from rankloop.serving.log.records import Answer, Decision, Policy, Row, read_decision

if TYPE_CHECKING:
    from rankloop.serving.log.records import PolicyHistory

_OVERHEAD = 500  # bytes of a decision at hand beside its row
_owners = itertools.count()


class Outcome(NamedTuple):
    """What a row of the log came to. `learns`: the ranker is to learn from it.

    imported: of the last row of an import, how many lists were learnt from, and why others were left out.
    """

    status: str
    learns: bool = False
    imported: tuple[int, Mapping[str, int]] | None = None


_LEARNS = Outcome("accepted", True)


class DecisionState(msgspec.Struct, gc=False, eq=False):
    """One decision as it stands: its row, read once, and what has happened to it.

    silence: no answer was taken for one. answer: the digest of the answer that counts. heard: what answers that are
    gathered come to so far, of each length, and when the last of them came; n_heard: how many they are.
    """

    seq: int
    at: int
    decision: Decision
    n_bytes: int
    activated: bool = False
    expired: bool = False
    silence: bool = False
    answer: bytes | None = None
    heard: tuple[tuple[bytes, int], ...] = ()
    n_heard: int = 0

    @classmethod
    def of(cls, row: Row, decision: Decision | None = None) -> DecisionState:
        """The state of a decision to which nothing has happened yet; its row is read unless that is at hand."""
        return cls(row.seq, row.at, decision or read_decision(row.body), len(row.body))

    @property
    def n_shown(self) -> int:
        return len(self.decision.shown) // 4  # int32

    @property
    def deadline(self) -> int:
        """The time, by the clock of the log, up to which an answer is in time."""
        allowed = self.decision.allowed
        return self.decision.deadline if allowed is None else self.at + allowed

    def delay(self, row: Row, *, at: int) -> float | None:
        """Seconds from the list to the feedback that `row`, at the time `at`, makes count; None without any."""
        if row.kind != "expire":
            return (at - self.at) / 1000
        return (self.heard[-1][1] - self.at) / 1000 if self.heard else None

    def _gathers(self, answer: Answer, policy: Policy) -> bool:
        if policy.collects:
            return True
        return self.answer is None and (bool(self.heard) or (answer.form == "click" and policy.window > 0))

    def _gather(self, values: bytes, at: int, policy: Policy) -> None:
        others = []
        for one in self.heard:
            if len(one[0]) == len(values):
                values = _both(one[0], values, policy)
            else:
                others.append(one)
        self.heard = (*others, (values, at))
        self.n_heard += 1

    def activate(self) -> Outcome:
        if self.activated:
            return Outcome("duplicate")
        if self.expired:
            return Outcome("late")
        self.activated = True
        return Outcome("accepted")

    def expire(self, *, silence_counts: bool) -> Outcome:
        """The deadline passed. Silence says something only where the list was seen, and only about clicks."""
        if self.answer is not None or self.expired:
            return Outcome("duplicate")
        self.expired = True
        if self.heard:
            return Outcome("collected", True)
        self.silence = self.activated and silence_counts
        return Outcome("expired", self.silence)

    def feedback(
        self, digest: bytes, *, at: int, policy: Policy, body: bytes = b"", answer: Answer | None = None
    ) -> Outcome:
        """An answer came: the first one counts, the same again is a duplicate, another is a conflict.

        Where the policy gathers answers, all of them count when the deadline has passed; so do clicks that come one by
        one, and what comes after the first of them, when their window has closed. `body` is that of the row, and
        `answer` what it says, where that is at hand.
        """
        if answer is None and body:
            answer = msgspec.msgpack.decode(body, type=Answer)
        if answer is not None and self._gathers(answer, policy) and not self.expired and at <= self.deadline:
            self._gather(answer.values, at, policy)
            return Outcome("accepted")
        if self.heard:
            return Outcome("late")
        if self.answer is not None:
            return Outcome("duplicate" if digest == self.answer else "conflict")
        if self.expired or at > self.deadline:
            if policy.late == "ignore" or self.silence:
                return Outcome("late")
            self.answer = digest
            return Outcome("late", True)
        self.answer = digest
        return _LEARNS


def _both(one: bytes, other: bytes, policy: Policy) -> bytes:
    """What two answers come to."""
    if policy.answers == "last":
        return other
    first, second = np.frombuffer(one, "<f8"), np.frombuffer(other, "<f8")
    both = first + second if policy.answers == "sum" else np.maximum(first, second)
    packed: bytes = both.tobytes()
    return packed


# Feedback on one id that waits for its list: the newest this many. The list has one answer, so more is of no use.
PARKED_PER_DECISION = 16


def in_time(row: Row, *, at: int, policy: Policy) -> bool:
    """Whether feedback that came before its decision still waits for it at `at`."""
    return at - row.at <= policy.parking_seconds * 1000


def replay_decision(
    story: Iterable[Row],
    *,
    through: int,
    policy: Policy | PolicyHistory,
    silence_counts: bool,
    outcomes: dict[int, Outcome] | None = None,
) -> DecisionState | None:
    """The state of a decision from its rows up to and with seq `through`; None where it is not among them.

    policy: of this list, or of all lists of the ranker over time.
    outcomes: gets the outcome of each row.
    """
    outcomes = {} if outcomes is None else outcomes
    rules = policy if isinstance(policy, Policy) else policy.first
    early: list[Row] = []
    state: DecisionState | None = None
    for row in story:
        if row.seq > through:
            break
        if row.kind == "decision":
            state = DecisionState.of(row)
            rules = policy if isinstance(policy, Policy) else policy.at(row.seq)
            for one in early[-PARKED_PER_DECISION:]:
                if in_time(one, at=row.at, policy=rules):
                    outcomes[one.seq] = state.feedback(one.digest, at=row.at, policy=rules, body=one.body)
        elif row.kind == "conflict":
            outcomes[row.seq] = Outcome("conflict")
        elif state is None:
            outcomes[row.seq] = Outcome("parked" if row.kind in ("feedback", "ubi") else "unknown")
            if row.kind == "feedback":
                early.append(row)
        elif row.kind == "activate":
            outcomes[row.seq] = state.activate()
        elif row.kind == "feedback":
            outcomes[row.seq] = state.feedback(row.digest, at=row.at, policy=rules, body=row.body)
        elif row.kind == "expire":
            outcomes[row.seq] = state.expire(silence_counts=silence_counts)
    return state


class RelatedRows:
    """What rows that are to be folded need beside themselves: decisions, and feedback that came before its decision."""

    def __init__(self) -> None:
        self.states: dict[str, DecisionState] = {}
        self.early: dict[str, list[Row]] = {}
        self.parts: dict[int, list[Row]] = {}  # by the last row of an import: the rows of its earlier parts
        self.learning: dict[int, Any] = {}  # likewise: `imports.Learning`, where it was done beforehand
        self.contents: dict[int, Any] = {}  # by row: what its body was written from, where that is at hand


class DecisionCache:
    """The newest decisions of several rankers, with one bound for all; the oldest go first, whosever they are."""

    def __init__(self, most_bytes: int = 32_000_000) -> None:
        self.kept: OrderedDict[tuple[int, str], DecisionState] = OrderedDict()
        self.n_bytes = 0
        self._most = most_bytes

    def put(self, key: tuple[int, str], state: DecisionState) -> None:
        """Keep it, and let go of the oldest where there are too many."""
        if key in self.kept:
            self.remove(key)
        self.kept[key] = state
        self.n_bytes += state.n_bytes + _OVERHEAD
        while self.n_bytes > self._most and len(self.kept) > 1:
            self.remove(next(iter(self.kept)))

    def remove(self, key: tuple[int, str]) -> None:
        gone = self.kept.pop(key, None)
        if gone is not None:
            self.n_bytes -= gone.n_bytes + _OVERHEAD


class RecentDecisions:
    """The newest decisions, at hand; older ones are read from the store again when feedback on them arrives."""

    def __init__(self, cache: DecisionCache | None = None) -> None:
        self._cache = DecisionCache() if cache is None else cache
        self._owner = next(_owners)

    def __contains__(self, decision: str) -> bool:
        return (self._owner, decision) in self._cache.kept

    def get(self, decision: str) -> DecisionState | None:
        return self._cache.kept.get((self._owner, decision))

    def put(self, decision: str, state: DecisionState) -> None:
        self._cache.put((self._owner, decision), state)

    def clear(self) -> None:
        for key in [key for key in self._cache.kept if key[0] == self._owner]:
            self._cache.remove(key)
