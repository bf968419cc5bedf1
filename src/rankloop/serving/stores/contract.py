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
9. Where processes share it, one at a time is `creating` rankers.

Everywhere `ranker` is the name of a ranker and `rankers` several of them, `seq` the number of a row, `after` the last
row that is not wanted, `limit` how many rows are wanted at most. `at` is the present time by the clock of this process
in milliseconds, and `now` in seconds, which stores with a clock of their own do without; a lease lasts for `seconds`.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rankloop.serving.log.records import Entry, Kind, Row

if TYPE_CHECKING:
    from rankloop.serving.stores.segments import ClosedHistory, Segment

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

MOST_UNATTENDED = 16  # rankers that are named at once


class StoreError(Exception):
    """The store could not do it; nothing of the batch was written."""


class Full(StoreError):
    """No room on the disk. What was there stays good; try again when there is room."""


class Broken(StoreError):
    """The disk reported a failed write. Its content is uncertain: read-only until restarted."""


class Fenced(StoreError):
    """Another process took over: the epoch that this was written with is over."""


class Diverged(StoreError):
    """The log has another history than the state that this was made from; nothing was written."""


class Stale(StoreError):
    """A list was drawn from a state before another process changed the ranker; nothing was written."""


class Damaged(StoreError):
    """Something in the store cannot be read. What else it holds may be good."""


class SetBack(StoreError):
    """The store has fewer rows than it has acknowledged: nothing is written until somebody gives them up."""


class Owned(StoreError):
    """Another process owns this store."""


class Missing(StoreError):
    """No ranker has this name."""


class Appended(NamedTuple):
    """The `row` that is in the log under the entry's id, and whether it is `new`: this call put it there."""

    row: Row
    new: bool


class Snapshot(msgspec.Struct, frozen=True):
    """The fold of the log up to and with row `seq`, whose `link` it has, and hashes that tell whether to trust it.

    `at`: when it was taken, in milliseconds. `epoch`: of the lease that it was taken under. `code_hash`, `config_hash`
    and `state_hash`: of the code that computed it, of the ranker's configuration, and of the state. `state`: empty in
    lists of snapshots. `seal`: the digest of all this, made by the store when it is written.
    """

    seq: int
    at: int
    epoch: int
    code_hash: str
    config_hash: str
    state_hash: str
    state: bytes = b""
    link: bytes = b""
    seal: bytes = b""


class Head(NamedTuple):
    """The end of a log: the number `seq` of the newest row, 0 where there is none, and its `link`."""

    seq: int
    link: bytes


class StoredKey(msgspec.Struct, frozen=True):
    """An API key as it is kept: never the secret itself, but its `digest`.

    `key_id`: the public part. `role`: what the key allows. `at`: when it was made, in milliseconds. `note`: what for.
    """

    key_id: str
    role: str
    digest: bytes
    at: int
    note: str = ""


class SubjectKey(NamedTuple):
    """The key that the context of a data subject's lists is encrypted with; no bytes once it was destroyed."""

    key_id: str
    key: bytes | None


class Left(NamedTuple):
    """How a holder leaves a `ranker`: `looked` is the last row that it has seen.

    `wake_in`: in how many seconds the next deadline of a list passes; None where no list is open.
    """

    ranker: str
    looked: int
    wake_in: float | None


class OpenList(NamedTuple):
    """A list that has no answer in time."""

    seq: int
    decision: str
    has_feedback: bool


class Due(NamedTuple):
    """A part of the log that was searched, up to row `through`, for lists that nobody answered in time: `open`.

    `next_at`: the time of the first list that still has time; None where there is none.
    """

    open: list[OpenList]
    through: int
    next_at: int | None = None


# Of a row: its number, whether it is a list, its time and ID; whether it has no answer in time, and feedback at all.
Searched = tuple[int, bool, int, str, bool, bool]


def due_of(rows: Iterable[Searched], *, after: int, before: int) -> Due:
    """What a search of the rows after `after` comes to, as `Store.due` has it."""
    found: list[OpenList] = []
    through = after
    for seq, is_list, at, decision, is_open, has_feedback in rows:
        if is_list and at >= before:
            return Due(found, through, at)
        if is_list and is_open:
            found.append(OpenList(seq, decision, has_feedback))
        through = seq
    return Due(found, through)


