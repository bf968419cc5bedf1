"""The command that destroys the keys of a data subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rankloop.cli.service_store import (
    DATA,
    DatabaseOption,
    DataOption,
    SchemaOption,
    make_store,
    with_store,
)
from rankloop.cli.settings import ConfigOption

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Store


def erase(
    subject: Annotated[str, typer.Option(help="The data subject, as requests named it.")],
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    config: ConfigOption = None,
) -> None:
    """Destroy the keys of a data subject: the context of its lists can be read no more, in the log and in segments.

    What was learnt stays, and [b]verify[/b] still holds. May run beside the service, which forgets the key within a
    minute. Copies have keys of their own: give the command for each of them, too.

    [b]Examples[/b]

      rankloop erase --subject user-4711

      rankloop erase --subject user-4711 --data copies/monday
    """
    import time

    async def work(store: Store) -> int:
        return await store.erase_subject(subject, at=int(time.time() * 1000))

    n_keys = with_store(make_store(data, database, schema, own=False), work)
    if not n_keys:
        typer.echo("there is no key of this subject: nothing to erase")
        return
    typer.echo(f"{n_keys} {'key' if n_keys == 1 else 'keys'} destroyed")
