"""The contract of a store: an append-only log for each ranker, snapshots beside it, API keys, and leases.

What a store promises, and `rankloop.serving.stores.checks.check_store` tests:

1. `append` returns once everything is durable; all of a batch is, or nothing.
2. `seq` of a ranker counts from 1 without gaps, in the order in which rows become visible.
3. A kind and an event id are there once. Appending them again gives the row that is there, and changes nothing.
4. A snapshot is there whole or not at all.
5. The holder of a ranker's lease has an epoch; what is written to that ranker with an older one is refused.
6. The time of a ranker's rows never falls; where the clock is set back, it goes on from the last row at the same pace.
7. Where processes share it, a list that was drawn before the ranker was changed (its items, its policy, ...) is
   refused after that: whoever was told of a change gets no list from before it, whichever process answers.
8. Every row is linked to the one before it (`rankloop.serving.log.digests`), beginning with the store's identity; a
   snapshot is sealed. A snapshot of another history than the log's is refused.
"""

from __future__ import annotations

import abc

from rankloop.serving.log.records import Entry, Kind, Row
from rankloop.serving.stores.due import Due, search
from rankloop.serving.stores.errors import (
    Broken,
    Damaged,
    Diverged,
    Fenced,
    Full,
    Missing,
    Owned,
    SetBack,
    Stale,
    StoreError,
)
from rankloop.serving.stores.leases import Leases, Left
from rankloop.serving.stores.segments.segmented import Segmented
from rankloop.serving.stores.subjects import Subjects
from rankloop.serving.stores.values import Appended, Head, Snapshot, StoredKey

__all__ = [
    "Appended",
    "Broken",
    "Damaged",
    "Diverged",
    "Due",
    "Fenced",
    "Full",
    "Head",
    "Left",
    "Missing",
    "Owned",
    "SetBack",
    "Snapshot",
    "Stale",
    "Store",
    "StoreError",
    "StoredKey",
]


