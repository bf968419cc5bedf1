"""A store in lists and dictionaries: the plainest reading of the contract, quick to make, and easy to spoil."""

from __future__ import annotations

import bisect
import itertools
import secrets
from collections.abc import Collection
from typing import NamedTuple

import msgspec

from rankloop.serving.clock import held, next_time
from rankloop.serving.log.digests import archived_name, beginning, content, link, sealed
from rankloop.serving.log.records import ABOUT_LISTS, Entry, Kind, Row
from rankloop.serving.stores import contract
from rankloop.serving.stores.contract import Store


class _Lease(NamedTuple):
    holder: str
    epoch: int
    until: float
    looked: int = 0
    wake: float | None = None


class MemoryStore(Store):
    """Lists and dictionaries."""

    def __init__(self) -> None:
        self.timeline = secrets.token_hex(8)
        self._logs: dict[str, list[Row]] = {}
        self._index: dict[tuple[str, Kind, str], Row] = {}
        self._about: dict[tuple[str, str], list[Row]] = {}
        self._snapshots: dict[str, list[contract.Snapshot]] = {}
        self._ahead: dict[str, int] = {}  # how far each log's clock is ahead of the given one
        self._keys: dict[str, contract.StoredKey] = {}
        self._subjects: dict[str, tuple[str | None, contract.SubjectKey]] = {}
        self._epochs = itertools.count(1)
        self._leases: dict[str, _Lease] = {}

    async def open(self) -> None:
        return

    async def close(self) -> None:
        return

    async def rankers(self) -> list[str]:
        return [name for name in self._logs if "~" not in name]

    async def archived(self) -> list[str]:
        return [name for name in self._logs if "~" in name]

    async def archive(self, ranker: str, *, at: int) -> str:
        if ranker not in self._logs:
            raise contract.Missing(f"there is no ranker {ranker!r}")
        name = archived_name(ranker, at)
        self._logs[name] = self._logs.pop(ranker)
        self._snapshots[name] = self._snapshots.pop(ranker, [])
        self._ahead[name] = self._ahead.pop(ranker, 0)
        for event in [key for key in self._index if key[0] == ranker]:
            self._index[name, event[1], event[2]] = self._index.pop(event)
        for about in [key for key in self._about if key[0] == ranker]:
            self._about[name, about[1]] = self._about.pop(about)
        return name

    async def append(
        self, entries: list[Entry], *, at: int, epoch: int | None = None
    ) -> list[contract.Appended]:
        for entry in entries:
            if epoch is not None:
                self._check_epoch(entry.ranker, epoch)
            if entry.kind != "config" and entry.ranker not in self._logs:
                raise contract.Missing(f"there is no ranker {entry.ranker!r}")
            if entry.drawn_from is not None:
                self._check_history(entry.ranker, contract.Head(*entry.drawn_from))
                self._check_current(entry, entry.drawn_from[0])
        return [self._append(entry, at) for entry in entries]

    def _check_epoch(self, ranker: str, epoch: int) -> None:
        lease = self._leases.get(ranker)
        if lease is None or lease.epoch != epoch:
            raise contract.Fenced(f"epoch {epoch} is over, another has taken over")

    def _check_current(self, entry: Entry, drawn_from: int) -> None:
        is_new = (entry.ranker, entry.kind, entry.event_id) not in self._index
        if not self.shared or entry.kind != "decision" or not is_new:
            return
        for row in self._logs[entry.ranker][drawn_from:]:
            if row.kind not in ABOUT_LISTS:
                raise contract.Stale(f"ranker {entry.ranker!r} was changed by row {row.seq}")

    def _check_history(self, ranker: str, known: contract.Head) -> None:
        log = self._logs.get(ranker, [])
        if not 1 <= known.seq <= len(log) or log[known.seq - 1].link != known.link:
            raise contract.Diverged(f"the log of {ranker!r} has no such row {known.seq}")

    def _append(self, entry: Entry, at: int) -> contract.Appended:
        there = self._index.get((entry.ranker, entry.kind, entry.event_id))
        if there is not None:
            return contract.Appended(there, False)
        log = self._logs.setdefault(entry.ranker, [])
        time, self._ahead[entry.ranker] = next_time(
            at, last=log[-1].at if log else at, ahead=self._ahead.get(entry.ranker, 0)
        )
        seq = len(log) + 1
        before = log[-1].link if log else beginning(self.timeline, entry.ranker)
        row = Row(
            seq=seq,
            at=time,
            kind=entry.kind,
            event_id=entry.event_id,
            body=entry.body,
            digest=entry.digest,
            decision=entry.decision,
            link=link(before, seq, time, content(entry)),
            before=before,
        )
        log.append(row)
        self._index[entry.ranker, entry.kind, entry.event_id] = row
        about = entry.event_id if entry.kind == "decision" else entry.decision
        if about is not None:
            self._about.setdefault((entry.ranker, about), []).append(row)
        return contract.Appended(row, True)

    async def time(self, ranker: str, *, at: int) -> int:
        last = self._logs[ranker][-1].at if self._logs.get(ranker) else at
        time, self._ahead[ranker] = next_time(at, last=last, ahead=self._ahead.get(ranker, 0))
        return time

    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        return self._logs.get(ranker, [])[after : after + limit]

    async def find(self, ranker: str, kind: Kind, event_id: str) -> Row | None:
        return self._index.get((ranker, kind, event_id))

    async def stories(self, ranker: str, decisions: list[str]) -> dict[str, list[Row]]:
        return {
            decision: list(self._about[ranker, decision])
            if (ranker, "decision", decision) in self._index
            else []
            for decision in decisions
        }

    async def last_seq(self, ranker: str) -> int:
        return len(self._logs.get(ranker, ()))

    async def head(self, ranker: str) -> contract.Head:
        log = self._logs.get(ranker)
        return contract.Head(len(log), log[-1].link) if log else contract.Head(0, b"")

    async def write_snapshot(self, ranker: str, snapshot: contract.Snapshot, *, keep: int) -> None:
        self._check_epoch(ranker, snapshot.epoch)
        self._check_history(ranker, contract.Head(snapshot.seq, snapshot.link))
        kept = [old for old in self._snapshots.get(ranker, ()) if old.seq != snapshot.seq]
        bisect.insort(kept, sealed(ranker, snapshot), key=lambda one: one.seq)
        self._snapshots[ranker] = kept[-keep:]

    async def snapshots(self, ranker: str) -> list[contract.Snapshot]:
        return [msgspec.structs.replace(one, state=b"") for one in self._snapshots.get(ranker, ())]

    async def read_snapshot(self, ranker: str, seq: int) -> contract.Snapshot | None:
        return next((one for one in self._snapshots.get(ranker, ()) if one.seq == seq), None)

    async def write_key(self, key: contract.StoredKey) -> None:
        self._keys[key.key_id] = key

    async def delete_key(self, key_id: str) -> bool:
        return self._keys.pop(key_id, None) is not None

    async def keys(self) -> list[contract.StoredKey]:
        return list(self._keys.values())

    async def subject_key(self, subject: str) -> contract.SubjectKey | None:
        return next((key for of, key in reversed(self._subjects.values()) if of == subject), None)

    async def write_subject_key(
        self, subject: str, key: contract.SubjectKey, *, at: int
    ) -> contract.SubjectKey:
        present = await self.subject_key(subject)
        if present is None:
            self._subjects[key.key_id] = (subject, key)
        return present or key

    async def find_subject_key(self, key_id: str) -> contract.SubjectKey | None:
        return self._subjects.get(key_id, (None, None))[1]

    async def erase_subject(self, subject: str, *, at: int) -> int:
        erased = [key_id for key_id, (of, _) in self._subjects.items() if of == subject]
        for key_id in erased:
            self._subjects[key_id] = (None, contract.SubjectKey(key_id, None))
        return len(erased)

    async def erased_keys(self) -> set[str]:
        return {key_id for key_id, (of, _) in self._subjects.items() if of is None}

    async def take_leases(
        self, holder: str, rankers: Collection[str], *, seconds: float, now: float, at_once: bool = False
    ) -> dict[str, int]:
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

    async def let_go(self, holder: str, rankers: Collection[contract.Left], *, now: float) -> None:
        for name, looked, wake_in in rankers:
            lease = self._leases.get(name)
            if lease is not None and lease.holder == holder:
                wake = None if wake_in is None else now + wake_in
                self._leases[name] = lease._replace(holder="", until=now, looked=looked, wake=wake)

    async def unattended(self, *, seconds: float, now: float, besides: Collection[str] = ()) -> list[str]:
        names = []
        for name in await self.rankers() if self.shared else ():
            last = self._logs[name][-1]
            lease = self._leases.get(name) or _Lease("", 0, last.at / 1000)
            waits = last.seq > lease.looked or (lease.wake is not None and lease.wake <= now)
            idle = not held(now, until=lease.until + seconds, seconds=1.5 * seconds)
            if waits and idle and name not in besides:
                names.append(name)
        return names[: contract.MOST_UNATTENDED]
