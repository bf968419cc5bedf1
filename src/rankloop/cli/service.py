"""The commands that run a service. Everything heavy is imported when a command is called."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Store

Result = TypeVar("Result")
Wrap = Callable[[Callable[..., None]], Callable[..., None]]

DataOption = Annotated[Path, typer.Option(help="Folder of the SQLite store.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="A PostgreSQL database, postgresql://..., instead of a folder."),
]
SchemaOption = Annotated[str, typer.Option(help="Schema of the database that the tables are in.")]
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
        ("rankers", rankers),
        ("verify", verify),
        ("export", export),
        ("replay", replay),
        ("keys", keys),
    ):
        app.command(name)(in_words(command))


def serve(
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    host: Annotated[
        str, typer.Option(help="Address to listen on; any address other than loopback needs API keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
    snapshot_every: Annotated[int, typer.Option(help="Rows of the log between snapshots.")] = 20_000,
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep everything in memory only: for trials.")
    ] = False,
    people: Annotated[
        bool,
        typer.Option(
            "--simulated-users", "--people", help="Add simulated users, to have something to watch."
        ),
    ] = False,
    allow: AllowOption = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after that long.", show_default="never")] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Set a limit, such as rankers=20000 or connections=500; repeatable. A wrong name lists them all.",
        ),
    ] = None,
) -> None:
    """Rank for an application over HTTP, and learn from the feedback. What it acknowledges is never lost.

    [b]Examples[/b]

      rankloop serve --data my-rankers

      rankloop serve --database postgresql://localhost/rankers --port 8001

      rankloop serve --ranker mypackage.rankers:Mine
    """
    _allow(allow)
    from rankloop.serving.limits import read_limits
    from rankloop.serving.server import run

    limits = read_limits(limit or [])
    with contextlib.suppress(KeyboardInterrupt):  # the usual way to stop it
        run(
            _store(data, database, schema, memory=memory),
            host=host,
            port=port,
            snapshot_every=snapshot_every,
            tell=typer.echo,
            people=people,
            seconds=seconds,
            limits=limits,
        )
    typer.echo(
        "rankloop stopped." if memory else "rankloop stopped; everything that it acknowledged is kept."
    )


def rankers(
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    allow: AllowOption = None,
) -> None:
    """List the rankers of a service, running or not: their algorithm, and how much they have learnt."""
    _allow(allow)
    import msgspec

    from rankloop.serving.served_ranker import ServedRanker
    from rankloop.serving.views import ranker_answer

    async def look(store: Store) -> list[Any]:
        return [await ranker_answer(await ServedRanker.load(name, store)) for name in await store.rankers()]

    found = _looking(data, database, schema, look)
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(found), indent=2))
        return
    if not found:
        typer.echo("There are no rankers yet.")
    for one in found:
        frozen = ", frozen" if one.frozen else ""
        typer.echo(
            f"{one.name}  {one.algorithm}, {one.rounds:,} rounds learnt, {one.last_seq:,} rows{frozen}"
        )
        if one.current:
            typer.echo(f"  {' > '.join(one.current[:8])}{' > ...' if len(one.current) > 8 else ''}")


def verify(
    ranker: RankerArgument = None,
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    allow: AllowOption = None,
) -> None:
    """Replay the log from its beginning and from each snapshot, draw every list again, and compare the results.

    Exits with 1 when something differs. May run beside the service.
    """
    _allow(allow)
    from rankloop.serving.log.verify import verify as replay_all

    async def look(store: Store) -> list[Any]:
        return [await replay_all(store, name) for name in await _chosen(store, ranker)]

    good = True
    for verdict in _looking(data, database, schema, look):
        told = "adds up" if verdict.holds else f"DOES NOT ADD UP, {verdict.n_problems} problems"
        other = f" ({verdict.other_code} of other code left out)" if verdict.other_code else ""
        typer.echo(
            f"{verdict.ranker}: {told}. {verdict.rows:,} rows, {verdict.decisions:,} lists drawn again, "
            f"{verdict.learnt:,} rounds learnt again, {verdict.snapshots} snapshots{other}, "
            f"state {verdict.state_hash[:16]}"
        )
        for problem in verdict.problems:
            typer.echo(f"  {problem}")
        good = good and verdict.holds
    if not good:
        raise typer.Exit(1)


def export(
    ranker: Annotated[str, typer.Argument(metavar="RANKER", help="Whose log.")],
    parquet: Annotated[Path, typer.Option(help="The file to write.")],
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    allow: AllowOption = None,
) -> None:
    """Write the log as a table: a row for each position with feedback, with its propensity.

    [b]Examples[/b]

      rankloop export unwind --parquet unwind.parquet
    """
    _allow(allow)
    from rankloop.serving.log.export import export as write

    async def look(store: Store) -> int:
        (name,) = await _chosen(store, ranker)
        return await write(store, name, parquet)

    typer.echo(f"{parquet}: {_looking(data, database, schema, look):,} rows")


def replay(
    ranker: Annotated[str, typer.Argument(metavar="NAME", help="Whose log.")],
    other: Annotated[
        str,
        typer.Option("--ranker", help="The algorithm to play on it: a name, or package.module:Class."),
    ],
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
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
    _allow([*(allow or []), *([other] if ":" in other else [])])
    from rankloop.serving.log.replay import replay as play

    parameters: dict[str, Any] = {}
    for setting in settings or []:
        key, _, value = setting.partition("=")
        try:
            parameters[key] = json.loads(value)
        except json.JSONDecodeError:
            parameters[key] = value

    async def look(store: Store) -> Any:
        (name,) = await _chosen(store, ranker)
        return await play(store, name, other=other, parameters=parameters)

    told = _looking(data, database, schema, look)
    typer.echo(f"{told.rounds:,} lists with feedback, mean value {told.logged:.4f} as logged")
    if told.value is None:
        typer.echo(f"{told.other}: no estimate, because it never agrees with the log")
    else:
        typer.echo(
            f"{told.other}: {told.value:.4f} (95% from {told.low:.4f} to {told.high:.4f}), {told.matches:,} matches"
        )


def keys(
    action: Annotated[
        str, typer.Argument(help="[b]list[/b], [b]add[/b], [b]delete[/b] or [b]open[/b].")
    ] = "list",
    key_id: Annotated[str | None, typer.Argument(metavar="ID", help="Of the key to delete.")] = None,
    role: Annotated[str, typer.Option(help="reader, writer or admin.")] = "writer",
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
) -> None:
    """Make, list and delete API keys. A running service notices within seconds.

    Once there is a key, every call needs one: make an admin key first. That stays so when the last key is deleted,
    until [b]open[/b] says that callers on this machine need none.

    [b]Examples[/b]

      rankloop keys add --role admin --note me
    """
    import time

    from rankloop.base import one_of
    from rankloop.serving.auth import delete_key, make_key, need_no_keys, stored_keys

    one_of("action", action, ("list", "add", "delete", "open"))
    now = int(time.time() * 1000)

    async def work(store: Store) -> list[str]:
        if action == "add":
            made = await make_key(store, role=role, at=now, note=note)
            return [made, "Shown once: keep it. Send it as  Authorization: Bearer KEY"]
        if action == "delete":
            if key_id is None:
                raise ValueError("keys delete needs the ID of a key: `rankloop keys list` shows them")
            if not await delete_key(store, key_id, at=now):
                raise ValueError(f"there is no key {key_id!r}: `rankloop keys list` shows those there are")
            return [f"{key_id} deleted"]
        if action == "open":
            await need_no_keys(store, at=now)
            return ["No key is needed: callers on this machine may do everything."]
        found = await stored_keys(store)
        return [f"{key.key_id}  {key.role:<6}  {key.note}" for key in found] or ["There are no keys."]

    for line in _with(_store(data, database, schema, own=False), work):
        typer.echo(line)


def _allow(names: list[str] | None) -> None:
    if names:
        from rankloop.serving.adapters.registry import allow

        sys.path.append("")  # so that a module in the present folder is found, as with `python -m`
        allow(names)


def _store(
    data: Path,
    database: str | None,
    schema: str,
    *,
    read_only: bool = False,
    own: bool = True,
    memory: bool = False,
) -> Store:
    try:
        if memory:
            from rankloop.serving.stores.memory import MemoryStore

            return MemoryStore()
        if database is not None:
            from rankloop.serving.stores.postgres import PostgresStore

            return PostgresStore(database, schema=schema)
        from rankloop.serving.stores.sqlite import SQLiteStore

        return SQLiteStore(data, read_only=read_only, own=own)
    except ImportError as error:
        raise ValueError(f"{error.name} is missing: pip install 'rankloop[serve]'") from None


def _looking(
    data: Path, database: str | None, schema: str, work: Callable[[Store], Coroutine[Any, Any, Result]]
) -> Result:
    return _with(_store(data, database, schema, read_only=True), work)


def _with(store: Store, work: Callable[[Store], Coroutine[Any, Any, Result]]) -> Result:
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


async def _chosen(store: Store, ranker: str | None) -> list[str]:
    names = await store.rankers()
    if ranker is None:
        return names
    if ranker not in names:
        raise ValueError(f"there is no ranker {ranker!r}; there are {', '.join(names) or 'none'}")
    return [ranker]
