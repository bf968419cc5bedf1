"""Who looks after a ranker: of the processes that share a store, one holds its lease, snapshots and expires it.

What others may do, they all do: rank, and take in feedback. A lease keeps two from doing the same work, and its epoch
keeps one that slept past it from writing.
"""

from __future__ import annotations

import abc
import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from rankloop.serving.clock import held

MOST_UNATTENDED = 16  # rankers that are told of at once


class Left(NamedTuple):
    """How a holder leaves a ranker.

    Parameters
    ----------
    ranker : str
        The name of the ranker.
    looked : int
        The last row that it has seen.
    wake_in : float, optional
        In how many seconds the next deadline of a list passes; None where no list is open.
    """

    ranker: str
    looked: int
    wake_in: float | None


class Leases(abc.ABC):
    """The part of a store that is about the processes that share it."""

    alone: Callable[[str], bool] | None = None  # whether this process is the only one that writes to a ranker

    @abc.abstractmethod
    async def take_leases(
        self,
        holder: str,
        rankers: Collection[str],
        *,
        seconds: float,
        now: float,
        at_once: bool = False,
    ) -> dict[str, int]:
        """Take or renew the leases of rankers until `now` + `seconds`, of those that no other process holds.

        The same holder keeps its epoch; a new holder gets a larger one.

        Parameters
        ----------
        holder : str
            The name of the process that asks.
        rankers : collection of str
            The names of the rankers.
        seconds : float
            For how long.
        now : float
            The time, in seconds; stores with a clock of their own do without.
        at_once : bool, optional
            Whether to take them also from who holds them.

        Returns
        -------
        dict of str to int
            The epoch of each that it holds now.
        """

    async def let_go(self, holder: str, rankers: Collection[Left], *, now: float) -> None:
        """Give leases back, and say when somebody is to look after these rankers again.

        Parameters
        ----------
        holder : str
            The name of the process that has them.
        rankers : collection of Left
            The rankers, and how they are left.
        now : float
            The time, in seconds; stores with a clock of their own do without.
        """
        return

    async def unattended(self, *, seconds: float, now: float, besides: Collection[str] = ()) -> list[str]:
        """Some rankers whose lease nobody has held for `seconds`, and that have new rows or lists that are due.

        Parameters
        ----------
        seconds : float
            How long a lease lasts.
        now : float
            The time, in seconds; stores with a clock of their own do without.
        besides : collection of str, optional
            Those that need not be told of: who asks cannot look after them.

        Returns
        -------
        list of str
            Their names.
        """
        return []

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

    def may_be_quiet(self, rankers: set[str]) -> bool:
        """Whether others need not be told at once of what this process writes: nobody else writes there.

        Parameters
        ----------
        rankers : set of str
            Their names.

        Returns
        -------
        bool
            Whether it is alone with all of them.
        """
        return self.alone is not None and all(map(self.alone, rankers))


class _Lease(NamedTuple):
    holder: str
    epoch: int
    until: float
    looked: int = 0
    wake: float | None = None


class LeaseTable:
    """The leases in memory: for stores of one process, and as the plainest reading of the contract."""

    def __init__(self) -> None:
        self._epochs = itertools.count(1)
        self._leases: dict[str, _Lease] = {}

    def take(
        self, holder: str, rankers: Collection[str], *, seconds: float, now: float, at_once: bool
    ) -> dict[str, int]:
        """As `Leases.take_leases` has it."""
        taken = {}
        for name in rankers:
            lease = self._leases.get(name) or _Lease("", 0, now)
            if lease.holder != holder:
                if held(now, until=lease.until, seconds=seconds) and not at_once:
                    continue
                lease = lease._replace(holder=holder, epoch=next(self._epochs))
            self._leases[name] = lease._replace(until=now + seconds)
            taken[name] = lease.epoch
        return taken

    def let_go(self, holder: str, rankers: Collection[Left], *, now: float) -> None:
        """As `Leases.let_go` has it."""
        for name, looked, wake_in in rankers:
            lease = self._leases.get(name)
            if lease is not None and lease.holder == holder:
                wake = None if wake_in is None else now + wake_in
                self._leases[name] = lease._replace(holder="", until=now, looked=looked, wake=wake)

    def unattended(self, ends: Mapping[str, tuple[int, float]], *, seconds: float, now: float) -> list[str]:
        """As `Leases.unattended` has it; ends: number and time of the last row of each ranker."""
        names = []
        for name, (seq, at) in ends.items():
            lease = self._leases.get(name) or _Lease("", 0, at)
            waits = seq > lease.looked or (lease.wake is not None and lease.wake <= now)
            if waits and not held(now, until=lease.until + seconds, seconds=1.5 * seconds):
                names.append(name)
        return names[:MOST_UNATTENDED]

    def has(self, ranker: str, epoch: int) -> bool:
        """Whether a ranker's lease still has this epoch."""
        return ranker in self._leases and self._leases[ranker].epoch == epoch
