"""Lists that were shown while the store was away: kept until they can be logged, never learnt from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from rankloop.serving.errors import Unavailable
from rankloop.serving.log.records import Entry

_BATCH = 500


class DegradedLists:
    """A bounded queue. What is in it is lost where the process ends before the store is back."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[tuple[str, str], Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Keep the row of a list; `Unavailable` where there is no room. Asked for again, it is there once."""
        key = entry.ranker, entry.event_id
        if key not in self._entries and len(self._entries) >= self._most:
            raise Unavailable(f"limit reached: {self._most:,} lists that wait for the store")
        self._entries[key] = msgspec.structs.replace(entry, kind="degraded")

    async def log(self, append: Callable[[list[Entry]], Awaitable[object]]) -> None:
        """Log them: the store is back."""
        while self._entries:
            batch = [entry for entry, _ in zip(self._entries.values(), range(_BATCH), strict=False)]
            await append(batch)
            for entry in batch:
                del self._entries[entry.ranker, entry.event_id]

    def forget(self, ranker: str) -> None:
        """Let go of the lists of a ranker that is gone."""
        self._entries = {key: entry for key, entry in self._entries.items() if key[0] != ranker}
