"""Checks that a log is consistent: replays it from the first row and every snapshot, and draws all decisions again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import numpy as np

from rankloop.serving.log import records as rows
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.randomness import Draws, key_of
from rankloop.serving.log.records import Row
from rankloop.serving.log.snapshots import code_hash, revive
from rankloop.serving.served_ranker import first_fold, related_rows
from rankloop.serving.stores.contract import Store

_PAGE = 1_000
_TOLD = 20  # problems that are spelled out


class Verdict(msgspec.Struct):
    """What was compared, and what differs."""

    ranker: str
    rows: int = 0
    decisions: int = 0
    learnt: int = 0
    snapshots: int = 0
    other_code: int = 0  # snapshots made by other code: not used, so not compared
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


async def verify(store: Store, ranker: str, *, through: int | None = None) -> Verdict:
    """Replay the log of `ranker`, to its end or `through` a seq, and compare everything that can be compared."""
    verdict = Verdict(ranker, problems=[])
    last = await store.last_seq(ranker) if through is None else through
    try:
        await _replay(store, ranker, last, verdict)
    except (msgspec.DecodeError, ValueError, KeyError, IndexError) as error:
        verdict.complain(f"the replay came to a row that cannot be read: {error}")
    return verdict


async def _replay(store: Store, ranker: str, last: int, verdict: Verdict) -> None:
    drawn, targets = await _look_through(store, ranker, last, verdict)
    snapshots = {one.seq: one for one in await store.snapshots(ranker) if one.seq <= last}
    hashes: dict[int, str] = {}
    fold = await first_fold(store, ranker)
    replay = _Redraw(store, ranker, drawn, verdict)
    await replay.at(fold)
    wanted = {*snapshots, *targets, fold.applied}
    if fold.applied in wanted:
        hashes[fold.applied] = fold.state_hash()
    async for page in _pages(store, ranker, after=fold.applied, through=last):
        related = await related_rows(fold, store, ranker, page)
        for row in page:
            fold.fold(row, related)
            await replay.at(fold)
            if row.seq in wanted:
                hashes[row.seq] = fold.state_hash()
    verdict.state_hash = fold.state_hash()
    verdict.learnt = fold.counts.learnt
    for to_seq, told in targets.items():
        if hashes.get(to_seq) != told:
            verdict.complain(f"a rollback to {to_seq} brought back another state than was there")
    for seq, snapshot in snapshots.items():
        if snapshot.code_hash != code_hash(fold.config.algorithm):
            verdict.other_code += 1
        elif snapshot.state_hash != hashes.get(seq):
            verdict.complain(f"the snapshot at {seq} differs from a replay of the rows up to it")
        else:
            verdict.snapshots += 1
            await _from_snapshot(store, ranker, seq, last, verdict)


async def _pages(store: Store, ranker: str, *, after: int, through: int) -> AsyncIterator[list[Row]]:
    while after < through:
        page = [row for row in await store.read(ranker, after=after, limit=_PAGE) if row.seq <= through]
        if not page:
            return
        after = page[-1].seq
        yield page


async def _look_through(
    store: Store, ranker: str, last: int, verdict: Verdict
) -> tuple[list[tuple[int, int]], dict[int, str]]:
    """Which rows hold decisions, by the state they were drawn from; and what rollbacks say was there."""
    drawn: list[tuple[int, int]] = []
    targets: dict[int, str] = {}
    seen: set[int] = set()
    expected, at = 1, 0
    async for page in _pages(store, ranker, after=0, through=last):
        for row in page:
            if row.seq != expected:
                verdict.complain(f"after row {expected - 1} comes row {row.seq}")
            if row.at < at:
                verdict.complain(f"time falls at row {row.seq}")
            identity = hash((row.kind, row.event_id))
            if identity in seen:
                verdict.complain(f"{row.kind} {row.event_id!r} is there twice")
            seen.add(identity)
            expected, at = row.seq + 1, row.at
            verdict.rows += 1
            if row.kind == "decision":
                drawn.append((rows.read_decision(row.body).model_seq, row.seq))
            elif row.kind == "rollback":
                body = rows.read_body(row)
                targets[body.to_seq] = body.state_hash
    if expected != last + 1:
        verdict.complain(f"the log ends at row {expected - 1}, not at {last}")
    return sorted(drawn), targets


class _Redraw:
    """Draws every decision again when the replay has come to the state that it was drawn from."""

    def __init__(self, store: Store, ranker: str, drawn: list[tuple[int, int]], verdict: Verdict) -> None:
        self._store = store
        self._ranker = ranker
        self._drawn = drawn
        self._next = 0
        self._verdict = verdict
        self._draws = Draws()

    async def at(self, fold: Fold) -> None:
        while self._next < len(self._drawn) and self._drawn[self._next][0] <= fold.applied:
            model_seq, seq = self._drawn[self._next]
            self._next += 1
            (row,) = await self._store.read(self._ranker, after=seq - 1, limit=1)
            if model_seq != fold.applied:
                self._verdict.complain(
                    f"decision {row.event_id!r} says that it was drawn from row {model_seq}"
                )
                continue
            self._verdict.decisions += 1
            if not self._same(fold, row):
                self._verdict.complain(f"decision {row.event_id!r} (row {seq}) cannot be drawn again")

    def _same(self, fold: Fold, row: Row) -> bool:
        decision = rows.read_decision(row.body)
        if decision.key != key_of(fold.config.seed, row.event_id) or decision.generation != fold.generation:
            return False
        features = None if decision.features is None else rows.unpack(decision.features)
        ranking = fold.ranker.rank(features, rng=self._draws.generator(decision.key))
        shown = fold.active[ranking.items] if fold.has_items else ranking.items
        chances = None if ranking.propensities is None else ranking.propensities.astype("<f8").tobytes()
        return (
            np.array_equal(np.frombuffer(decision.shown, "<i4"), shown)
            and decision.propensities == chances
            and decision.memo == tuple(rows.pack(part) for part in ranking.memo)
        )


async def _from_snapshot(store: Store, ranker: str, seq: int, last: int, verdict: Verdict) -> None:
    snapshot = await store.read_snapshot(ranker, seq)
    if snapshot is None:  # a newer one pushed it out meanwhile
        return
    try:
        fold = revive(snapshot)
    except ValueError as error:
        verdict.complain(str(error))
        return
    async for page in _pages(store, ranker, after=seq, through=last):
        related = await related_rows(fold, store, ranker, page)
        for row in page:
            fold.fold(row, related)
    if fold.state_hash() != verdict.state_hash:
        verdict.complain(
            f"a replay from the snapshot at {seq} ends in another state than one from the beginning"
        )
