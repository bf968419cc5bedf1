"""The commands that run a service and look after it: its settings, rankers and keys, and what goes in and out of it.

Everything heavy is imported when a command is called.
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rankloop.cli.service_store import LiveStoreOptions, StoreOptions, allow_rankers, ask_service, now
from rankloop.cli.settings import (
    DATA,
    AllowOption,
    ConfigOption,
    DatabaseOption,
    DataOption,
    JsonFlag,
    KeyOption,
    RankerOption,
    SchemaOption,
    SegmentsOption,
    UrlOption,
    as_toml,
    limit_settings,
    read_values,
    service_option,
    settings_of,
)

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine
    from rankloop.serving.stores.contract import Store


class LogFormat(StrEnum):
    """How messages of the service are written."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class ServeOptions:
    """The settings of a service."""

    data: DataOption = DATA
    database: DatabaseOption = None
    schema: SchemaOption = "rankloop"
    host: Annotated[str, service_option("host", "Address; any other than loopback needs API keys.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, service_option("port", "Port; 0 takes a free one.")] = 8000
    snapshot_every: Annotated[int, service_option("snapshot_every", "Rows of the log between snapshots.")] = (
        20_000
    )
    retain: Annotated[
        str | None,
        service_option(
            "retain",
            "How much of each log stays live, such as 500000 (rows) or 7d; the rest goes to Parquet segments.",
            metavar="ROWS or TIME",
            show_default="everything",
        ),
    ] = None
    segments: SegmentsOption = None
    memory: Annotated[bool, Option("--memory", help="Keep nothing when it stops: for trials.")] = False
    users: Annotated[
        bool, Option("--simulated-users", "--people", help="Add simulated users, to watch it learn.")
    ] = False
    unsafe: Annotated[
        bool,
        Option(
            "--unsafe-database", help="Use a database that can lose what it has acknowledged: for trials."
        ),
    ] = False
    allow: AllowOption = None
    webhooks: Annotated[
        Path | None,
        service_option(
            "webhooks",
            "TOML that says which events of other systems are feedback, and how they are signed.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    origins: Annotated[
        list[str] | None,
        service_option(
            "origins",
            "An origin whose pages may call the service, such as https://shop.example; repeatable.",
            "--allow-origin",
            metavar="ORIGIN",
            show_default="its own page only",
        ),
    ] = None
    extractor: Annotated[
        str | None,
        service_option(
            "extractor",
            "Function that finds features of documents to rerank: (model, query, documents) to a row for each.",
            metavar="PACKAGE.MODULE:FUNCTION",
            show_default=False,
        ),
    ] = None
    seconds: Annotated[float | None, Option(help="Stop after that long.", show_default="never")] = None
    log_format: Annotated[
        LogFormat,
        service_option("log_format", "Messages as text, or as one JSON object a line, for programs."),
    ] = LogFormat.TEXT
    traces: Annotated[
        bool,
        service_option(
            "traces", "Send OpenTelemetry traces, as the environment variables OTEL_... say.", "--traces"
        ),
    ] = False
    limit: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=NUMBER",
            help="Set a limit, such as rankers=20000 or connections=500; repeatable. A wrong name lists them all.",
        ),
    ] = None
    config: ConfigOption = None


def serve(ctx: typer.Context, *, options: ServeOptions) -> None:
    """Rank over HTTP, and learn from the feedback.

    A setting is a flag, a variable such as RANKLOOP_SERVE_PORT, or a line of rankloop.toml.

    [b]Examples[/b]

      rankloop serve --data my-rankers

      rankloop serve --database postgresql://localhost/rankers --port 8001
    """
    allow_rankers(options.allow)
    from rankloop.serving.admission import read_limits
    from rankloop.serving.messages import speak_json, speak_plainly, start_tracing
    from rankloop.serving.retention import read_retention
    from rankloop.serving.server import run
    from rankloop.serving.stores.sqlite import MemoryStore

    limits = read_limits(
        [f"{name}={number}" for name, (number, _) in limit_settings(ctx, options.limit).items()]
    )
    retention = None if options.retain is None else read_retention(options.retain)
    if retention is not None and options.database and options.segments is None:
        raise ValueError("--retain with a database needs --segments: a folder that all replicas reach")
    if options.extractor is not None:
        sys.path.append("")  # so that a module in the present folder is found, as with `python -m`
    tell = speak_json() if options.log_format is LogFormat.JSON else speak_plainly()
    if options.traces:
        start_tracing()
    place = StoreOptions(options.data, options.database, options.schema, options.segments)
    with contextlib.suppress(KeyboardInterrupt):  # the usual way to stop it
        run(
            MemoryStore() if options.memory else place.one(unsafe=options.unsafe, create=True),
            host=options.host,
            port=options.port,
            snapshot_every=options.snapshot_every,
            place="nothing is kept" if options.memory else f"{place}",
            tell=tell,
            people=options.users,
            seconds=options.seconds,
            limits=limits,
            retention=None if options.memory else retention,
            webhooks=options.webhooks,
            origins=options.origins or (),
            extractor=options.extractor,
        )
    kept = "" if options.memory else "; everything that it acknowledged is kept"
    tell(f"rankloop stopped{kept}.")


def show_config(ctx: typer.Context, *, options: ServeOptions, as_json: JsonFlag = False) -> None:
    """Print the settings of serve, and where each comes from.

    The output is a settings file itself, but for the password of a database, which is not shown.

    [b]Examples[/b]

      rankloop config --port 8001 > rankloop.toml
    """
    import msgspec

    from rankloop.serving.admission import Limits, read_limits

    set_limits = limit_settings(ctx, options.limit)
    limits = read_limits([f"{name}={number}" for name, (number, _) in set_limits.items()])
    settings = settings_of(ctx)
    numbers = {field.name: getattr(limits, field.name) for field in msgspec.structs.fields(Limits)}
    sources = {name: set_limits[name][1] if name in set_limits else "default" for name in numbers}
    if as_json:
        plain: dict[str, Any] = {
            one.name: {"value": one.value if one.value is None else _plain(one.value), "source": one.source}
            for one in settings
        }
        plain["limits"] = {
            name: {"value": number, "source": sources[name]} for name, number in numbers.items()
        }
        typer.echo(json.dumps(plain, indent=2))
        return
    if options.config is not None:
        typer.echo(f"# file: {options.config}")
    for one in settings:
        if one.value is None:
            typer.echo(f"# {one.name} is not set")
        else:
            typer.echo(f"{one.name} = {as_toml(_plain(one.value))}  # {one.source}")
    typer.echo("\n[limits]")
    for name, number in numbers.items():
        typer.echo(f"{name} = {as_toml(number)}  # {sources[name]}")


def _plain(value: object) -> object:
    """A value that JSON and TOML can write."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool | int | float | list) else str(value)


def create(
    ranker: Annotated[str, Argument(metavar="NAME", help="What to call it.")],
    algorithm: RankerOption,
    items: Annotated[
        str | None,
        Option(
            metavar="NAMES",
            help="The items, with commas between them; or @FILE, with one on each line.",
            show_default="none, for a ranker whose requests bring their items",
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A parameter of the algorithm; repeatable."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUE", help="A setting of its policy, such as deadline_seconds=3600; repeatable."
        ),
    ] = None,
    seed: Annotated[int | None, Option(help="Of its lists.", show_default="drawn")] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    *,
    place: LiveStoreOptions,
    allow: AllowOption = None,
) -> None:
    """Create a ranker, in a store or at a running service.

    The store must not be served by anybody. The same again changes nothing.

    [b]Examples[/b]

      rankloop create unwind --algorithm TopFTRL --items walk,meditate,music

      rankloop create pages --algorithm FTRLPBM --set n_positions=3 --items @items.txt --url http://127.0.0.1:8000

      rankloop create new-order --algorithm Comparison --set 'rankings=["engine", "new"]'
    """
    allow_rankers([*(allow or []), *([algorithm] if ":" in algorithm else [])])
    wanted: dict[str, Any] = {
        "algorithm": algorithm,
        "items": _names(items),
        "parameters": read_values("--set", parameters),
        "policy": read_values("--policy", policy),
        "seed": seed,
    }
    if url is not None:
        made = ask_service(url, key, lambda client: client.create(ranker, **wanted))
        duplicate = made.duplicate
    else:
        import msgspec

        from rankloop.serving.api import CreateRequest

        try:
            request = msgspec.convert(wanted | {"name": ranker}, CreateRequest)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None

        async def work(engine: Engine) -> bool:
            _, there = await engine.create(request)
            return there

        duplicate = place.with_engine(work, create=True)
    where = place if url is None else url
    typer.echo(f"{ranker}: {'is there already, just so' if duplicate else 'created'} ({where})")


def _names(items: str | None) -> list[str] | None:
    if items is None or not items.startswith("@"):
        return None if items is None else [name.strip() for name in items.split(",")]
    return [line.strip() for line in Path(items[1:]).read_text().splitlines() if line.strip()]


def rankers(*, place: StoreOptions, as_json: JsonFlag = False, allow: AllowOption = None) -> None:
    """List the rankers of a service, running or not; of a comparison its verdict."""
    allow_rankers(allow)
    import msgspec

    from rankloop.serving.admission import Limits
    from rankloop.serving.loaded_rankers import LoadedRankers
    from rankloop.serving.views import ranker_answer

    async def look(store: Store) -> tuple[list[Any], list[str]]:
        loaded = LoadedRankers(store, Limits())
        await loaded.load_all()
        return [await ranker_answer(served) for served in loaded.rankers.values()], loaded.notices()

    answers, notices = place.read(look)
    for notice in notices:
        typer.echo(notice, err=True)
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(answers), indent=2))
        return
    if not answers and not notices:
        typer.echo("There are no rankers yet.")
    for one in answers:
        frozen = ", frozen" if one.frozen else ""
        typer.echo(
            f"{one.name}  {one.algorithm}, {one.rounds:,} rounds learnt, {one.last_seq:,} rows{frozen}"
        )
        if one.current:
            typer.echo(f"  {' > '.join(one.current[:8])}{' > ...' if len(one.current) > 8 else ''}")
        if one.comparison:
            typer.echo(f"  {one.comparison.sentence}")


def delete(
    ranker: Annotated[str, Argument(metavar="RANKER", help="The ranker to archive.")],
    *,
    place: LiveStoreOptions,
) -> None:
    """Archive a ranker: its log stays under another name.

    It is served no more, and its own name is free again.

    Beside a running service on a folder, send it DELETE /v1/rankers/RANKER instead.
    """

    async def work(store: Store) -> str:
        return await store.archive(ranker, at=now())

    typer.echo(f"{ranker} archived as {place.change(work)}")


def keys(
    action: Annotated[str, Argument(help="[b]list[/b], [b]add[/b], [b]delete[/b] or [b]open[/b].")] = "list",
    key_id: Annotated[str | None, Argument(metavar="ID", help="Of the key to delete.")] = None,
    role: Annotated[
        str, Option(help="reader, events (activate and feedback only), writer or admin.")
    ] = "writer",
    note: Annotated[str, Option(help="What it is for.")] = "",
    for_rankers: Annotated[
        list[str] | None,
        Option(
            "--for",
            metavar="RANKER",
            help="A ranker that the key is for, or the beginning of names, such as acme.*; repeatable.",
            show_default="all",
        ),
    ] = None,
    most_rankers: Annotated[
        int, Option(help="How many rankers there may be under these names; 0: no quota.")
    ] = 0,
    rate: Annotated[
        float, Option(help="Requests a second with keys for these names; 0: no quota of their own.")
    ] = 0.0,
    new: Annotated[
        bool, Option("--new-store", help="Make the store first, for keys before the first start.")
    ] = False,
    *,
    place: LiveStoreOptions,
) -> None:
    """Make, list and delete API keys.

    A running service notices within seconds.

    Once there is a key, every call needs one: make an admin key first. That stays so when the last key is deleted,
    until [b]open[/b] says that callers on this machine need none.

    [b]Examples[/b]

      rankloop keys add --role admin --note me

      rankloop keys add --role events --note "the shop's pages"

      rankloop keys add --role admin --for "acme.*" --most-rankers 20 --rate 100
    """
    from rankloop.base import one_of
    from rankloop.serving.auth import delete_key, make_key, need_no_keys, stored_keys

    one_of("action", action, ("list", "add", "delete", "open"))
    if action == "delete" and key_id is None:
        raise ValueError("keys delete needs the ID of a key: `rankloop keys list` shows them")
    quotas: dict[str, Any] = {"rankers": for_rankers, "most_rankers": most_rankers, "rate": rate}

    async def work(store: Store) -> list[str]:
        if action == "add":
            made = await make_key(store, role=role, at=now(), note=note, **quotas)
            return [made, "Shown once: keep it. Send it as  Authorization: Bearer KEY"]
        if key_id is not None and action == "delete":
            if not await delete_key(store, key_id, at=now()):
                raise ValueError(f"there is no key {key_id!r}: `rankloop keys list` shows those there are")
            return [f"{key_id} deleted"]
        if action == "open":
            await need_no_keys(store, at=now())
            return ["No key is needed: callers on this machine may do everything."]
        stored = await stored_keys(store)
        return [f"{key.key_id}  {key.role:<6}  {key.note}" for key in stored] or ["There are no keys."]

    for line in place.change(work, own=False, create=new):
        typer.echo(line)
