"""The commands that start a service, and that tell with which settings it would start."""

from __future__ import annotations

import contextlib
import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankloop.cli.service_store import (
    DATA,
    AllowOption,
    DatabaseOption,
    DataOption,
    SchemaOption,
    SegmentsOption,
    allow_rankers,
    make_stores,
)
from rankloop.cli.settings import ConfigOption, as_toml, limit_settings, settings_of, variable


class LogFormat(StrEnum):
    """How messages of the service are written."""

    TEXT = "text"
    JSON = "json"


HostOption = Annotated[
    str,
    typer.Option(
        help="Address to listen on; any address other than loopback needs API keys.", envvar=variable("host")
    ),
]
PortOption = Annotated[
    int, typer.Option(help="Port to listen on; 0 takes a free one.", envvar=variable("port"))
]
SnapshotOption = Annotated[
    int, typer.Option(help="Rows of the log between snapshots.", envvar=variable("snapshot_every"))
]
RetainOption = Annotated[
    str | None,
    typer.Option(
        metavar="ROWS or TIME",
        help="How much of each log stays live, such as 500000 (rows) or 7d; the rest goes to Parquet segments.",
        show_default="everything",
        envvar=variable("retain"),
    ),
]
MemoryOption = Annotated[bool, typer.Option("--memory", help="Keep everything in memory only: for trials.")]
UsersOption = Annotated[
    bool,
    typer.Option("--simulated-users", "--people", help="Add simulated users, to have something to watch."),
]
UnsafeOption = Annotated[
    bool,
    typer.Option(
        "--unsafe-database", help="Use a database that can lose what it has acknowledged: for trials."
    ),
]
SecondsOption = Annotated[float | None, typer.Option(help="Stop after that long.", show_default="never")]
LogFormatOption = Annotated[
    LogFormat,
    typer.Option(
        help="Messages as text, or as one JSON object a line, for programs.", envvar=variable("log_format")
    ),
]
TracesOption = Annotated[
    bool,
    typer.Option(
        "--traces",
        help="Send OpenTelemetry traces, as the environment variables OTEL_... say.",
        envvar=variable("traces"),
    ),
]
AdvertiseOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where other replicas on the same database reach this one.",
        show_default="where it listens",
        envvar=variable("advertise"),
    ),
]
ForwardOption = Annotated[
    bool,
    typer.Option(
        "--forward/--redirect",
        help="What to do with a request for a ranker that another replica owns: send it there, or answer 307.",
        envvar=variable("forward"),
    ),
]
WebhooksOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="TOML that says which events of other systems are feedback, and how they are signed.",
        show_default=False,
        envvar=variable("webhooks"),
    ),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=NUMBER",
        help="Set a limit, such as rankers=20000 or connections=500; repeatable. A wrong name lists them all.",
    ),
]


def serve(
    ctx: typer.Context,
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    snapshot_every: SnapshotOption = 20_000,
    retain: RetainOption = None,
    segments: SegmentsOption = None,
    memory: MemoryOption = False,
    people: UsersOption = False,
    unsafe: UnsafeOption = False,
    allow: AllowOption = None,
    advertise: AdvertiseOption = None,
    forward: ForwardOption = True,
    webhooks: WebhooksOption = None,
    seconds: SecondsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    traces: TracesOption = False,
    limit: LimitOption = None,
    config: ConfigOption = None,
) -> None:
    """Rank for an application over HTTP, and learn from the feedback. What it acknowledges is never lost.

    [b]Examples[/b]

      rankloop serve --data my-rankers

      rankloop serve --database postgresql://localhost/rankers --port 8001

      rankloop serve --database postgresql://one/rankers --database postgresql://two/rankers

      rankloop serve --ranker mypackage.rankers:Mine
    """
    allow_rankers(allow)
    from rankloop.serving.limits import read_limits
    from rankloop.serving.messages import speak_json
    from rankloop.serving.retention import read_retention
    from rankloop.serving.server import run
    from rankloop.serving.tracing import start_tracing

    found = limit_settings(ctx, limit)
    limits = read_limits([f"{name}={number}" for name, (number, _) in found.items()])
    retention = None if retain is None else read_retention(retain)
    if retention is not None and database and segments is None:
        raise ValueError("--retain with a database needs --segments: a folder that all replicas reach")
    tell = speak_json() if log_format is LogFormat.JSON else typer.echo
    if traces:
        start_tracing()
    with contextlib.suppress(KeyboardInterrupt):  # the usual way to stop it
        run(
            make_stores(data, database, schema, memory=memory, unsafe=unsafe, segments=segments),
            host=host,
            port=port,
            snapshot_every=snapshot_every,
            tell=tell,
            people=people,
            seconds=seconds,
            limits=limits,
            advertise=advertise,
            forward=forward,
            retention=None if memory else retention,
            webhooks=webhooks,
        )
    tell("rankloop stopped." if memory else "rankloop stopped; everything that it acknowledged is kept.")


def show_config(
    ctx: typer.Context,
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    snapshot_every: SnapshotOption = 20_000,
    retain: RetainOption = None,
    segments: SegmentsOption = None,
    memory: MemoryOption = False,
    people: UsersOption = False,
    unsafe: UnsafeOption = False,
    allow: AllowOption = None,
    advertise: AdvertiseOption = None,
    forward: ForwardOption = True,
    webhooks: WebhooksOption = None,
    seconds: SecondsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    traces: TracesOption = False,
    limit: LimitOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Print the settings with which [b]rankloop serve[/b] would start, and where each comes from.

    The output is a settings file itself, but for the password of a database, which is not shown.

    [b]Examples[/b]

      rankloop config --port 8001 > rankloop.toml
    """
    import msgspec

    from rankloop.serving.limits import Limits, read_limits

    given = limit_settings(ctx, limit)
    limits = read_limits([f"{name}={number}" for name, (number, _) in given.items()])
    told = settings_of(ctx)
    numbers = {field.name: getattr(limits, field.name) for field in msgspec.structs.fields(Limits)}
    sources = {name: source for name, (_, source) in given.items()}
    if as_json:
        settings = {
            one.name: {"value": one.value if one.value is None else _plain(one.value), "source": one.source}
            for one in told
        }
        chosen = {
            name: {"value": number, "source": sources.get(name, "default")}
            for name, number in numbers.items()
        }
        typer.echo(json.dumps({**settings, "limits": chosen}, indent=2))
        return
    if config is not None:
        typer.echo(f"# file: {config}")
    for one in told:
        if one.value is None:
            typer.echo(f"# {one.name} is not set")
        else:
            typer.echo(f"{one.name} = {as_toml(_plain(one.value))}  # {one.source}")
    typer.echo("\n[limits]")
    for name, number in numbers.items():
        typer.echo(f"{name} = {as_toml(number)}  # {sources.get(name, 'default')}")


def _plain(value: object) -> object:
    """A value that JSON and TOML can write."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool | int | float | list) else str(value)
