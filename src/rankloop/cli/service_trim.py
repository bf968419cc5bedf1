"""The command that moves closed history of a service to Parquet segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rankloop.cli.service_store import (
    DATA,
    AllowOption,
    DatabaseOption,
    DataOption,
    RankerArgument,
    SchemaOption,
    SegmentsOption,
    allow_rankers,
    chosen,
    make_store,
    with_store,
)
from rankloop.cli.settings import ConfigOption, variable

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Store


def trim(
    ranker: RankerArgument = None,
    retain: Annotated[
        str,
        typer.Option(
            metavar="ROWS or TIME",
            help="How much of each log stays live, such as 500000 (rows) or 7d.",
            envvar=variable("retain"),
        ),
    ] = "7d",
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    segments: SegmentsOption = None,
    config: ConfigOption = None,
    allow: AllowOption = None,
) -> None:
    """Move closed history to Parquet segments, and give its space back: lists that are answered or expired.

    Nothing is lost: verify, export and the service read segments and live log as one. A running service does this by
    itself, with [b]serve --retain[/b]; beside a service on a folder this command has to wait until it is stopped.

    [b]Examples[/b]

      rankloop trim --retain 7d --data my-rankers

      rankloop trim --retain 100000 --database postgresql://localhost/rankers --segments /shared/segments
    """
    allow_rankers(allow)
    import time

    from rankloop.serving.retention import close_history, read_retention

    retention = read_retention(retain)

    async def work(store: Store) -> None:
        for name in await chosen(store, ranker):
            rows = files = 0
            now = await store.time(name, at=int(time.time() * 1000))
            while segment := await close_history(store, name, retention, now=now):
                rows, files = rows + segment.rows, files + 1
            closed = await store.history(name)
            live = await store.last_seq(name) - (closed.through if closed is not None else 0)
            typer.echo(f"{name}: {rows:,} rows moved to {files} segments, {live:,} rows stay live")
        await store.give_space_back(whole=True)

    with_store(make_store(data, database, schema, segments=segments), work)