class Store(Leases, Segmented, Subjects, abc.ABC):
    """The storage of a service. All calls come from one event loop."""

    shared = False  # whether other processes append to the same logs
    timeline = ""  # the identity of this store, made with it
    clock_jumps = 0  # of a clock that the store itself has

    @abc.abstractmethod
    async def open(self) -> None:
        """Make ready; `Owned` where another process has it."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Let go."""

    @abc.abstractmethod
    async def rankers(self) -> list[str]:
        """The names of all rankers, in the order in which they were made."""

    @abc.abstractmethod
    async def archive(self, ranker: str, *, at: int) -> str:
        """Put a ranker away: its rows stay, under a name that no ranker can be given; `Missing` where there is none.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        at : int
            The time, in milliseconds.

        Returns
        -------
        str
            The name that it has from now on.
        """

    @abc.abstractmethod
    async def archived(self) -> list[str]:
        """The names of the rankers that were put away."""

    @abc.abstractmethod
    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        """Write all that is not there yet, in order, in one transaction, and wait until it is durable.

        A `config` entry makes its ranker; anything else for an unknown ranker is `Missing`. With `epoch`, `Fenced`
        unless the lease of the ranker still has it. `Stale` where a list was drawn before the ranker was changed.

        Parameters
        ----------
        entries : list of Entry
            What to write.
        at : int
            The time, in milliseconds.
        epoch : int, optional
            The epoch of the lease to write under.

        Returns
        -------
        list of Appended
            For each entry the row that is there now.
        """

    @abc.abstractmethod
    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        """Up to `limit` rows with a seq above `after`, in order.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        after : int
            The last row that is not wanted.
        limit : int
            How many rows at most.

        Returns
        -------
        list of Row
            The rows.
        """

    @abc.abstractmethod
    async def find(self, ranker: str, kind: Kind, event_id: str) -> Row | None:
        """The row with this kind and id.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        kind : Kind
            The kind of event.
        event_id : str
            The ID of the event.

        Returns
        -------
        Row
            The row; None where there is none.
        """

    @abc.abstractmethod
    async def stories(self, ranker: str, decisions: list[str]) -> dict[str, list[Row]]:
        """For each decision id every row about it, the decision itself included, in order of seq.

        Nothing for an id that no decision has, however much feedback names it.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        decisions : list of str
            The IDs of the decisions.

        Returns
        -------
        dict of str to list of Row
            The rows by decision ID.
        """

    async def origin(self, ranker: str) -> str:
        """The identity of the store in which a ranker's log began: the chain of its digests begins with that.

        Parameters
        ----------
        ranker : str
            The name of the ranker.

        Returns
        -------
        str
            This store's own, unless the ranker was brought here from another one.
        """
        return self.timeline

    async def rows_of(self, ranker: str, kind: Kind) -> list[Row]:
        """All rows of a kind of which there are few, in order: of freezes, resets and policies, not of lists.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        kind : Kind
            The kind of event.

        Returns
        -------
        list of Row
            The rows.
        """
        rows: list[Row] = []
        after = 0
        while page := await self.read(ranker, after=after, limit=1_000):
            rows += [row for row in page if row.kind == kind]
            after = page[-1].seq
        return rows

    async def last_seq(self, ranker: str) -> int:
        """The seq of the newest row, 0 where there is none.

        Parameters
        ----------
        ranker : str
            The name of the ranker.

        Returns
        -------
        int
            The number of the row.
        """
        return (await self.head(ranker)).seq

    @abc.abstractmethod
    async def head(self, ranker: str) -> Head:
        """The newest row, as the store would number on from it.

        Parameters
        ----------
        ranker : str
            The name of the ranker.

        Returns
        -------
        Head
            Its number and link.
        """

    async def heads(self, names: set[str] | None = None) -> dict[str, Head]:
        """The newest row of rankers, by their names.

        Parameters
        ----------
        names : set of str, optional
            Those that are asked for; None asks for all.

        Returns
        -------
        dict of str to Head
            Without those that are not there.
        """
        return {
            name: await self.head(name) for name in await self.rankers() if names is None or name in names
        }

    async def acknowledged(self, ranker: str) -> Head | None:
        """The newest row that was ever acknowledged, as it is kept apart from the log.

        Parameters
        ----------
        ranker : str
            The name of the ranker.

        Returns
        -------
        Head
            Its number and link; None where that is not kept.
        """
        return None

    async def given_up(self) -> list[str]:
        """What was acknowledged and is lost, where somebody has said that the store is to go on without it.

        Returns
        -------
        list of str
            A sentence for each loss.
        """
        return []

    async def unfiled(self, ranker: str, rows: list[Row]) -> list[int]:
        """Those of these rows that the store would not find by their IDs, because an index of it is damaged.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        rows : list of Row
            Rows of its log.

        Returns
        -------
        list of int
            Their numbers.
        """
        found = [await self.find(ranker, row.kind, row.event_id) for row in rows]
        return [row.seq for row, there in zip(rows, found, strict=True) if there != row]

    async def problems(self) -> list[str]:
        """What is wrong with the store itself, beside the logs and snapshots of its rankers.

        Returns
        -------
        list of str
            A sentence for each problem.
        """
        return []

    @abc.abstractmethod
    async def write_snapshot(self, ranker: str, snapshot: Snapshot, *, keep: int) -> None:
        """Keep it, sealed, with the newest `keep` - 1 before it.

        `Fenced` where its epoch is over, `Diverged` where the log has no row of its number and link.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        snapshot : Snapshot
            The snapshot.
        keep : int
            How many to keep.
        """

    @abc.abstractmethod
    async def snapshots(self, ranker: str) -> list[Snapshot]:
        """All of them, oldest first, without their states.

        Parameters
        ----------
        ranker : str
            The name of the ranker.

        Returns
        -------
        list of Snapshot
            The snapshots.
        """

    @abc.abstractmethod
    async def read_snapshot(self, ranker: str, seq: int) -> Snapshot | None:
        """The snapshot at `seq`, with its state.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        seq : int
            The row that it was taken at.

        Returns
        -------
        Snapshot
            The snapshot; None where there is none.
        """

    @abc.abstractmethod
    async def write_key(self, key: StoredKey) -> None:
        """Keep an API key.

        Parameters
        ----------
        key : StoredKey
            The key.
        """

    @abc.abstractmethod
    async def delete_key(self, key_id: str) -> bool:
        """Forget it; whether it was there.

        Parameters
        ----------
        key_id : str
            The public part of the key.

        Returns
        -------
        bool
            Whether it was there.
        """

    @abc.abstractmethod
    async def keys(self) -> list[StoredKey]:
        """All API keys."""

    async def look(self) -> None:
        """Look after the disk and the clock, every half second: `complaint` and `remarks` tell what was found."""

    def remarks(self) -> list[str]:
        """What an operator should know, although reading and writing go on; a sentence for each."""
        return []

    def complaint(self) -> str | None:
        """Why nothing could be written or read now, as far as is known already; None where nothing is."""
        return None

    async def time(self, ranker: str, *, at: int) -> int:
        """The present time by the clock of this ranker's log, in milliseconds.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        at : int
            The present time by the clock of this process; stores with a clock of their own do without.

        Returns
        -------
        int
            The time that a row would get now.
        """
        return at

    async def due(self, ranker: str, *, after: int, before: int, allowed: int, limit: int) -> Due:
        """Search up to `limit` rows for lists from before the time `before` that have no answer in time.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        after : int
            The last row that was searched.
        before : int
            Lists of this time and later are left for later.
        allowed : int
            Milliseconds in which an answer is in time.
        limit : int
            How many rows at most.

        Returns
        -------
        Due
            What was found. A list whose answer was reported before the list itself counts as open here.
        """
        rows = await self.read(ranker, after=after, limit=limit)
        lists = [row.event_id for row in rows if row.kind == "decision" and row.at < before]
        return search(rows, await self.stories(ranker, lists), before=before, allowed=allowed)
