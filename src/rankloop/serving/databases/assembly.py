"""The engines and applications of one process: one of each for every database, and what stands before them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from rankloop.serving.databases.directory import Directory
from rankloop.serving.databases.switch import Part, Switch
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.owners.front import Front
from rankloop.serving.owners.routing import Router
from rankloop.serving.stores.contract import StoreError

_log = logging.getLogger("rankloop.serving")
_PAUSE = 1.0  # seconds between two attempts to open a database


class Assembly:
    """What a process serves."""

    def __init__(self, engines: list[Engine], *, host: str, forward: bool) -> None:
        self.engines = engines
        self._routers: list[Router] = []
        self._opening: list[asyncio.Task[None]] = []
        self.first = App(engines[0], host=host)
        apps = [self.first, *(App(engine, host=host, first=self.first) for engine in engines[1:])]
        fronts = [self._front(app, forward=forward) for app in apps]
        self.asgi: Callable[[Any, Any, Any], Awaitable[None]] = fronts[0]
        self._directory: Directory | None = None
        if len(engines) > 1:
            labels = [engine.store.label for engine in engines]
            directory = Directory([engine.store for engine in engines], labels)
            self._directory = directory
            parts = [Part(*one) for one in zip(fronts, engines, labels, strict=True)]
            self.asgi = Switch(self.first, parts, directory)

    def _front(self, app: App, *, forward: bool) -> App | Front:
        """What stands before an application: nothing, where this process serves all rankers of its store."""
        if app.engine.ownership is None:
            return app
        self._routers.append(Router(app.engine.ownership, limits=app.engine.limits, forward=forward))
        return Front(app, self._routers[-1])

    async def open(self) -> None:
        """Open all databases; those after the first that do not answer are tried again in the background."""
        try:
            await self._open(0)
            for number in range(1, len(self.engines)):
                try:
                    await self._open(number)
                except StoreError as error:
                    _log.warning("%s; this is tried again, the other databases are served", error)
                    self._opening.append(asyncio.create_task(self._open_later(number)))
        except BaseException:
            await self.close()
            raise

    async def _open(self, number: int) -> None:
        await self.engines[number].open(wait=False)
        if self._directory is not None:
            await self._directory.add(number)

    async def _open_later(self, number: int) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            try:
                await self._open(number)
            except StoreError:
                continue
            except ValueError as error:
                _log.error("%s", error)
                await self.engines[number].close()
            return

    async def folded(self) -> None:
        """Return when the logs of all databases that answer have been folded."""
        await asyncio.gather(*(engine.folded() for engine in self.engines))

    @property
    def ready(self) -> bool:
        """Whether the logs of all databases that answer have been folded."""
        return all(engine.ready for engine in self.engines if engine.opened)

    async def close(self) -> None:
        """Let go of everything."""
        for task in self._opening:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for engine in self.engines:
            await engine.close()
        for router in self._routers:
            await router.close()
