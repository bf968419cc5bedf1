"""The policies of a ranker over time, and what several answers to one list come to.

A list keeps the policy that it was drawn under: whether its feedback is late, and what several answers to it come to,
follows from the rows of the log and not from when somebody looks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker
from rankloop.serving.log import records
from rankloop.serving.log.choices import feedback_length
from rankloop.serving.log.decision_state import DecisionState
from rankloop.serving.log.records import Policy
from rankloop.serving.stores.contract import Store

Floats = NDArray[np.float64]
Change = tuple[int, str, Policy]  # the row, the ID that the change was given, and the policy from there on


class PolicyHistory:
    """The policy that a ranker was created with, and all changes of it."""

    def __init__(self, first: Policy, changes: list[Change] | None = None) -> None:
        self.first = first
        self.changes = changes or []

    def at(self, seq: int) -> Policy:
        """The policy of a list in row `seq`."""
        for changed, _, policy in reversed(self.changes):
            if changed < seq:
                return policy
        return self.first

    def after(self, seq: int) -> list[Policy]:
        """All policies that lists after row `seq` may have."""
        return [self.at(seq + 1), *(policy for changed, _, policy in self.changes if changed > seq)]

    def event_id(self, decision_id: str, digest: bytes, seq: int | None) -> str:
        """The ID of feedback that came without one on the list in row `seq`: the same again is the same event.

        Where several answers count, each content is an event; ValueError where only the caller can tell them apart.
        """
        policy = self.at(1 << 60) if seq is None else self.at(seq)
        if policy.answers == "sum":
            raise ValueError("with policy.answers 'sum' feedback needs an event_id")
        return f"{decision_id}#{digest.hex()}" if policy.collects else decision_id

    def change(self, seq: int, told: records.PolicyChange) -> None:
        """Row `seq` changes the policy."""
        self.changes = [*self.changes, (seq, told.event_id, told.policy)]


async def read_history(store: Store, ranker: str, first: Policy) -> PolicyHistory:
    """All changes of the policy that are in the log, found by their numbers."""
    history = PolicyHistory(first)
    while (row := await store.find(ranker, "policy", str(len(history.changes) + 1))) is not None:
        history.change(row.seq, records.read_body(row))
    return history


def waiting_time(policies: list[Policy]) -> tuple[int, bool]:
    """The milliseconds after which lists under any of these policies may be closed, and whether answers close them.

    Where policies differ, or gather answers until the deadline, each list must be looked at.
    """
    allowed = {round(one.deadline_seconds * 1000) for one in policies}
    return max(allowed), len(allowed) == 1 and not any(one.collects for one in policies)


def check_answers(policy: Policy, ranker: Ranker) -> None:
    """ValueError where this ranker cannot learn from what several answers come to."""
    if policy.answers == "sum" and ranker.feedback.kind == "clicks":
        raise ValueError("policy.answers must be first, last or union for a ranker of clicks, got 'sum'")


def at_deadline(state: DecisionState, policy: Policy, ranker: Ranker) -> Floats | None:
    """What is learnt from a list when its deadline has passed: no click, or what several answers come to.

    That is the last of them, their sum (at most the largest grade), or the largest of each position. Answers of
    another length than the list's, which came before it, are left out; None where there are no others.
    """
    length = feedback_length(ranker, state.decision)
    if not state.heard:
        return np.zeros(length)
    values = [
        np.frombuffer(one, "<f8").astype(np.float64) for one, _ in state.heard if len(one) == 8 * length
    ]
    if not values:
        return None
    total = values[-1] if policy.answers == "last" else values[0]
    if policy.answers == "sum":
        for one in values[1:]:
            total = total + one
        return total if ranker.max_grade is None else np.minimum(total, float(ranker.max_grade))
    if policy.answers == "union":
        for one in values[1:]:
            total = np.maximum(total, one)
    return total
