"""Several databases as one store, for commands that look at all rankers. A service has an engine for each instead."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NoReturn

from rankloop.serving.log.records import Entry, Kind, Row
from rankloop.serving.stores.contract import Appended, Head, Missing, Snapshot, Store, StoredKey
from rankloop.serving.stores.due import Due
from rankloop.serving.stores.places import Place
from rankloop.serving.stores.segments.closed_history import ClosedHistory
from rankloop.serving.stores.segments.manifest import Segment
from rankloop.serving.stores.subjects import SubjectKey


class SpreadStore(Store):
    """Each call goes to the database that has the ranker; API keys are in the first.

    Nothing is made here, and no lease is held: both are for services.
    """

    shared = True

    def __init__(self, stores: Sequence[Store]) -> None:
        self.stores = list(stores)
        self._homes: dict[str, Store] = {}
        self._archived: dict[str, Store] = {}

    async def open(self) -> None:
        opened: list[Store] = []
        try:
            for store in self.stores:
                await store.open()
                opened.append(store)
        except BaseException:
            for store in opened:
                await store.close()
            raise
        self.timeline = self.stores[0].timeline

    async def close(self) -> None:
        for store in self.stores:
            with contextlib.suppress(Exception):
                await store.close()

    async def rankers(self) -> list[str]:
        found: dict[str, list[Store]] = {}
        for store in self.stores:
            for name in await store.rankers():
                found.setdefault(name, []).append(store)
        self._homes = {name: await self._right(name, there) for name, there in found.items()}
        return list(self._homes)

    async def _right(self, ranker: str, there: list[Store]) -> Store:
        """The one of several databases that has a ranker: a move was interrupted, or one has come back from a copy."""
        if len(there) == 1:
            return there[0]
        places = [await store.place(ranker) or Place(True, -1) for store in there]
        return max(zip(places, there, strict=True), key=lambda one: (not one[0].leaving, one[0].moves))[1]

    async def of(self, ranker: str) -> Store:
        """The database that has a ranker, also one that was put away."""
        if ranker not in self._homes and ranker not in self._archived:
            await self.rankers()
            await self.archived()
        found = self._homes.get(ranker) or self._archived.get(ranker)
        if found is None:
            raise Missing(f"there is no ranker {ranker!r}")
        return found

    async def archived(self) -> list[str]:
        self._archived = {name: store for store in self.stores for name in await store.archived()}
        return list(self._archived)

    async def archive(self, ranker: str, *, at: int) -> str:
        return await (await self.of(ranker)).archive(ranker, at=at)

    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        homes = [await self.of(entry.ranker) for entry in entries]
        if any(home is not homes[0] for home in homes):
            raise NotImplementedError("no transaction spans two databases")
        return await homes[0].append(entries, at=at, epoch=epoch) if homes else []

    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        return await (await self.of(ranker)).read(ranker, after=after, limit=limit)

    async def find(self, ranker: str, kind: Kind, event_id: str) -> Row | None:
        return await (await self.of(ranker)).find(ranker, kind, event_id)

    async def stories(self, ranker: str, decisions: list[str]) -> dict[str, list[Row]]:
        return await (await self.of(ranker)).stories(ranker, decisions)

    async def head(self, ranker: str) -> Head:
        return await (await self.of(ranker)).head(ranker)

    async def acknowledged(self, ranker: str) -> Head | None:
        return await (await self.of(ranker)).acknowledged(ranker)

    async def origin(self, ranker: str) -> str:
        return await (await self.of(ranker)).origin(ranker)

    async def problems(self) -> list[str]:
        return [f"{store.label}: {told}" for store in self.stores for told in await store.problems()]

    async def write_snapshot(self, ranker: str, snapshot: Snapshot, *, keep: int) -> None:
        await (await self.of(ranker)).write_snapshot(ranker, snapshot, keep=keep)

    async def snapshots(self, ranker: str) -> list[Snapshot]:
        return await (await self.of(ranker)).snapshots(ranker)

    async def read_snapshot(self, ranker: str, seq: int) -> Snapshot | None:
        return await (await self.of(ranker)).read_snapshot(ranker, seq)

    async def history(self, ranker: str) -> ClosedHistory | None:
        return await (await self.of(ranker)).history(ranker)

    async def add_segment(self, ranker: str, segment: Segment, *, links: dict[int, bytes]) -> None:
        await (await self.of(ranker)).add_segment(ranker, segment, links=links)

    async def clear(self, ranker: str, *, keep: list[int], limit: int) -> bool:
        return await (await self.of(ranker)).clear(ranker, keep=keep, limit=limit)

    async def left_over(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        return await (await self.of(ranker)).left_over(ranker, after=after, limit=limit)

    async def find_subject_key(self, key_id: str) -> SubjectKey | None:
        for store in self.stores:
            if (found := await store.find_subject_key(key_id)) is not None:
                return found
        return None

    async def erase_subject(self, subject: str, *, at: int) -> int:
        return sum([await store.erase_subject(subject, at=at) for store in self.stores])

    async def erased_keys(self) -> set[str]:
        return set().union(*[await store.erased_keys() for store in self.stores])

    async def write_key(self, key: StoredKey) -> None:
        await self.stores[0].write_key(key)

    async def delete_key(self, key_id: str) -> bool:
        return await self.stores[0].delete_key(key_id)

    async def keys(self) -> list[StoredKey]:
        return await self.stores[0].keys()

    async def take_leases(self, holder: str, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError("each database has a lease of its own")

    async def time(self, ranker: str, *, at: int) -> int:
        return await (await self.of(ranker)).time(ranker, at=at)

    async def due(self, ranker: str, *, after: int, before: int, allowed: int, limit: int) -> Due:
        return await (await self.of(ranker)).due(
            ranker, after=after, before=before, allowed=allowed, limit=limit
        )
