"""Checks closed history: the manifest, every file of every segment, and rows that are there twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rankloop.serving.log.digests import beginning, check_seal, own_name
from rankloop.serving.stores.contract import Store, StoreError
from rankloop.serving.stores.segments.closed_history import ClosedHistory
from rankloop.serving.stores.segments.ids import check_index
from rankloop.serving.stores.segments.manifest import Segment, digest_of_file, faults, read_manifest

_PAGE = 1_000


async def check_segments(store: Store, ranker: str, complain: Callable[[str], object]) -> dict[int, str]:
    """Check the segments of a ranker; the rows in them are read with the rest of the log."""
    closed = await store.history(ranker)
    if closed is None or not closed.segments:
        return {}
    segments = closed.segments
    first = beginning(await store.origin(ranker), ranker)
    for problem in faults(segments, ranker=own_name(ranker), beginning=first):
        complain(problem)
    try:
        # One that the store does not know of is from an attempt that was interrupted: its rows are in the live log.
        if read_manifest(closed.folder)[: len(segments)] != segments:
            complain(f"the manifest in {closed.folder} is another one than in the store")
    except StoreError as error:
        complain(str(error))
    for one in segments:
        for problem in await asyncio.to_thread(_faults_of_files, closed, one, ranker):
            complain(problem)
    for path in sorted(closed.folder.glob("*.ids")):
        try:
            await asyncio.to_thread(check_index, path)
        except (StoreError, OSError) as error:
            complain(f"{error}; delete it, and it is made again")
    await _check_left_over(store, ranker, closed, complain)
    return {one.last: one.state_hash for one in segments}


def _faults_of_files(closed: ClosedHistory, segment: Segment, ranker: str) -> list[str]:
    found = []
    for name, digest in ((segment.file, segment.digest), (segment.snapshot, segment.snapshot_digest)):
        try:
            if digest_of_file(closed.folder / name) != digest:
                found.append(f"{closed.folder / name} is not what was written: its digest differs")
        except OSError as error:
            found.append(f"{closed.folder / name} cannot be read: {error.strerror}")
    try:
        snapshot = closed.snapshot(segment.last)
        if snapshot is not None:
            check_seal(ranker, snapshot)
            if (snapshot.link.hex(), snapshot.state_hash) != (segment.link, segment.state_hash):
                found.append(
                    f"the snapshot {segment.snapshot} is of another row or state than the manifest says"
                )
    except (StoreError, ValueError) as error:
        found.append(str(error))
    return found


async def _check_left_over(
    store: Store, ranker: str, closed: ClosedHistory, complain: Callable[[str], object]
) -> None:
    """Rows that stay in the live log although they are in a segment must be the same in both."""
    after = 0
    while page := await store.left_over(ranker, after=after, limit=_PAGE):
        after = page[-1].seq
        for row in page:
            try:
                (other,) = await asyncio.to_thread(closed.rows, row.seq - 1, 1)
            except StoreError as error:
                complain(str(error))
                return
            if row != other:
                complain(f"row {row.seq} is another one in the live log than in its segment")