class Store(abc.ABC):
    """The storage of a service. All calls come from one event loop."""

    shared = False  # whether other processes append to the same logs
    timeline = ""  # the identity of this store, made with it
    clock_jumps = 0  # of a clock that the store itself has
    alone: Callable[[str], bool] | None = None  # whether this process is the only one that writes to a ranker

    @abc.abstractmethod
    async def open(self) -> None:
        """Make ready; `Owned` where another process has it."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Let go."""

    @abc.abstractmethod
    async def rankers(self) -> list[str]:
        """The names of all rankers, in the order in which they were made."""

    @contextlib.asynccontextmanager
    async def creating(self) -> AsyncIterator[None]:
        """Other processes create no ranker meanwhile: those that there are can be counted."""
        yield

    @abc.abstractmethod
    async def archive(self, ranker: str, *, at: int) -> str:
        """Put a ranker away, `Missing` where there is none: its rows stay, under a name that no ranker can be given."""

    @abc.abstractmethod
    async def archived(self) -> list[str]:
        """The names of the rankers that were put away."""

    @abc.abstractmethod
    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        """Write all `entries` that are not there yet, in order, in one transaction, and wait until it is durable.

        A `config` entry makes its ranker; anything else for an unknown ranker is `Missing`. With `epoch`, `Fenced`
        unless the lease of the ranker still has it. `Stale` where a list was drawn before the ranker was changed.
        Gives for each entry the row that is there now.
        """

    @abc.abstractmethod
    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        """Up to `limit` rows with a seq above `after`, in order."""

    @abc.abstractmethod
    async def find(self, ranker: str, kind: Kind, event_id: str) -> Row | None:
        """The row with this `kind` and `event_id`; None where there is none."""

    @abc.abstractmethod
    async def stories(self, ranker: str, decisions: list[str]) -> dict[str, list[Row]]:
        """For each id in `decisions` every row about it, the decision itself included, in order of seq.

        Nothing for an id that no decision has, however much feedback names it.
        """

    async def rows_of(self, ranker: str, kind: Kind) -> list[Row]:
        """All rows of a `kind` of which there are few, in order: of freezes, resets and policies, not of lists."""
        rows: list[Row] = []
        after = 0
        while page := await self.read(ranker, after=after, limit=1_000):
            rows += [row for row in page if row.kind == kind]
            after = page[-1].seq
        return rows

    async def last_seq(self, ranker: str) -> int:
        """The seq of the newest row, 0 where there is none."""
        return (await self.head(ranker)).seq

    @abc.abstractmethod
    async def head(self, ranker: str) -> Head:
        """The number and link of the newest row, as the store would number on from it."""

    async def heads(self, names: set[str] | None = None) -> dict[str, Head]:
        """The newest row of the rankers with these `names`, or of all; without those that are not there."""
        return {
            name: await self.head(name) for name in await self.rankers() if names is None or name in names
        }

    async def acknowledged(self, ranker: str) -> Head | None:
        """The newest row that was ever acknowledged, as it is kept apart from the log; None where that is not kept."""
        return None

    async def given_up(self) -> list[str]:
        """What was acknowledged and is lost, a sentence each, where somebody has said to go on without it."""
        return []

    async def unfiled(self, ranker: str, rows: list[Row]) -> list[int]:
        """The numbers of those `rows` that would not be found by their IDs, because an index is damaged."""
        found = [await self.find(ranker, row.kind, row.event_id) for row in rows]
        return [row.seq for row, there in zip(rows, found, strict=True) if there != row]

    async def problems(self) -> list[str]:
        """What is wrong with the store itself, a sentence each, beside the logs and snapshots of its rankers."""
        return []

    @abc.abstractmethod
    async def write_snapshot(self, ranker: str, snapshot: Snapshot, *, keep: int) -> None:
        """Keep `snapshot`, sealed, with the newest `keep` - 1 before it.

        `Fenced` where its epoch is over, `Diverged` where the log has no row of its number and link.
        """

    @abc.abstractmethod
    async def snapshots(self, ranker: str) -> list[Snapshot]:
        """All of them, oldest first, without their states."""

    @abc.abstractmethod
    async def read_snapshot(self, ranker: str, seq: int) -> Snapshot | None:
        """The snapshot at `seq`, with its state; None where there is none."""

    @abc.abstractmethod
    async def write_key(self, key: StoredKey) -> None:
        """Keep an API `key`."""

    @abc.abstractmethod
    async def delete_key(self, key_id: str) -> bool:
        """Forget the API key with the public part `key_id`; whether it was there."""

    @abc.abstractmethod
    async def keys(self) -> list[StoredKey]:
        """All API keys."""

    async def look(self) -> None:
        """Look after the disk and the clock, every half second: `complaint` and `remarks` tell what was found."""
        return

    def remarks(self) -> list[str]:
        """What an operator should know, although reading and writing go on; a sentence for each."""
        return []

    def complaint(self) -> str | None:
        """Why nothing could be written or read now, as far as is known already; None where nothing is."""
        return None

    async def time(self, ranker: str, *, at: int) -> int:
        """The time that a row of this ranker's log would get now, in milliseconds."""
        return at

    async def due(self, ranker: str, *, after: int, before: int, allowed: int, limit: int) -> Due:
        """Search up to `limit` rows for lists from before the time `before` that have no answer in time.

        An answer is in time for `allowed` milliseconds. Stores that can ask their database search there. A list whose
        answer was reported before the list itself counts as open here.
        """
        rows = await self.read(ranker, after=after, limit=limit)
        lists = [row.event_id for row in rows if row.kind == "decision" and row.at < before]
        stories = await self.stories(ranker, lists)

        def searched(row: Row) -> Searched:
            story = stories.get(row.event_id, []) if row.kind == "decision" else []
            is_open = not any(_settles(one, row, allowed) for one in story)
            touched = any(one.kind == "feedback" for one in story)
            return row.seq, row.kind == "decision", row.at, row.event_id, is_open, touched

        return due_of(map(searched, rows), after=after, before=before)

    # Who looks after a ranker: of the processes that share a store, one holds its lease, snapshots and expires it.
    # What others may do, they all do: rank, and take in feedback. A lease keeps two from doing the same work, and its
    # epoch keeps one that slept past it from writing.

    @abc.abstractmethod
    async def take_leases(
        self, holder: str, rankers: Collection[str], *, seconds: float, now: float, at_once: bool = False
    ) -> dict[str, int]:
        """Take or renew the leases of `rankers` until `now` + `seconds`, of those that no other process holds.

        The same `holder`, the name of a process, keeps its epoch; a new one gets a larger one. With `at_once` they are
        taken also from who holds them. Gives the epoch of each that the holder has now.
        """

    async def let_go(self, holder: str, rankers: Collection[Left], *, now: float) -> None:
        """Give the leases of a `holder` back, and say when somebody is to look after these rankers again."""
        return

    async def unattended(self, *, seconds: float, now: float, besides: Collection[str] = ()) -> list[str]:
        """Some rankers whose lease nobody has held for `seconds`, and that have new rows or lists that are due.

        Without those named in `besides`: who asks cannot look after them.
        """
        return []

    async def wait_for_news(self, *, seconds: float) -> set[str] | None:
        """Return when another process may have appended something, or after `seconds`. A hint, nothing more.

        Gives the rankers that have news; None where that is not known.
        """
        await asyncio.sleep(seconds)
        return None

    def may_be_quiet(self, rankers: set[str]) -> bool:
        """Whether others need not be told at once of what is written to `rankers`: nobody else writes there."""
        return self.alone is not None and all(map(self.alone, rankers))

    # Closed history: rows that were moved to segments. Reading, finding and appending go on as if they had not been.

    async def history(self, ranker: str) -> ClosedHistory | None:
        """The closed part of a ranker's log, as it is now; None where there is no place for segments."""
        return None

    async def add_segment(self, ranker: str, segment: Segment, *, links: dict[int, bytes]) -> None:
        """From now on the rows of `segment` may be missing in the live log. Its files are on the disk.

        It is next after those there are: `Diverged` where another process added one meanwhile, or the log has another
        row of its last number. `links` are those of rows whose next row stays in the live log.
        """
        raise ValueError("this store keeps no segments")

    async def clear(self, ranker: str, *, keep: list[int], limit: int) -> bool:
        """Delete up to `limit` rows from the live log that are in segments; whether there may be more.

        The rows in `keep` stay all the same: feedback that still waits for its list.
        """
        return False

    async def give_space_back(self) -> None:
        """Give the space of deleted rows back to the file system, as far as the store can."""
        return

    async def left_over(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        """Rows of the live log that are in segments as well, in order."""
        return []

    # Keys of data subjects. A `subject`, as the application names it, may have several.

    async def subject_key(self, subject: str) -> SubjectKey | None:
        """The newest key of a `subject`; None where there is none."""
        raise NotImplementedError(f"{type(self).__name__} keeps no keys of data subjects")

    async def write_subject_key(self, subject: str, key: SubjectKey, *, at: int) -> SubjectKey:
        """The key of a `subject` that counts: `key`, durable when this returns, unless another was there first."""
        raise NotImplementedError(f"{type(self).__name__} keeps no keys of data subjects")

    async def find_subject_key(self, key_id: str) -> SubjectKey | None:
        """The key that the log calls `key_id`, without its bytes where it was destroyed; None where it never was."""
        return None

    async def erase_subject(self, subject: str, *, at: int) -> int:
        """Destroy all keys of a `subject`, forget that they were its keys, and say how many there were.

        `StoreError` where their bytes may still be in the store's files; called again, it tries again.
        """
        return 0

    async def erased_keys(self) -> set[str]:
        """The names of the keys that were destroyed."""
        return set()


def _settles(row: Row, decision: Row, allowed: int) -> bool:
    """Whether this row is an answer in time to the decision, or its expiry."""
    if row.kind == "feedback":
        return row.seq > decision.seq and row.at <= decision.at + allowed
    return row.kind == "expire"
