"""Feedback that came before its list, and waits for it."""

from __future__ import annotations

import heapq

from rankloop.serving.log.decision_state import PARKED_PER_DECISION
from rankloop.serving.log.records import Row
from rankloop.serving.log.saved_state import DeadLetter


class Parked(dict[str, list[tuple[int, int]]]):
    """By decision: seq and time of the feedback that waits for it, oldest first."""

    def __init__(self, saved: dict[str, list[tuple[int, int]]] | None = None) -> None:
        super().__init__({name: list(there) for name, there in (saved or {}).items()})
        # The same as a heap: for each decision the time of the oldest, or of an older one that is gone.
        self._waiting = sorted((there[0][1], name) for name, there in self.items())

    def add(self, row: Row) -> DeadLetter | None:
        """Let the feedback in `row` wait; what must go for it, where too much waits for the same list."""
        decision = row.decision or ""
        there = self.setdefault(decision, [])
        if not there:
            heapq.heappush(self._waiting, (row.at, decision))
        there.append((row.seq, row.at))
        if len(there) <= PARKED_PER_DECISION:
            return None
        return DeadLetter(*there.pop(0), decision, "newer feedback waits for the same decision")

    def give_up(self, oldest: float) -> list[DeadLetter]:
        """What came before the time `oldest`, and waits no longer."""
        found = []
        while self._waiting and self._waiting[0][0] < oldest:
            decision = self._waiting[0][1]
            there = self.get(decision, [])
            while there and there[0][1] < oldest:
                found.append(DeadLetter(*there.pop(0), decision, "no such decision came"))
            if there:
                heapq.heapreplace(self._waiting, (there[0][1], decision))
            else:
                heapq.heappop(self._waiting)
                self.pop(decision, None)
        return found
