"""Which processes share a store: each announces itself under a lease of its own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import NamedTuple

FIRST_EPOCH = 1_000_000_000_000  # of an announcement; those of the one lease of a store are smaller


class Member(NamedTuple):
    """A process that shares a store, and where its service is.

    Parameters
    ----------
    replica : str
        Its name, another one after each start.
    address : str
        Where other replicas and clients reach its service, such as "http://10.0.0.7:8000".
    """

    replica: str
    address: str


class Roll(NamedTuple):
    """Who shares a store at present.

    Parameters
    ----------
    epoch : int
        Under which the process that asked may write: another one after its lease had run out.
    members : list of Member
        All whose lease holds, by name; the process that asked is one of them.
    """

    epoch: int
    members: list[Member]


class Announcing:
    """The part of a store that knows which processes share it, and when one of them wrote."""

    owns: Callable[[str], bool] | None = None  # whether this process owns a ranker, where rankers have owners

    def may_be_quiet(self, rankers: set[str]) -> bool:
        """Whether others need not be told at once of what this process writes.

        Who owns a ranker writes to it nearly alone, and its standby looks for what is new once a second.

        Parameters
        ----------
        rankers : set of str
            Their names.

        Returns
        -------
        bool
            Whether it owns all of them.
        """
        return self.owns is not None and all(map(self.owns, rankers))

    async def announce(self, replica: str, address: str, *, seconds: float, now: float) -> Roll:
        """Say that this process serves the rankers of a shared store, until `now` + `seconds`.

        Parameters
        ----------
        replica : str
            The name of the process.
        address : str
            Where its service is.
        seconds : float
            For how long.
        now : float
            The time, in seconds; stores with a clock of their own do without.

        Returns
        -------
        Roll
            Who does so at present, and the epoch of this process.
        """
        raise NotImplementedError(f"{type(self).__name__} is not shared")

    async def members(self, *, now: float) -> list[Member]:
        """Who serves the rankers of a shared store, without joining them.

        Parameters
        ----------
        now : float
            The time, in seconds; stores with a clock of their own do without.

        Returns
        -------
        list of Member
            All whose lease holds, by name.
        """
        return []

    async def withdraw(self, replica: str) -> None:
        """Say that a process serves no longer.

        Parameters
        ----------
        replica : str
            The name of the process.
        """
        return

    async def wait_for_news(self, *, seconds: float) -> set[str] | None:
        """Return when another process may have appended something, or after `seconds`. A hint, nothing more.

        Parameters
        ----------
        seconds : float
            How long to wait at most.

        Returns
        -------
        set of str or None
            The rankers that have news; None where that is not known.
        """
        await asyncio.sleep(seconds)
        return None


class MemberTable:
    """The table of members in memory: for stores of one process, and as the plainest reading of the contract."""

    def __init__(self) -> None:
        self._epochs = itertools.count(FIRST_EPOCH)
        self._rows: dict[str, tuple[str, int, float]] = {}

    def announce(self, replica: str, address: str, *, seconds: float, now: float) -> Roll:
        """As `Store.announce` has it."""
        until = now + seconds
        _, epoch, held_until = self._rows.get(replica, ("", 0, now - 1.0))
        # A lease that reaches further than any can was taken before the clock was set back.
        if not now <= held_until <= until + seconds:
            epoch = next(self._epochs)
        self._rows[replica] = (address, epoch, until)
        # Who has gone has no epoch any more: it writes nothing before it has announced itself again.
        self._rows = {name: row for name, row in self._rows.items() if now <= row[2] <= until + seconds}
        return Roll(epoch, [Member(name, row[0]) for name, row in sorted(self._rows.items())])

    def live(self, *, now: float) -> list[Member]:
        """As `Store.members` has it."""
        return [Member(name, row[0]) for name, row in sorted(self._rows.items()) if now <= row[2]]

    def withdraw(self, replica: str) -> None:
        """As `Store.withdraw` has it."""
        self._rows.pop(replica, None)

    def has(self, epoch: int) -> bool:
        """Whether a member still has this epoch."""
        return any(row[1] == epoch for row in self._rows.values())
