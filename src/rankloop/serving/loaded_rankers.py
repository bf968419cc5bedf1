"""The rankers of a service: which can be served, which are still folded, which cannot be, and why.

A process that has a store alone folds every ranker when it starts. Of a store that processes share, it folds what it is
asked for. From then on it looks whether others wrote: before each list where they do, else where it has not written
itself for a quarter of a second.

One that cannot be folded is quarantined: it is named, with the reason, and the others serve.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from rankloop.serving.admission import Limits, NotFound, RequestError, Unavailable, check_size
from rankloop.serving.log.decision_state import DecisionCache
from rankloop.serving.log.digests import BadRow
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.records import Config, Entry
from rankloop.serving.registry import OtherVersion
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import Damaged, Diverged, Head, Store, StoreError

_log = logging.getLogger("rankloop.serving")
_LOOK = 250  # milliseconds between two looks for what others wrote, where nobody is known to
_COMPANY = 10_000  # milliseconds for which others who wrote are expected to write again


class Absent(NamedTuple):
    """Why a ranker cannot be served now."""

    status: Literal["folding", "quarantined"]
    reason: str


class LoadedRankers:
    """All rankers in a store, by name: those that are served in `rankers`, the others in `absent`."""

    def __init__(self, store: Store, limits: Limits, now: Callable[[], int] = lambda: 0) -> None:
        self.store = store
        self.limits = limits
        self._now = now  # milliseconds
        self.rankers: dict[str, ServedRanker] = {}
        self.absent: dict[str, Absent] = {}
        self.cache = DecisionCache(limits.cache_bytes)
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}  # for what others wrote to a ranker
        self._waiting: dict[str, asyncio.Task[None]] = {}  # those that look next
        self._folded = self._to_fold = 0

    async def load_all(self) -> None:
        """Load every ranker that is not here yet, one after the other."""
        names = [name for name in await self.store.rankers() if name not in self.rankers]
        ends = {name: (await self.store.head(name)).seq for name in names}
        self._folded, self._to_fold = 0, sum(ends.values())
        for name in names:
            self.absent.setdefault(name, Absent("folding", "its log is being folded"))
        for name in names:
            before = self._folded

            def tell(seq: int, before: int = before) -> None:
                self._folded = before + seq

            await self.load(name, tell)
            self._folded = before + ends[name]

    async def load(self, name: str, tell: Callable[[int], object] = lambda seq: None) -> None:
        """Load one ranker: from then on it is served, or quarantined. Who asks meanwhile waits for the same."""
        task = self._loading.get(name)
        if task is None:
            task = self._loading[name] = asyncio.create_task(self._load(name, tell))
            task.add_done_callback(functools.partial(self._loaded, name))
        await asyncio.shield(task)

    def _loaded(self, name: str, task: asyncio.Task[None]) -> None:
        del self._loading[name]
        _heard(task)

    def close(self) -> None:
        for task in [*self._loading.values(), *self._waiting.values(), *self._looking.values()]:
            task.cancel()

    async def _load(self, name: str, tell: Callable[[int], object]) -> None:
        if name in self.rankers:
            return
        try:
            await self._open_history(name)
            served = await ServedRanker.load(name, self.store, cache=self.cache, check=self._check, tell=tell)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, Damaged | Diverged):
                raise
            self.quarantine(name, error)
            return
        self.absent.pop(name, None)
        served.asked_at = self._now()
        served.current_until = served.asked_at + _LOOK
        self.rankers[name] = served
        if served.read_only:
            _log.warning("ranker %r is read-only: %s", name, served.read_only)

    async def ask(self, name: str) -> None:
        """Have a ranker at hand as it is now, where processes share the store: load it, or take in what is new.

        `Unavailable` where that takes longer than a request may wait; it goes on meanwhile. All who ask before a look
        has begun share it: there are never more than two for a ranker.
        """
        if name not in self._waiting:
            self._waiting[name] = asyncio.create_task(self._ask(name))
            self._waiting[name].add_done_callback(_heard)
        try:
            await asyncio.wait_for(asyncio.shield(self._waiting[name]), self.limits.store_seconds)
        except TimeoutError:
            raise Unavailable(f"ranker {name!r} cannot be served yet: its log is being folded") from None

    async def _ask(self, name: str) -> None:
        if name in self._looking:
            with contextlib.suppress(Exception):  # which concerns those who asked for it
                await asyncio.shield(self._looking[name])
        self._looking[name] = self._waiting.pop(name)
        try:
            heads = await self.store.heads({name})
            if name not in heads:
                self.forget(name)
            elif name in self.rankers:
                await self.follow(name, heads[name])
            elif not self._is_quarantined(name):
                await self.load(name)
        finally:
            del self._looking[name]

    async def ask_for_all(self) -> list[str]:
        """Have all rankers at hand as they are now; their names, in the order in which they were made."""
        heads = await self.store.heads()
        for name in {*self.rankers, *self.absent}.difference(heads):
            self.forget(name)
        for name, head in heads.items():
            if name in self.rankers:
                self.rankers[name].asked_at = self._now()
                await self.follow(name, head)
            elif not self._is_quarantined(name):
                await self.load(name)
        return list(heads)

    def _is_quarantined(self, name: str) -> bool:
        return name in self.absent and self.absent[name].status == "quarantined"

    def is_current(self, served: ServedRanker) -> bool:
        """Whether nobody need look for what others wrote."""
        return not self.store.shared or (not served.met_others and self._now() < served.current_until)

    def wrote(self, served: ServedRanker) -> None:
        """What was just written came right after what is folded here: nobody else wrote in between."""
        if self.is_alone(served.name):
            served.current_until = self._now() + _LOOK

    def hear(self, names: Iterable[str]) -> None:
        for name in names:
            if (served := self.rankers.get(name)) is not None:
                served.met_others = True

    def is_alone(self, name: str) -> bool:
        served = self.rankers.get(name)
        return served is not None and not served.met_others and self._now() >= served.others_until

    def _check(self, config: Config) -> None:
        """Refuse a ranker that would take too much memory, before it takes any."""
        check_size(config, self.limits, n_items=len(config.items or ()))

    async def _open_history(self, name: str) -> None:
        """Whether an ID was used must be known before anything is written."""
        closed = await self.store.history(name)
        if closed is not None:
            await asyncio.to_thread(closed.open)

    def quarantine(self, name: str, error: BaseException) -> None:
        reason = error.message if isinstance(error, RequestError) else str(error) or type(error).__name__
        self.rankers.pop(name, None)
        self.absent[name] = Absent("quarantined", reason)
        expected = isinstance(error, RequestError | StoreError | BadRow | OtherVersion)
        _log.error(
            "ranker %r is quarantined, the others are served: %s",
            name,
            reason,
            exc_info=None if expected else error,
        )

    async def refold(self, name: str, why: Diverged) -> None:
        """Let go of a state that the log has no longer made, and fold the log that is there."""
        _log.error("ranker %r: %s; its state is dropped, and the log folded anew", name, why)
        self.rankers.pop(name, None)
        self.absent[name] = Absent("folding", f"{why}; the log is folded anew")
        await self.store.rankers()  # another ranker may have this name by now
        await self.load(name)

    async def refold_drawn(self, entries: list[Entry]) -> None:
        """Fold anew whatever lists were drawn from that no longer follows from its log."""
        for name in {entry.ranker for entry in entries if entry.drawn_from is not None}:
            served = self.rankers.get(name)
            if served is not None and not await self._is_in_log(name, served.fold):
                await self.refold(name, Diverged(f"row {served.fold.applied} is not in the log any more"))

    async def _is_in_log(self, name: str, fold: Fold) -> bool:
        rows = await self.store.read(name, after=fold.applied - 1, limit=1)
        return bool(rows) and (rows[0].seq, rows[0].link) == (fold.applied, fold.link)

    def forget(self, name: str) -> None:
        """It was archived, or nobody asks for it any more."""
        served = self.rankers.pop(name, None)
        if served is not None:
            served.fold.recent.clear()
        self.absent.pop(name, None)

    async def follow(self, name: str, head: Head | None = None) -> None:
        """Take in what other processes have appended to a ranker that is here, up to `head` as far as is known."""
        served = self.rankers[name]
        now = self._now()
        if served.met_others:
            served.met_others, served.others_until = False, now + _COMPANY
        if served.read_only is None and (served.fold.applied, served.fold.link) != head:
            await self.fold_new(served, head)
            if head is not None and served.fold.applied < head.seq and self.rankers.get(name) is served:
                await self.refold(name, Diverged("another ranker has this name now"))
        # Where others write, the next one who asks looks again.
        served.current_until = now + _LOOK if now >= served.others_until else 0

    async def fold_new(self, served: ServedRanker, head: Head | None = None) -> None:
        """Fold what is new; a ranker with which that goes wrong is folded anew, or quarantined."""
        try:
            await served.catch_up(through=head)
        except BaseException as error:
            await self.recover(served.name, error)

    async def recover(self, name: str, error: BaseException) -> None:
        """Do what is to be done about a ranker whose rows could not be folded."""
        if isinstance(error, Diverged):
            await self.refold(name, error)
        elif isinstance(error, OtherVersion):
            self.rankers[name].read_only = f"{error}; run `rankloop upgrade` where the code is old"
            _log.warning("ranker %r is read-only: %s", name, error)
        elif isinstance(error, StoreError) and not isinstance(error, Damaged):
            raise error
        elif isinstance(error, Exception):
            self.quarantine(name, error)
        else:
            raise error

    def find(self, name: str) -> ServedRanker:
        """The ranker; `Unavailable` where it cannot be served now, `NotFound` where there is none."""
        served = self.rankers.get(name)
        if served is not None:
            return served
        why = self.absent.get(name)
        if why is None:
            raise NotFound(f"there is no ranker {name!r}")
        if why.status == "folding":
            raise Unavailable(f"ranker {name!r} cannot be served yet: {why.reason} ({self.progress()})")
        raise Unavailable(f"ranker {name!r} is quarantined: {why.reason}")

    def progress(self) -> str:
        """How far the logs have been folded.

        >>> from rankloop.serving.stores.sqlite import MemoryStore
        >>> LoadedRankers(MemoryStore(), Limits()).progress()
        'folding, 0 %'
        """
        return f"folding, {100 * self._folded // max(self._to_fold, 1)} %"

    def notices(self) -> list[str]:
        """A sentence for each ranker with which something is wrong."""
        notices = [f"ranker {name!r} is {why.status}: {why.reason}" for name, why in self.absent.items()]
        notices += [
            f"ranker {one.name!r} is read-only: {one.read_only}"
            for one in self.rankers.values()
            if one.read_only
        ]
        return notices


def _heard(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # whoever still waits is told
