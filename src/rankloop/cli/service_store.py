"""The store behind the commands of the service: the options that name it, and how a command opens it."""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rankloop.cli.settings import (
    DATA,
    Command,
    ConfigOption,
    DatabaseOption,
    DataOption,
    SchemaOption,
    SegmentsOption,
    hidden,
)
from rankloop.extras import require

if TYPE_CHECKING:
    from rankloop.serving.client import Client
    from rankloop.serving.engine import Engine
    from rankloop.serving.stores.contract import Store

Result = TypeVar("Result")


def served(command: Command) -> Command:
    """A command of the service: needs its libraries, and what goes wrong with its store is a ValueError."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        require("apsw", "asyncpg", "msgspec", "starlette", "uvicorn", extra="serve", for_="the service")
        from rankloop.serving.stores.contract import StoreError

        try:
            command(*args, **kwargs)
        except StoreError as error:
            raise ValueError(str(error)) from None

    return wrapped


@dataclass(frozen=True)
class StoreOptions:
    """Which store a command works on."""

    data: DataOption = DATA
    database: DatabaseOption = None
    schema: SchemaOption = "rankloop"
    segments: SegmentsOption = None
    config: ConfigOption = None

    def one(
        self, *, read_only: bool = False, own: bool = True, unsafe: bool = False, create: bool = False
    ) -> Store:
        """The store, unopened; a folder without one may be refused."""
        if len(self.database or ()) > 1:
            raise ValueError(
                f"database must be one, got {len(self.database or ())}: run a service, or this command, for each"
            )
        if self.database:
            from rankloop.serving.stores.postgres import PostgresStore

            return PostgresStore(
                self.database[0],
                schema=self.schema,
                allow_unsafe=unsafe,
                segments=self.segments,
            )
        from rankloop.serving.stores.sqlite import SQLiteStore

        store = SQLiteStore(self.data, read_only=read_only, own=own, segments=self.segments)
        if not create and not store.path.exists():
            makes = f"`rankloop serve --data {self.data}` makes one, or name another folder"
            raise ValueError(f"there is no store in {self.data}: {makes}")
        return store

    def read(self, work: Callable[[Store], Coroutine[Any, Any, Result]]) -> Result:
        """Run `work` on the store, open to be read only."""
        return _run(self.one(read_only=True), work)

    def change(
        self,
        work: Callable[[Store], Coroutine[Any, Any, Result]],
        *,
        own: bool = True,
        create: bool = False,
    ) -> Result:
        """Run `work` on the open store, which is its own unless a service may run beside it."""
        return _run(self.one(own=own, create=create), work)

    def with_engine(
        self, work: Callable[[Engine], Coroutine[Any, Any, Result]], *, create: bool = False
    ) -> Result:
        """Run `work` on the rankers of the store, which nobody serves; what is refused is a ValueError."""
        from rankloop.serving.admission import RequestError
        from rankloop.serving.engine import Engine

        async def run() -> Result:
            engine = Engine(self.one(create=create), housekeeping=False)
            await engine.open()
            try:
                return await work(engine)
            finally:
                await engine.close()

        try:
            return asyncio.run(run())
        except RequestError as error:
            raise ValueError(error.message) from None

    def __str__(self) -> str:
        if self.database:
            return f"{hidden('database', self.database[0])}, schema {self.schema}"
        return f"folder {self.data}"


@dataclass(frozen=True)
class LiveStoreOptions(StoreOptions):
    """The same, for commands that need no closed history."""

    segments: None = None


def _run(store: Store, work: Callable[[Store], Coroutine[Any, Any, Result]]) -> Result:
    async def run() -> Result:
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def chosen(store: Store, ranker: str | None) -> list[str]:
    """The names of all rankers, or of the one that was asked for."""
    names = await store.rankers()
    if ranker is None:
        return names
    if ranker not in names and ranker not in await store.archived():
        raise ValueError(f"there is no ranker {ranker!r}; there are {', '.join(names) or 'none'}")
    return [ranker]


def ask_service(url: str, key: str | None, work: Callable[[Client], Result]) -> Result:
    """Run `work` with a client of a running service; what is refused is a ValueError."""
    require("httpx", extra="client", for_="--url")
    from rankloop.serving.client import Client, RankloopError

    with Client(url, key=key, timeout=120.0) as client:
        try:
            return work(client)
        except RankloopError as error:
            raise ValueError(str(error)) from None


def allow_rankers(names: list[str] | None) -> None:
    """Let requests and logs name these rankers."""
    if names:
        from rankloop.serving.registry import allow

        sys.path.append("")  # so that a module in the present folder is found, as with `python -m`
        allow(names)


def now() -> int:
    """Milliseconds since 1970, as a store counts them."""
    return int(time.time() * 1000)
