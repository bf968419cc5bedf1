"""Checks that a log is consistent: digests, replays from the first row and every snapshot, decisions drawn again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from rankloop.serving.log import records as rows
from rankloop.serving.log.digests import beginning, check_seal, link_of
from rankloop.serving.log.fingerprint import readable
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.records import Row
from rankloop.serving.log.redraw import Redraw
from rankloop.serving.log.snapshots import read_sound, revive
from rankloop.serving.log.starting_point import first_fold
from rankloop.serving.log.verify_segments import check_segments
from rankloop.serving.served_ranker import related_rows
from rankloop.serving.stores.contract import Snapshot, Store, StoreError

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
    earlier: int = (
        0  # rows of an earlier version of the algorithm: their digests are checked, they are not replayed
    )
    segments: int = 0  # files of closed history, whose digests were checked
    state_hash: str = ""
    n_problems: int = 0
    problems: list[str] = []

    @property
    def holds(self) -> bool:
        """Whether everything agrees."""
        return self.n_problems == 0

    def complain(self, problem: str) -> None:
        """Record a difference."""
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
        last = await store.last_seq(ranker) if through is None else through
        seen = _Seen()
        seen.states = await check_segments(store, ranker, verdict.complain)
        verdict.segments = len(seen.states)
        await _look_through(store, ranker, last, verdict, seen)
        await _check_end(store, ranker, seen, verdict, whole=through is None)
        snapshots = await _sound_snapshots(store, ranker, last, verdict)
        if replay:
            await _replay(store, ranker, last, verdict, seen, snapshots)
    except StoreError as error:
        verdict.complain(f"the store cannot be read: {error}")
    except Exception as error:  # a ranker may fail in any way on rows that are not what was written
        verdict.complain(f"the replay failed: {error or type(error).__name__}")
    return verdict


class _Seen:
    """What a first look at all rows finds."""

    def __init__(self) -> None:
        self.drawn: list[
            tuple[int, int]
        ] = []  # of each decision: the row that its state had folded, its own row
        self.targets: dict[int, str] = {}  # what rollbacks say was there
        self.links: dict[int, bytes] = {}  # of the newest rows
        self.states: dict[int, str] = {}  # what segments say was there after their last row


async def _replay(
    store: Store, ranker: str, last: int, verdict: Verdict, seen: _Seen, snapshots: dict[int, Snapshot]
) -> None:
    hashes: dict[int, str] = {}
    fold = await first_fold(store, ranker)
    start = fold.applied
    verdict.earlier = start - 1
    redraw = Redraw(store, ranker, [one for one in sorted(seen.drawn) if one[0] >= start], verdict.complain)
    await redraw.at(fold)
    targets = {to: told for to, told in seen.targets.items() if to >= start}
    states = {seq: told for seq, told in seen.states.items() if start <= seq <= last}
    wanted = {*snapshots, *targets, *states, start}
    hashes[start] = fold.state_hash()
    async for page in _pages(store, ranker, after=start, through=last):
        related = await related_rows(fold, store, ranker, page)
        for row in page:
            fold.fold(row, related)
            await redraw.at(fold)
            if row.seq in wanted:
                hashes[row.seq] = fold.state_hash()
    verdict.state_hash = fold.state_hash()
    verdict.learnt = fold.counts.learnt
    verdict.decisions = redraw.done
    for to_seq, told in targets.items():
        if hashes.get(to_seq) != told:
            verdict.complain(f"a rollback to {to_seq} brought back another state than was there")
    for seq, told in states.items():
        if hashes.get(seq) != told:
            verdict.complain(f"the state after the segment that ends with row {seq} differs from a replay")
    for seq, snapshot in snapshots.items():
        if seq < start or not readable(snapshot.code_hash, fold.config):
            verdict.other_code += 1
        elif snapshot.state_hash != hashes.get(seq):
            verdict.complain(f"the snapshot at {seq} differs from a replay of the rows up to it")
        else:
            verdict.snapshots += 1
            await _from_snapshot(store, ranker, revive(snapshot), last, verdict)


async def _pages(store: Store, ranker: str, *, after: int, through: int) -> AsyncIterator[list[Row]]:
    while after < through:
        page = [row for row in await store.read(ranker, after=after, limit=_PAGE) if row.seq <= through]
        if not page:
            return
        after = page[-1].seq
        yield page


async def _look_through(store: Store, ranker: str, last: int, verdict: Verdict, seen: _Seen) -> None:
    """Check the digests, numbers and times of all rows, and gather what the replay needs to know beforehand."""
    identities: set[int] = set()
    expected, at = 1, 0
    before = {beginning(await store.origin(ranker), ranker)}
    async for page in _pages(store, ranker, after=0, through=last):
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
                    seen.drawn.append((rows.read_decision(row.body).model_seq, row.seq))
                elif row.kind == "rollback":
                    body = rows.read_body(row)
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


async def _check_end(store: Store, ranker: str, seen: _Seen, verdict: Verdict, *, whole: bool) -> None:
    """Compare with the newest row that was acknowledged, where that is kept apart: the log may have lost its end."""
    try:
        mark = await store.acknowledged(ranker)
    except ValueError as error:
        verdict.complain(str(error))
        return
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
    async for page in _pages(store, ranker, after=seq, through=last):
        related = await related_rows(fold, store, ranker, page)
        for row in page:
            fold.fold(row, related)
    if fold.state_hash() != verdict.state_hash:
        verdict.complain(
            f"a replay from the snapshot at {seq} ends in another state than one from the beginning"
        )
