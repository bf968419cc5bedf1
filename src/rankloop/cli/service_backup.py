"""The commands that copy a store while the service runs, and put a copy back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankloop.cli.service_store import (
    DATA,
    DatabaseOption,
    DataOption,
    SchemaOption,
    SegmentsOption,
    looking,
    make_store,
)
from rankloop.cli.settings import ConfigOption

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Store


def backup(
    to: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the copy goes: a new folder.")],
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    segments: SegmentsOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy a store as it is at one moment, while the service runs: log, segments, snapshots and API keys.

    Every digest of the copy is checked. It is a store itself: `rankloop verify --data FOLDER` replays it, and
    `rankloop serve --data FOLDER` serves it. Several databases are copied one after the other, to FOLDER/1,
    FOLDER/2 and so on: give the command again where a ranker was moved meanwhile.

    [b]Examples[/b]

      rankloop backup copies/monday --data my-rankers

      rankloop backup copies/monday --database postgresql://localhost/rankers
    """
    from rankloop.serving.stores.backup import backup as copy

    for number, url in enumerate(database or [None], 1):
        place = to / str(number) if len(database or ()) > 1 else to
        looking(data, [url] if url else None, schema, partial(copy, folder=place), segments=segments)
        typer.echo(f"{place}: {_check(place)}")


def restore(
    copy: Annotated[Path, typer.Argument(metavar="FOLDER", help="A copy that `rankloop backup` made.")],
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    segments: SegmentsOption = None,
    config: ConfigOption = None,
) -> None:
    """Put a copy into a new folder, or into a database without rankers, and check its digests there.

    A folder's copy may go into a database, and a database's into a folder. What was acknowledged after the copy is
    not in it.

    [b]Examples[/b]

      rankloop restore copies/monday --data my-rankers

      rankloop restore copies/monday --database postgresql://localhost/rankers
    """
    import asyncio

    from rankloop.serving.stores.backup import restore as put_back
    from rankloop.serving.stores.contract import StoreError

    if len(database or ()) > 1:
        raise ValueError("restore into one database at a time: give --database once")
    told = _check(copy)
    try:
        asyncio.run(put_back(copy, make_store(data, database, schema, segments=segments, create=True)))
    except StoreError as error:
        raise ValueError(str(error)) from None
    if _check(data, database, schema, segments) != told:
        raise ValueError("what was restored is not what is in the copy")
    typer.echo(f"{'the database' if database else data}: {told}")


def _check(
    data: Path, database: list[str] | None = None, schema: str = "rankloop", segments: Path | None = None
) -> str:
    """What is in a store, in words; ValueError where a digest of it differs."""
    from rankloop.serving.log.verify import verify

    async def look(store: Store) -> tuple[int, int]:
        problems = [f"the store: {problem}" for problem in await store.problems()]
        rows, names = 0, [*await store.rankers(), *await store.archived()]
        for name in names:
            verdict = await verify(store, name, replay=False)
            problems += [f"{name}: {problem}" for problem in verdict.problems]
            rows += verdict.rows
        if problems:
            raise ValueError(f"the copy is damaged: {'; '.join(problems[:5])}")
        return len(names), rows

    rankers, rows = looking(data, database, schema, look, segments=segments)
    return f"{rankers:,} {'ranker' if rankers == 1 else 'rankers'}, {rows:,} rows, every digest holds"
