"""What becomes of one decision: shown, answered, expired. Decided from its own rows in the log, and nothing else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from rankloop.serving.log.records import Policy, Row, read_decision


class Outcome(NamedTuple):
    """What a row of the log came to. `learns`: the ranker is to learn from it."""

    status: str
    learns: bool = False


class Fate(msgspec.Struct, gc=False, eq=False):
    """One decision as it stands: its row, and what has happened to it.

    silence: no answer was taken for one. answer: the digest of the answer that counts.
    """

    row: Row
    deadline: int
    activated: bool = False
    expired: bool = False
    silence: bool = False
    answer: bytes | None = None

    def activate(self) -> Outcome:
        """The list was really shown."""
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
        self.silence = self.activated and silence_counts
        return Outcome("expired", self.silence)

    def feedback(self, digest: bytes, *, at: int, policy: Policy) -> Outcome:
        """An answer came: the first one counts, the same again is a duplicate, another is a conflict."""
        if self.answer is not None:
            return Outcome("duplicate" if digest == self.answer else "conflict")
        if self.expired or at > self.deadline:
            if policy.late == "ignore" or self.silence:
                return Outcome("late")
            self.answer = digest
            return Outcome("late", True)
        self.answer = digest
        return Outcome("accepted", True)


def in_time(row: Row, *, at: int, policy: Policy) -> bool:
    """Whether feedback that came before its decision still waits for it at `at`."""
    return at - row.at <= policy.parking_seconds * 1000


def fate_of(
    story: Iterable[Row],
    *,
    through: int,
    policy: Policy,
    silence_counts: bool,
    told: dict[int, Outcome] | None = None,
) -> Fate | None:
    """The fate of a decision from its rows up to and with seq `through`; None where it is not among them.

    told: gets the outcome of each row.
    """
    outcomes = {} if told is None else told
    early: list[Row] = []
    fate: Fate | None = None
    for row in story:
        if row.seq > through:
            break
        if row.kind == "decision":
            fate = Fate(row, read_decision(row.body).deadline)
            for one in early:
                if in_time(one, at=row.at, policy=policy):
                    outcomes[one.seq] = fate.feedback(one.digest, at=row.at, policy=policy)
        elif row.kind == "conflict":
            outcomes[row.seq] = Outcome("conflict")
        elif fate is None:
            outcomes[row.seq] = Outcome("parked" if row.kind == "feedback" else "unknown")
            if row.kind == "feedback":
                early.append(row)
        elif row.kind == "activate":
            outcomes[row.seq] = fate.activate()
        elif row.kind == "feedback":
            outcomes[row.seq] = fate.feedback(row.digest, at=row.at, policy=policy)
        elif row.kind == "expire":
            outcomes[row.seq] = fate.expire(silence_counts=silence_counts)
    return fate


class Fates:
    """The newest decisions, at hand; older ones are read from the store again when somebody answers them."""

    def __init__(self, *, most_bytes: int = 32_000_000) -> None:
        self._kept: OrderedDict[str, Fate] = OrderedDict()
        self._bytes = 0
        self._most = most_bytes

    def __contains__(self, decision: str) -> bool:
        return decision in self._kept

    def get(self, decision: str) -> Fate | None:
        """The decision, if it is at hand."""
        return self._kept.get(decision)

    def put(self, decision: str, fate: Fate) -> None:
        """Keep it, and let go of the oldest where there are too many."""
        self._kept[decision] = fate
        self._bytes += len(fate.row.body) + 500
        while self._bytes > self._most and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone.row.body) + 500

    def clear(self) -> None:
        """Let go of all."""
        self._kept.clear()
        self._bytes = 0
