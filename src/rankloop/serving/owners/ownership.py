"""What a replica knows of the others: who is there, and who owns which ranker."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Self

from rankloop.serving.owners.rendezvous import by_preference
from rankloop.serving.stores.contract import Member, Roll

LEASE_SECONDS = 5.0
_REMEMBERED = 200_000  # rankers whose places are not computed again


class Ownership:
    """The replicas of a service, as one of them sees them.

    Two replicas may see different ones for a moment, and both serve a ranker: that costs work, and harms nothing.
    Replicas are told apart by their address, so that one that starts again gets back what it had.
    """

    def __init__(
        self, replica: str, address: str, *, seconds: float, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self.replica = replica
        self.address = address
        self.seconds = seconds
        self.members = [Member(replica, address)]
        self._steady = steady
        self._places: dict[str, list[Member]] = {}
        self._silent: dict[str, float] = {}  # until when each is left alone
        self._adopted: dict[str, float] = {}  # until when each ranker is kept

    @classmethod
    def new(cls, address: str, *, steady: Callable[[], float] | None = None) -> Self:
        """For a process that begins: with a name of its own."""
        return cls(secrets.token_hex(8), address, seconds=LEASE_SECONDS, steady=steady or time.monotonic)

    def see(self, roll: Roll) -> bool:
        """Take in who is there now."""
        if roll.members == self.members:
            return False
        self.members = roll.members
        self._places.clear()
        return True

    def foresee(self, others: list[Member]) -> None:
        """See who will be there once this one has joined."""
        self.see(Roll(0, sorted({*others, Member(self.replica, self.address)})))

    def places(self, ranker: str) -> list[Member]:
        """Owner and standby of a ranker; where one does not answer, the next comes in its place."""
        found = self._places.get(ranker)
        if found is None:
            if len(self._places) >= _REMEMBERED:
                self._places.clear()
            silent = self._silent_now()
            answering = {one.address: one for one in self.members if one.address not in silent}
            found = [answering[name] for name in by_preference(ranker, answering)[:2]]
            self._places[ranker] = found
        return found

    def _silent_now(self) -> set[str]:
        now = self._steady()
        self._silent = {name: until for name, until in self._silent.items() if until > now}
        return set(self._silent) - {self.address}

    def owner(self, ranker: str) -> Member:
        """Who serves a ranker."""
        return self.places(ranker)[0]

    def owns(self, ranker: str) -> bool:
        """Whether this replica serves a ranker, takes its snapshots and expires its lists."""
        return self.owner(ranker).address == self.address

    def folds(self, ranker: str) -> bool:
        """Whether this replica follows the log of a ranker: as its owner, as its standby, or for a while."""
        if any(one.address == self.address for one in self.places(ranker)):
            self._adopted.pop(ranker, None)
            return True
        until = self._adopted.get(ranker)
        if until is not None and until <= self._steady():
            del self._adopted[ranker]
            return False
        return until is not None

    def adopt(self, ranker: str) -> None:
        """Follow a ranker for a while, because somebody asked this replica for it."""
        self._adopted[ranker] = self._steady() + 2 * self.seconds

    def did_not_answer(self, address: str) -> None:
        """Leave a replica alone until its lease would have run out."""
        self._silent[address] = self._steady() + self.seconds
        self._places.clear()

    def look(self) -> None:
        """Ask those again that were left alone for long enough."""
        before = len(self._silent)
        if before and len(self._silent_now()) != before:
            self._places.clear()
