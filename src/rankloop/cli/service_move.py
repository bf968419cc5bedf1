"""The command that moves a ranker from one database to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rankloop.cli.service_store import DATA, DatabaseOption, SchemaOption, make_stores
from rankloop.cli.settings import ConfigOption

if TYPE_CHECKING:
    from rankloop.serving.databases.moving import Moved


def move(
    ranker: Annotated[str, typer.Argument(metavar="RANKER", help="The ranker to move.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="URL|NUMBER", help="One of the databases, by its address or its number, from 1."
        ),
    ],
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    config: ConfigOption = None,
) -> None:
    """Move a ranker to another one of the service's databases, while the service runs.

    Its log is copied and every digest computed again. At the end the ranker answers 503 for a moment. Where the command
    was interrupted, give it again; or name the database that the ranker was in, to go back.

    [b]Examples[/b]

      rankloop move unwind --to 2 --database postgresql://one/rankers --database postgresql://two/rankers
    """
    import asyncio

    from rankloop.serving.stores.contract import StoreError

    number = _number(to, database or [])
    try:
        told, label = asyncio.run(_move(ranker, number, database or [], schema))
    except StoreError as error:
        raise ValueError(str(error)) from None
    typer.echo(f"{ranker}: in {label}, {told.rows:,} rows, {told.copied:,} copied, digest {told.link.hex()}")


def _number(to: str, databases: list[str]) -> int:
    from rankloop.serving.stores.postgres_errors import without_password

    if len(databases) < 2:
        raise ValueError(
            "name all databases of the service, with --database, its variable or the settings file"
        )
    if to.isdecimal() and 1 <= int(to) <= len(databases):
        return int(to) - 1
    for number, url in enumerate(databases):
        if to in (url, without_password(url)):
            return number
    raise ValueError(f"to must be one of the {len(databases)} databases, by number or address, got {to!r}")


async def _move(ranker: str, to: int, databases: list[str], schema: str) -> tuple[Moved, str]:
    from rankloop.serving.databases.moving import move as bring
    from rankloop.serving.stores.postgres import PostgresStore
    from rankloop.serving.stores.spread import SpreadStore

    stores = [one for one in make_stores(DATA, databases, schema) if isinstance(one, PostgresStore)]
    together = SpreadStore(stores)
    await together.open()
    try:
        return await bring(ranker, stores, to), stores[to].label
    finally:
        await together.close()
