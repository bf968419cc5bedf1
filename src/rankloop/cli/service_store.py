"""The store behind the commands of the service: its options, and how a command opens it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rankloop.cli.settings import variable

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Store

Result = TypeVar("Result")
DataOption = Annotated[Path, typer.Option(help="Folder of the SQLite store.", envvar=variable("data"))]
DatabaseOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="A PostgreSQL database, postgresql://..., instead of a folder; repeatable: rankers are spread over them.",
        envvar=variable("database"),
    ),
]
SchemaOption = Annotated[
    str, typer.Option(help="Schema of the database that the tables are in.", envvar=variable("schema"))
]
SegmentsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the segments with closed history; with a database, one that all replicas reach.",
        show_default="segments, in the folder of the SQLite store",
        envvar=variable("segments"),
    ),
]
RankerArgument = Annotated[
    str | None, typer.Argument(metavar="RANKER", help="One ranker.", show_default="all")
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ranker",
        metavar="PACKAGE.MODULE:CLASS",
        help="A ranker of your own that may be used; repeatable. Registered ones need no mention.",
    ),
]
DATA = Path("rankloop-data")


def allow_rankers(names: list[str] | None) -> None:
    """Let requests and logs name these rankers."""
    if names:
        from rankloop.serving.adapters.registry import allow

        sys.path.append("")  # so that a module in the present folder is found, as with `python -m`
        allow(names)


def make_stores(
    data: Path,
    database: list[str] | None,
    schema: str,
    *,
    read_only: bool = False,
    own: bool = True,
    memory: bool = False,
    unsafe: bool = False,
    segments: Path | None = None,
    create: bool = True,
) -> list[Store]:
    """The store that the options name, or one for each database, unopened; a folder without one may be refused."""
    try:
        if memory:
            from rankloop.serving.stores.memory import MemoryStore

            return [MemoryStore()]
        if database:
            return _databases(database, schema, migrate=not read_only, unsafe=unsafe, segments=segments)
        from rankloop.serving.stores.sqlite import SQLiteStore

        store = SQLiteStore(data, read_only=read_only, own=own, segments=segments)
    except ImportError as error:
        raise ValueError(f"{error.name} is missing: pip install 'rankloop[serve]'") from None
    if not create and not store.path.exists():
        raise ValueError(f"there is no store in {data}")
    return [store]


def _databases(
    urls: list[str], schema: str, *, migrate: bool, unsafe: bool, segments: Path | None
) -> list[Store]:
    from rankloop.serving.stores.postgres import PostgresStore
    from rankloop.serving.stores.postgres_errors import short_name

    if len(set(urls)) < len(urls):
        raise ValueError("database must not name the same URL twice")
    stores: list[Store] = []
    for number, url in enumerate(urls, 1):
        stores.append(
            PostgresStore(url, schema=schema, migrate=migrate, allow_unsafe=unsafe, segments=segments)
        )
        stores[-1].label = f"database {number} ({short_name(url)})"
    return stores


def make_store(
    data: Path,
    database: list[str] | None,
    schema: str,
    *,
    read_only: bool = False,
    own: bool = True,
    segments: Path | None = None,
    create: bool = False,
) -> Store:
    """The store that the options name, unopened; several databases as one. A folder without one is refused."""
    stores = make_stores(
        data, database, schema, read_only=read_only, own=own, segments=segments, create=create
    )
    if len(stores) == 1:
        return stores[0]
    from rankloop.serving.stores.spread import SpreadStore

    return SpreadStore(stores)


def looking(
    data: Path,
    database: list[str] | None,
    schema: str,
    work: Callable[[Store], Coroutine[Any, Any, Result]],
    *,
    segments: Path | None = None,
) -> Result:
    """Run `work` on a store that is only read."""
    return with_store(make_store(data, database, schema, read_only=True, segments=segments), work)


def with_store(store: Store, work: Callable[[Store], Coroutine[Any, Any, Result]]) -> Result:
    """Run `work` on an open store; what goes wrong with it is a ValueError."""
    from rankloop.serving.stores.contract import StoreError

    async def run() -> Result:
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    try:
        return asyncio.run(run())
    except StoreError as error:
        raise ValueError(str(error)) from None


async def chosen(store: Store, ranker: str | None) -> list[str]:
    """The names of all rankers, or of the one that was asked for."""
    names = await store.rankers()
    if ranker is None:
        return names
    if ranker not in names and ranker not in await store.archived():
        raise ValueError(f"there is no ranker {ranker!r}; there are {', '.join(names) or 'none'}")
    return [ranker]
