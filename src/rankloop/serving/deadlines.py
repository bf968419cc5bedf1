"""A heap of deadlines, one for each name: what is due is found without looking at the rest."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Deadlines:
    """The next deadline of each name.

    >>> deadlines = Deadlines()
    >>> for name, at in (("b", 20), ("a", 10), ("c", 30)):
    ...     deadlines.put(name, at)
    >>> list(deadlines.due(20)), "c" in deadlines, "a" in deadlines
    (['a', 'b'], True, False)
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._at: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def at(self, name: str) -> int | None:
        """The next deadline of a name; None where it has none."""
        return self._at.get(name)

    def put(self, name: str, at: int) -> None:
        """Set the next deadline of a name; the one before it counts no longer."""
        self._at[name] = at
        heapq.heappush(self._heap, (at, name))

    def due(self, now: int) -> Iterator[str]:
        """The names whose deadline has come by now, each once; they have none afterwards."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, name = heapq.heappop(self._heap)
            if self._at.get(name) == at:
                del self._at[name]
                found.append(name)
        return iter(found)

    def clear(self) -> None:
        """Forget all."""
        self._heap.clear()
        self._at.clear()
