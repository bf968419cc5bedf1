"""Retention: closed history leaves the live log for Parquet segments, once they are on the disk and were read back.

Nothing is lost by it: what reads the log reads segments and live log as one. See `rankloop.serving.stores.segments`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rankloop.serving.failpoints import reach
from rankloop.serving.log import snapshots
from rankloop.serving.log.digests import BadRow, check_row, own_name, sealed
from rankloop.serving.log.fold import Fold, Saved, fold_through, pages
from rankloop.serving.log.records import Row
from rankloop.serving.log.snapshots import newest_fold
from rankloop.serving.stores import segments
from rankloop.serving.stores.contract import Damaged, Snapshot, Store, StoreError

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine

_log = logging.getLogger("rankloop.serving")
MOST = 250_000  # rows of one segment
_CLEARED = 2_000  # rows deleted in one transaction
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


class Retention(NamedTuple):
    """How much of a log stays live: the newest rows, or those that are young enough."""

    rows: int | None = None
    milliseconds: int | None = None


def read_retention(text: str) -> Retention:
    """Read how much of a log stays live.

    Examples
    --------
    >>> read_retention("7d"), read_retention("100000")
    (Retention(rows=None, milliseconds=604800000), Retention(rows=100000, milliseconds=None))
    """
    found = re.fullmatch(r"([0-9_]*[0-9])([smhdw]?)", text.strip())
    number = int(found[1].replace("_", "")) if found else 0
    if found is None or number < 1:
        raise ValueError(f"retain must be a number of rows, or a time such as 12h, 7d or 4w, got {text!r}")
    if not found[2]:
        return Retention(rows=number)
    return Retention(milliseconds=1_000 * number * _SECONDS[found[2]])


async def close_history(
    store: Store,
    ranker: str,
    retention: Retention,
    *,
    now: int,
    expired_through: int | None = None,
    at_least: int = 1,
    at_most: int = MOST,
) -> segments.Segment | None:
    """Move the oldest closed rows of a ranker to a segment, if the policy asks for it.

    A row is closed once every list up to it is answered or expired. The segment ends with a row whose state is known,
    or is computed here from the snapshot before it. The newest row always stays.
    """
    closed = await store.history(ranker)
    if closed is None:
        raise ValueError("there is no folder for segments: name one with --segments")
    await clear_live(store, ranker, closed)
    last = min(
        (await store.head(ranker)).seq - 1,
        await _expired(store, ranker) if expired_through is None else expired_through,
        await _old(store, ranker, retention, closed.through, now),
        closed.through + at_most,
    )
    listed = [one.seq for one in await store.snapshots(ranker) if closed.through < one.seq <= last]
    if listed and listed[-1] - closed.through >= max(at_least, (last - closed.through) // 2):
        last = listed[-1]
    if last - closed.through < at_least:
        return None
    fold, _ = await newest_fold(store, ranker, through=last)
    if fold.applied > last:
        return None  # from before an upgrade: this code has no state of these rows
    await fold_through(fold, store, ranker, last)
    segment, links = await _written(store, ranker, closed, fold)
    await store.add_segment(ranker, segment, links=links)
    reach("after-closing")
    await asyncio.to_thread(closed.tidy)
    await clear_live(store, ranker, closed, parked=_parked(fold))
    await store.give_space_back()
    return segment


async def clear_live(
    store: Store, ranker: str, closed: segments.ClosedHistory, *, parked: list[int] | None = None
) -> None:
    """Delete from the live log what is in segments; an interrupted deletion goes on here."""
    if not closed.segments:
        return
    if parked is None:
        snapshot = await asyncio.to_thread(closed.snapshot, closed.through)
        if snapshot is None:
            raise Damaged(f"the snapshot after row {closed.through} is missing")
        parked = _parked(snapshots.revive(snapshot))
    while await store.clear(ranker, keep=parked, limit=_CLEARED):
        reach("while-clearing")
        await asyncio.sleep(0)


def _parked(fold: Fold) -> list[int]:
    return sorted(seq for there in fold.parked.values() for seq, _ in there)


async def _expired(store: Store, ranker: str) -> int:
    listed = await store.snapshots(ranker)
    newest = await store.read_snapshot(ranker, listed[-1].seq) if listed else None
    return 0 if newest is None else msgspec.msgpack.decode(newest.state, type=Saved).expire_cursor


async def _old(store: Store, ranker: str, retention: Retention, through: int, now: int) -> int:
    """The last row that need not stay live."""
    head = (await store.head(ranker)).seq
    if retention.rows is not None:
        return head - retention.rows
    before = now - (retention.milliseconds or 0)
    low, high = through, head
    while low < high:  # time never falls
        middle = (low + high + 1) // 2
        rows = await store.read(ranker, after=middle - 1, limit=1)
        if rows and rows[0].at < before:
            low = middle
        else:
            high = middle - 1
    return low


async def _written(
    store: Store, ranker: str, closed: segments.ClosedHistory, fold: Fold
) -> tuple[segments.Segment, dict[int, bytes]]:
    """Write all files of the next segment, and wait for the disk; the segment, and links that the live log needs."""
    folder, first, last = closed.folder, closed.through + 1, fold.applied
    name = f"{first:012}-{last:012}-{fold.link.hex()[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    segments.sync(folder.parent)
    part = folder / f".{name}.{os.getpid()}.part"
    writer = segments.SegmentWriter(part)
    ends: list[Row] = []
    stay = set(_parked(fold))
    links: dict[int, bytes] = {}
    async for page in pages(store, ranker, after=first - 1, through=last):
        for row in page:
            check_row(row)
            if row.seq in stay or row.kind not in segments.MANY:
                links[row.seq - 1] = row.before
        await asyncio.to_thread(writer.add, page)
        ends = [ends[0] if ends else page[0], page[-1]]
    links[last] = ends[1].link
    links.pop(0, None)
    await asyncio.to_thread(writer.close)
    snapshot = sealed(ranker, snapshots.take(fold, epoch=0))
    packed = msgspec.msgpack.encode(snapshot)
    await asyncio.to_thread(
        segments.write_durable, folder / f"{name}.snapshot", lambda file: file.write_bytes(packed)
    )
    segments.sync(part)
    part.replace(folder / f"{name}.parquet")
    segments.sync(folder)
    reach("after-segment")
    index = await asyncio.to_thread(_read_back, closed, f"{name}.parquet", ends, snapshot)
    await asyncio.to_thread(closed.write_index, index)
    segment = segments.Segment(
        ranker=own_name(ranker),
        first=first,
        last=last,
        rows=last - first + 1,
        first_at=ends[0].at,
        last_at=ends[1].at,
        before=ends[0].before.hex(),
        link=ends[1].link.hex(),
        file=f"{name}.parquet",
        digest=segments.digest_of_file(folder / f"{name}.parquet"),
        snapshot=f"{name}.snapshot",
        snapshot_digest=segments.digest_of_file(folder / f"{name}.snapshot"),
        state_hash=snapshot.state_hash,
    )
    segment = segments.chained(segment, closed.segments[-1] if closed.segments else None)
    await asyncio.to_thread(segments.write_manifest, folder, [*closed.segments, segment])
    reach("after-manifest")
    return segment, links


def _read_back(
    closed: segments.ClosedHistory, file: str, ends: list[Row], snapshot: Snapshot
) -> segments.IdIndex:
    """Read the file as it is now, check every row of it, and index it."""

    def rows() -> Iterator[Row]:
        seq, before = ends[0].seq, ends[0].before
        for group in segments.read_groups(closed.folder / file):
            for row in group:
                if (row.seq, row.before) != (seq, before):
                    raise Damaged(f"row {row.seq} of the segment {file} does not follow the one before it")
                check_row(row)
                seq, before = row.seq + 1, row.link
                yield row
        if (seq - 1, before) != (snapshot.seq, snapshot.link):
            raise Damaged(f"the segment {file} does not end where it should")

    return segments.IdIndex.of(ends[0].seq, ends[1].seq, rows())


# Retention in a running service: rankers take turns, one segment at a time, beside the requests.

_PAUSE = 1.0  # seconds between two looks
_ALL_AGAIN = 3_600.0  # seconds after which rankers to which nothing happens are looked at as well
AT_LEAST = 20_000  # rows of a segment
_FEW = 100  # segments, before they become larger with the history: there are never many


class Trimming:
    """Moves closed history of the rankers that changed to segments.

    at_least: rows below which no segment is made: so much more than the policy asks for may be live, or a hundredth
    of a long history.
    """

    def __init__(self, engine: Engine, retention: Retention, *, at_least: int = AT_LEAST) -> None:
        self._engine = engine
        self._retention = retention
        self._at_least = at_least
        self._task: asyncio.Task[None] | None = None
        self.changed: set[str] = set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._go_on())

    async def stop(self) -> None:
        """Stop; what was begun goes on with the next start."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        looked = -_ALL_AGAIN
        while True:
            await asyncio.sleep(_PAUSE)
            if loop.time() - looked >= _ALL_AGAIN:
                looked = loop.time()
                self.changed |= set(self._engine.rankers)
            await self.look()

    async def look(self) -> int:
        """Make the segments that are due, of rankers that changed; how many."""
        changed, self.changed = self.changed, set()
        made = 0
        for name in sorted(changed):
            try:
                while await self._trim(name):
                    made += 1
            except (StoreError, BadRow, ValueError, OSError) as error:
                _log.warning("closed history of ranker %r stays in the live log: %s", name, error)
        return made

    async def _trim(self, name: str) -> bool:
        engine = self._engine
        served = engine.rankers.get(name)
        if served is None or served.read_only or engine.broken or not engine.housekeeping.is_mine(name):
            return False
        closed = await engine.store.history(name)
        through = 0 if closed is None else closed.through
        now = await engine.store.time(name, at=engine.now())
        segment = await close_history(
            engine.store,
            name,
            self._retention,
            now=now,
            expired_through=served.fold.expire_cursor,
            at_least=min(MOST, max(self._at_least, through // _FEW)),
        )
        if segment is not None:
            _log.info("ranker %r: rows %d to %d are in %s", name, segment.first, segment.last, segment.file)
        return segment is not None
