"""The commands that run a service. Everything heavy is imported when a command is called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankloop.cli.service_backup import backup, restore
from rankloop.cli.service_erase import erase
from rankloop.cli.service_feed import consume, feed
from rankloop.cli.service_import import import_
from rankloop.cli.service_log import upgrade, verify
from rankloop.cli.service_move import move
from rankloop.cli.service_run import serve, show_config
from rankloop.cli.service_store import (
    DATA,
    AllowOption,
    DatabaseOption,
    DataOption,
    SchemaOption,
    SegmentsOption,
    allow_rankers,
    chosen,
    looking,
    make_store,
    with_store,
)
from rankloop.cli.service_stream import stream
from rankloop.cli.service_trim import trim
from rankloop.cli.settings import ConfigOption

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Store

Wrap = Callable[[Callable[..., None]], Callable[..., None]]


def register(app: typer.Typer, in_words: Wrap) -> None:
    """Add the commands to the command line.

    Parameters
    ----------
    app : typer.Typer
        The command line.
    in_words : callable
        Wraps a command so that a ValueError becomes one sentence.
    """
    for name, command in (
        ("serve", serve),
        ("config", show_config),
        ("rankers", rankers),
        ("verify", verify),
        ("upgrade", upgrade),
        ("backup", backup),
        ("restore", restore),
        ("trim", trim),
        ("erase", erase),
        ("export", export),
        ("import", import_),
        ("replay", replay),
        ("feed", feed),
        ("consume", consume),
        ("stream", stream),
        ("move", move),
        ("delete", delete),
        ("keys", keys),
    ):
        app.command(name)(in_words(command))


def rankers(
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    segments: SegmentsOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    allow: AllowOption = None,
) -> None:
    """List the rankers of a service, running or not: their algorithm, and how much they have learnt."""
    allow_rankers(allow)
    import msgspec

    from rankloop.serving.limits import Limits
    from rankloop.serving.roster import Roster
    from rankloop.serving.views import ranker_answer

    async def look(store: Store) -> tuple[list[Any], list[str]]:
        roster = Roster(store, Limits())
        await roster.load_all()
        return [await ranker_answer(served) for served in roster.rankers.values()], roster.notices()

    found, notices = looking(data, database, schema, look, segments=segments)
    for notice in notices:
        typer.echo(notice, err=True)
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(found), indent=2))
        return
    if not found and not notices:
        typer.echo("There are no rankers yet.")
    for one in found:
        frozen = ", frozen" if one.frozen else ""
        typer.echo(
            f"{one.name}  {one.algorithm}, {one.rounds:,} rounds learnt, {one.last_seq:,} rows{frozen}"
        )
        if one.current:
            typer.echo(f"  {' > '.join(one.current[:8])}{' > ...' if len(one.current) > 8 else ''}")


def export(
    ranker: Annotated[str, typer.Argument(metavar="RANKER", help="Whose log.")],
    parquet: Annotated[Path, typer.Option(help="The file to write.")],
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    segments: SegmentsOption = None,
    config: ConfigOption = None,
    allow: AllowOption = None,
) -> None:
    """Write the log as a table: a row for each position with feedback, with its propensity.

    [b]Examples[/b]

      rankloop export unwind --parquet unwind.parquet
    """
    allow_rankers(allow)
    from rankloop.serving.log.export import export as write

    async def look(store: Store) -> int:
        (name,) = await chosen(store, ranker)
        return await write(store, name, parquet, tell=lambda problem: typer.echo(problem, err=True))

    typer.echo(f"{parquet}: {looking(data, database, schema, look, segments=segments):,} rows")


def replay(
    ranker: Annotated[str, typer.Argument(metavar="NAME", help="Whose log.")],
    other: Annotated[
        str,
        typer.Option("--ranker", help="The algorithm to play on it: a name, or package.module:Class."),
    ],
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    segments: SegmentsOption = None,
    config: ConfigOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the algorithm; repeatable."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--log-ranker",
            metavar="PACKAGE.MODULE:CLASS",
            help="The ranker that wrote the log, where it is one of your own; repeatable.",
        ),
    ] = None,
) -> None:
    """Estimate how another ranker would have done on a log, from the lists on which the two agree.

    [b]Examples[/b]

      rankloop replay unwind --ranker RTop1F --set measure=sum_loss
    """
    allow_rankers([*(allow or []), *([other] if ":" in other else [])])
    from rankloop.serving.log.replay import replay as play

    parameters: dict[str, Any] = {}
    for setting in settings or []:
        key, _, value = setting.partition("=")
        try:
            parameters[key] = json.loads(value)
        except json.JSONDecodeError:
            parameters[key] = value

    async def look(store: Store) -> Any:
        (name,) = await chosen(store, ranker)
        return await play(store, name, other=other, parameters=parameters)

    told = looking(data, database, schema, look, segments=segments)
    typer.echo(f"{told.rounds:,} lists with feedback, mean value {told.logged:.4f} as logged")
    if told.value is None:
        typer.echo(f"{told.other}: no estimate, because it never agrees with the log")
    else:
        typer.echo(
            f"{told.other}: {told.value:.4f} (95% from {told.low:.4f} to {told.high:.4f}), {told.matches:,} matches"
        )


def delete(
    ranker: Annotated[str, typer.Argument(metavar="RANKER", help="The ranker to archive.")],
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    config: ConfigOption = None,
) -> None:
    """Archive a ranker: it is served no more, its log stays under another name, and its own name is free again.

    Beside a running service on a folder, send it DELETE /v1/rankers/RANKER instead.
    """
    import time

    async def work(store: Store) -> str:
        return await store.archive(ranker, at=int(time.time() * 1000))

    typer.echo(f"{ranker} archived as {with_store(make_store(data, database, schema), work)}")


def keys(
    action: Annotated[
        str, typer.Argument(help="[b]list[/b], [b]add[/b], [b]delete[/b] or [b]open[/b].")
    ] = "list",
    key_id: Annotated[str | None, typer.Argument(metavar="ID", help="Of the key to delete.")] = None,
    role: Annotated[str, typer.Option(help="reader, writer or admin.")] = "writer",
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
    for_rankers: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="RANKER",
            help="A ranker that the key is for, or the beginning of names, such as acme.*; repeatable.",
            show_default="all",
        ),
    ] = None,
    most_rankers: Annotated[
        int, typer.Option(help="How many rankers there may be under these names; 0: no quota.")
    ] = 0,
    rate: Annotated[
        float, typer.Option(help="Requests a second with keys for these names; 0: no quota of their own.")
    ] = 0.0,
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    config: ConfigOption = None,
) -> None:
    """Make, list and delete API keys. A running service notices within seconds.

    Once there is a key, every call needs one: make an admin key first. That stays so when the last key is deleted,
    until [b]open[/b] says that callers on this machine need none.

    [b]Examples[/b]

      rankloop keys add --role admin --note me

      rankloop keys add --role admin --for "acme.*" --most-rankers 20 --rate 100
    """
    import time

    from rankloop.base import one_of
    from rankloop.serving.auth import delete_key, make_key, need_no_keys, stored_keys

    one_of("action", action, ("list", "add", "delete", "open"))
    if action == "delete" and key_id is None:
        raise ValueError("keys delete needs the ID of a key: `rankloop keys list` shows them")
    now = int(time.time() * 1000)

    async def work(store: Store) -> list[str]:
        if action == "add":
            made = await make_key(
                store,
                role=role,
                at=now,
                note=note,
                rankers=for_rankers,
                most_rankers=most_rankers,
                rate=rate,
            )
            return [made, "Shown once: keep it. Send it as  Authorization: Bearer KEY"]
        if key_id is not None and action == "delete":
            if not await delete_key(store, key_id, at=now):
                raise ValueError(f"there is no key {key_id!r}: `rankloop keys list` shows those there are")
            return [f"{key_id} deleted"]
        if action == "open":
            await need_no_keys(store, at=now)
            return ["No key is needed: callers on this machine may do everything."]
        found = await stored_keys(store)
        return [f"{key.key_id}  {key.role:<6}  {key.note}" for key in found] or ["There are no keys."]

    for line in with_store(make_store(data, database, schema, own=False, create=action == "add"), work):
        typer.echo(line)
