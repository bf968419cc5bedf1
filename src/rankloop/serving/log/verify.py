"""Checks that a log is consistent: digests, replays from the first row and every snapshot, decisions drawn again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import numpy as np

from rankloop.serving.log import records
from rankloop.serving.log.candidate_lists import baseline_of, free_of, written_memo
from rankloop.serving.log.digests import beginning, check_seal, link_of, own_name
from rankloop.serving.log.fold import Fold, fold_rows, pages, related_rows
from rankloop.serving.log.guard_rails import draw_for, reach_of
from rankloop.serving.log.randomness import Draws, key_of
from rankloop.serving.log.records import Row
from rankloop.serving.log.snapshots import first_fold, read_sound, revive
from rankloop.serving.log.stored_features import request_of
from rankloop.serving.registry import readable
from rankloop.serving.stores.contract import Head, Snapshot, Store, StoreError
from rankloop.serving.stores.segments import (
    ClosedHistory,
    Segment,
    check_index,
    digest_of_file,
    faults,
    read_manifest,
)

_PAGE = 1_000
_NEWEST = 100_000  # rows among which the newest acknowledged one must be
_TOLD = 20  # problems that are spelled out


class Verdict(msgspec.Struct):
    """What was compared, and what differs."""

    ranker: str
    rows: int = 0
    decisions: int = 0
    learnt: int = 0
    snapshots: int = 0
    other_code: int = 0  # snapshots made by other code: not used, so not compared
    earlier: int = 0  # rows of an earlier version of the algorithm, whose digests are checked: not replayed
    segments: int = 0  # files of closed history, whose digests were checked
    state_hash: str = ""
    n_problems: int = 0
    problems: list[str] = []

    @property
    def holds(self) -> bool:
        return self.n_problems == 0

    def complain(self, problem: str) -> None:
        self.n_problems += 1
        if len(self.problems) < _TOLD:
            self.problems.append(problem)


async def verify(store: Store, ranker: str, *, through: int | None = None, replay: bool = True) -> Verdict:
    """Replay the log of `ranker`, to its end or `through` a seq, and compare everything that can be compared.

    Without `replay` only digests, numbers and times are checked, which needs no code of the ranker. Whatever is wrong
    becomes part of the verdict: the next ranker can be verified after this one.
    """
    verdict = Verdict(ranker, problems=[])
    try:
        try:
            mark = await store.acknowledged(ranker)  # before the end is looked for: none that is newer counts
        except ValueError as error:
            verdict.complain(str(error))
            mark = None
        last = await store.last_seq(ranker) if through is None else through
        seen = _Seen()
        seen.states = await check_segments(store, ranker, verdict.complain)
        verdict.segments = len(seen.states)
        await _look_through(store, ranker, last, verdict, seen)
        _check_end(mark, seen, verdict, whole=through is None)
        snapshots = await _sound_snapshots(store, ranker, last, verdict)
        if replay:
            await _replay(store, ranker, last, verdict, seen, snapshots)
    except StoreError as error:
        verdict.complain(f"the store cannot be read: {error}")
    except Exception as error:  # a ranker may fail in any way on rows that are not what was written
        verdict.complain(f"the replay failed: {error or type(error).__name__}")
    return verdict


class _Seen(msgspec.Struct):
    """What a first look at all rows finds."""

    drawn: list[tuple[int, int]] = []  # of each decision: the row that its state had folded, its own row
    targets: dict[int, str] = {}  # what rollbacks say was there
    links: dict[int, bytes] = {}  # of the newest rows
    states: dict[int, str] = {}  # what segments say was there after their last row


async def _replay(
    store: Store, ranker: str, last: int, verdict: Verdict, seen: _Seen, snapshots: dict[int, Snapshot]
) -> None:
    hashes: dict[int, str] = {}
    fold = await first_fold(store, ranker)
    start = fold.applied
    verdict.earlier = start - 1
    redraw = Redraw(store, ranker, [one for one in sorted(seen.drawn) if one[0] >= start], verdict.complain)
    await redraw.at(fold)
    targets = {to: state for to, state in seen.targets.items() if to >= start}
    states = {seq: state for seq, state in seen.states.items() if start <= seq <= last}
    wanted = {*snapshots, *targets, *states, start}
    hashes[start] = fold.state_hash()
    async for page in pages(store, ranker, after=start, through=last):
        related = await related_rows(fold, store, ranker, page)
        for row in page:
            fold.fold(row, related)
            await redraw.at(fold)
            if row.seq in wanted:
                hashes[row.seq] = fold.state_hash()
    verdict.state_hash = fold.state_hash()
    verdict.learnt = fold.counts.learnt
    verdict.decisions = redraw.done
    for to_seq, state in targets.items():
        if hashes.get(to_seq) != state:
            verdict.complain(f"a rollback to {to_seq} brought back another state than was there")
    for seq, state in states.items():
        if hashes.get(seq) != state:
            verdict.complain(f"the state after the segment that ends with row {seq} differs from a replay")
    for seq, snapshot in snapshots.items():
        if seq < start or not readable(snapshot.code_hash, fold.config):
            verdict.other_code += 1
        elif snapshot.state_hash != hashes.get(seq):
            verdict.complain(f"the snapshot at {seq} differs from a replay of the rows up to it")
        else:
            verdict.snapshots += 1
            await _from_snapshot(store, ranker, revive(snapshot), last, verdict)


async def _look_through(store: Store, ranker: str, last: int, verdict: Verdict, seen: _Seen) -> None:
    """Check the digests, numbers and times of all rows, and gather what the replay needs to know beforehand."""
    identities: set[int] = set()
    expected, at = 1, 0
    before = {beginning(store.timeline, ranker)}
    async for page in pages(store, ranker, after=0, through=last):
        for seq in await store.unfiled(ranker, page):
            verdict.complain(f"row {seq} is not found by its ID: an index is damaged")
        for row in page:
            if row.seq != expected:
                verdict.complain(f"after row {expected - 1} comes row {row.seq}")
            before = _check_link(row, before, verdict)
            if row.at < at:
                verdict.complain(f"time falls at row {row.seq}")
            identity = hash((row.kind, row.event_id))
            if identity in identities:
                verdict.complain(f"{row.kind} {row.event_id!r} is there twice")
            identities.add(identity)
            expected, at = row.seq + 1, row.at
            verdict.rows += 1
            seen.links[row.seq] = row.link
            if len(seen.links) > _NEWEST:
                del seen.links[next(iter(seen.links))]
            try:
                if row.kind == "decision":
                    seen.drawn.append((records.read_decision(row.body).model_seq, row.seq))
                elif row.kind == "rollback":
                    body = records.read_body(row)
                    seen.targets[body.to_seq] = body.state_hash
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                verdict.complain(f"row {row.seq} cannot be read: {error or type(error).__name__}")
    if expected != last + 1:
        verdict.complain(f"the log ends at row {expected - 1}, not at {last}")


def _check_link(row: Row, before: set[bytes], verdict: Verdict) -> set[bytes]:
    """Complain where a row is not what was written; the links that the next row may follow.

    Where this one is bad, that is the link it has and the one it ought to have: the digest itself may be damaged.
    """
    links = {link_of(row, one) for one in before}
    if row.link in links:
        return {row.link}
    verdict.complain(f"row {row.seq} is not what was written: its digest differs")
    return {row.link, *links}


def _check_end(mark: Head | None, seen: _Seen, verdict: Verdict, *, whole: bool) -> None:
    """Compare with the newest row that was acknowledged, where that is kept apart: the log may have lost its end."""
    if mark is None or not mark.seq or (mark.seq not in seen.links and not whole):
        return
    if mark.seq not in seen.links:
        last = max(seen.links, default=0)
        verdict.complain(f"row {mark.seq} was acknowledged, and the log ends at row {last}")
    elif seen.links[mark.seq] != mark.link:
        verdict.complain(f"row {mark.seq} is another one than was acknowledged")


async def _sound_snapshots(store: Store, ranker: str, last: int, verdict: Verdict) -> dict[int, Snapshot]:
    """Every snapshot whose digest is right, and which is of this log; complains about the others."""
    sound: dict[int, Snapshot] = {}
    for listed in await store.snapshots(ranker):
        whole = await store.read_snapshot(ranker, listed.seq)
        if whole is None:  # a newer one pushed it out meanwhile
            continue
        try:
            check_seal(ranker, whole)
            if listed.seq <= last and (found := await read_sound(store, ranker, listed.seq)) is not None:
                sound[listed.seq] = found
            elif listed.seq > await store.last_seq(ranker):
                verdict.complain(f"there is a snapshot at {listed.seq}, and the log ends before it")
        except ValueError as error:
            verdict.complain(str(error))
    return sound


async def _from_snapshot(store: Store, ranker: str, fold: Fold, last: int, verdict: Verdict) -> None:
    seq = fold.applied
    async for page in pages(store, ranker, after=seq, through=last):
        await fold_rows(fold, store, ranker, page)
    if fold.state_hash() != verdict.state_hash:
        verdict.complain(
            f"a replay from the snapshot at {seq} ends in another state than one from the beginning"
        )


# Draws the decisions of a log again, each from the state that it says it was drawn from.


class Redraw:
    """To be told of every state of a replay. `done` counts what was drawn again.

    drawn: of each decision the number of the row that its state had folded last, and its own; in that order.
    """

    def __init__(
        self, store: Store, ranker: str, drawn: list[tuple[int, int]], complain: Callable[[str], object]
    ) -> None:
        self._store = store
        self._ranker = ranker
        self._drawn = drawn
        self._next = 0
        self._complain = complain
        self._draws = Draws()
        self.done = 0

    async def at(self, fold: Fold) -> None:
        while self._next < len(self._drawn) and self._drawn[self._next][0] <= fold.applied:
            model_seq, seq = self._drawn[self._next]
            self._next += 1
            (row,) = await self._store.read(self._ranker, after=seq - 1, limit=1)
            if model_seq != fold.applied:
                self._complain(f"decision {row.event_id!r} says that it was drawn from row {model_seq}")
                continue
            self.done += 1
            if not self._same(fold, row):
                self._complain(f"decision {row.event_id!r} (row {seq}) cannot be drawn again")

    def _same(self, fold: Fold, row: Row) -> bool:
        decision = records.read_decision(row.body)
        if not decision.key and decision.propensities is None:  # another system ordered it
            return True
        if decision.key != key_of(fold.config.seed, row.event_id) or decision.generation != fold.generation:
            return False
        features = request_of(fold.ranker, fold.stored, decision)
        rng = self._draws.generator(decision.key)
        asked = features, free_of(decision), baseline_of(decision)
        drawn = draw_for(fold, *asked, decision.key, rng, reach_of(decision))
        chances = None if drawn.propensities is None else drawn.propensities.astype("<f8").tobytes()
        memo = drawn.memo
        if len(decision.memo) < len(memo):
            memo = written_memo(fold, memo)
        return (
            np.array_equal(np.frombuffer(decision.shown, "<i4"), drawn.shown)
            and decision.propensities == chances
            and decision.memo == tuple(records.pack(part) for part in memo)
            and (decision.choice, decision.trial, decision.rails) == (drawn.choice, drawn.trial, drawn.rails)
        )


# Checks closed history: the manifest, every file of every segment, and rows that are there twice.


async def check_segments(store: Store, ranker: str, complain: Callable[[str], object]) -> dict[int, str]:
    """Check the segments of a ranker; the rows in them are read with the rest of the log."""
    closed = await store.history(ranker)
    if closed is None or not closed.segments:
        return {}
    segments = closed.segments
    first = beginning(store.timeline, ranker)
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
        except FileNotFoundError:  # it was joined with others meanwhile
            continue
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
