"""Which of several databases a ranker lives in."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Sequence

from rankloop.serving.errors import Unavailable
from rankloop.serving.stores.contract import Store, StoreError
from rankloop.serving.stores.places import Place

_log = logging.getLogger("rankloop.serving")


class Directory:
    """Remembers where rankers live. The databases themselves say so: what is remembered is looked up again when wrong.

    Names are taken in the first database, before a ranker is made anywhere: two databases never make the same one.
    """

    def __init__(self, stores: Sequence[Store], labels: Sequence[str]) -> None:
        self._stores = list(stores)
        self._labels = list(labels)
        self._known: dict[str, int] = {}
        self.open = [False] * len(self._stores)

    def known(self, ranker: str) -> int:
        """Where a ranker was when it was last looked up."""
        return self._known.get(ranker, -1)

    async def add(self, number: int) -> None:
        """Learn what a database has, once it is open, and take the names for it that no other has."""
        store = self._stores[number]
        for other, label in enumerate(self._labels):
            if other != number and self.open[other] and self._stores[other].timeline == store.timeline:
                raise ValueError(
                    f"{label} and {self._labels[number]} are the same database, or copies of one"
                )
        names = await store.rankers()
        homes = await self._stores[0].claim(names, store.timeline) if names else {}
        self.open[number] = True
        for name in names:
            if homes[name] == store.timeline:
                self._known[name] = number
            else:
                _log.warning(
                    "ranker %r of %s: its name belongs to another database", name, self._labels[number]
                )

    async def look(self, ranker: str) -> int | None:
        """Ask all databases for a ranker."""
        told = await asyncio.gather(*(self._ask(number, ranker) for number in range(len(self._stores))))
        found = [
            (not place.leaving, place.moves, -number)
            for number, place in enumerate(told)
            if isinstance(place, Place)
        ]
        if found:
            settled, _, number = max(found)
            self._known[ranker] = -number
            if settled and sum(one[0] for one in found) > 1:
                _log.error(
                    "several databases say that they have ranker %r: %s is right",
                    ranker,
                    self._labels[-number],
                )
            return -number
        self._known.pop(ranker, None)
        for number, place in enumerate(told):
            if isinstance(place, str):
                raise Unavailable(
                    f"ranker {ranker!r} may be in {self._labels[number]}, which does not answer: {place}"
                )
        return None

    async def _ask(self, number: int, ranker: str) -> Place | str | None:
        if not self.open[number]:
            return "it was not there yet since this service started"
        try:
            return await self._stores[number].place(ranker)
        except StoreError as error:
            return str(error)

    async def claim(self, ranker: str) -> int:
        """The database in which a ranker may be made: where it is, or else one that its name chooses."""
        with contextlib.suppress(
            Unavailable
        ):  # what is taken already tells where a ranker is that cannot be seen
            if (there := await self.look(ranker)) is not None:
                return there
        if not all(self.open):
            # It may have this ranker from before it was one of several.
            missing = ", ".join(
                label for label, is_open in zip(self._labels, self.open, strict=True) if not is_open
            )
            raise Unavailable(f"no ranker can be made before {missing} was there once")
        numbers = {store.timeline: number for number, store in enumerate(self._stores)}
        wanted = max(numbers, key=lambda home: _weight(home, ranker))  # rendezvous hashing
        home = (await self._stores[0].claim([ranker], wanted))[ranker]
        if home not in numbers:
            raise Unavailable(f"ranker {ranker!r} belongs to a database that this service was not given")
        self._known[ranker] = numbers[home]
        return numbers[home]


def _weight(home: str, ranker: str) -> bytes:
    return hashlib.blake2b(f"{home}\0{ranker}".encode(), digest_size=8).digest()
