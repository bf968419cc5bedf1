"""What the checks of stores share: a store that is opened and closed around a story, and things to write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from rankloop.serving.log.records import Entry, Kind
from rankloop.serving.stores.contract import Head, Snapshot, Store

MakeStore = Callable[[], Store]


class StoreBroken(AssertionError):
    """A contract is not kept."""


def play(make: MakeStore, story: Callable[[Store], Awaitable[None]]) -> None:
    """Open a fresh store, tell the story, and close it."""

    async def run() -> None:
        store = make()
        await store.open()
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(run())


def demand(kept: bool, problem: str) -> None:
    """`StoreBroken` unless it is kept."""
    if not kept:
        raise StoreBroken(problem)


async def refused(call: Awaitable[object], with_: type[Exception]) -> None:
    """`StoreBroken` unless the call raises that."""
    try:
        await call
    except with_:
        return
    raise StoreBroken(f"{with_.__name__} was to be raised")


async def lease_epoch(store: Store) -> int:
    """The epoch of a lease on ranker a that lasts for the whole check."""
    epochs = await store.take_leases("checks", ["a"], seconds=1e6, now=0.0)
    if "a" not in epochs:
        raise StoreBroken("a free lease was refused")
    return epochs["a"]


def a_config(ranker: str) -> Entry:
    """The entry that makes a ranker."""
    return Entry(ranker, "config", ranker, b"config", b"digest")


def an_entry(
    ranker: str,
    event_id: str,
    *,
    kind: Kind = "decision",
    body: bytes = b"\x00body",
    decision: str | None = None,
) -> Entry:
    """Any other entry."""
    return Entry(ranker, kind, event_id, body, b"digest", decision)


def a_snapshot(seq: int, epoch: int, head: Head) -> Snapshot:
    """A snapshot at this end of a log."""
    return Snapshot(seq, 7, epoch, "code", "config", "hash", b"\x00state" * 100, head.link)


def unsealed(snapshot: Snapshot) -> Snapshot:
    """The snapshot as it was before a store sealed it."""
    return msgspec.structs.replace(snapshot, seal=b"")
