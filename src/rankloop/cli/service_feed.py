"""The commands that send feedback from a file, or from a stream of Redis, to a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def feed(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON lines, each as POST .../feedback takes it.")
    ],
    ranker: Annotated[str, typer.Option("--to", metavar="RANKER", help="Whose feedback it is.")],
    url: Annotated[str, typer.Option(help="Where the service is.")] = "http://127.0.0.1:8000",
    key: Annotated[
        str | None, typer.Option(help="An API key of a writer.", envvar="RANKLOOP_KEY", show_default=False)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with whatever is appended, until Ctrl-C.")
    ] = False,
) -> None:
    """Send feedback from a file of JSON lines to a service, and go on where it was stopped.

    How far it came is kept in FILE.sent, written once the service has acknowledged. Lines that are sent again count
    once. A line that is refused is told, and left out.

    [b]Examples[/b]

      rankloop feed clicks.jsonl --to front --follow
    """
    from rankloop.extras import require

    require("httpx", extra="client", for_="rankloop feed")
    from rankloop.serving.client import Client, RankloopError
    from rankloop.serving.feeding import Feed

    if not follow and not file.exists():
        raise ValueError(f"there is no file {file}")
    with Client(url, key=key) as client:
        feed = Feed(client, ranker, file, tell=lambda problem: typer.echo(problem, err=True))
        try:
            told = feed.follow() if follow else feed.send_new()
        except RankloopError as error:
            raise ValueError(f"stopped at line {feed.place.line}: {error}") from None
    typer.echo(
        f"{told.taken:,} lines taken, {told.refused:,} left out; line {feed.place.line:,} was the last"
    )


def consume(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="A stream of Redis.")],
    ranker: Annotated[str, typer.Option("--to", metavar="RANKER", help="Whose feedback it is.")],
    redis: Annotated[
        str,
        typer.Option(
            metavar="URL", help="The server of the stream.", envvar="RANKLOOP_REDIS", show_envvar=False
        ),
    ] = "redis://127.0.0.1:6379/0",
    group: Annotated[str, typer.Option(help="Of consumers that share the stream.")] = "rankloop",
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of this consumer: another one for each that runs.",
            show_default="of the machine",
        ),
    ] = None,
    url: Annotated[str, typer.Option(help="Where the service is.")] = "http://127.0.0.1:8000",
    key: Annotated[
        str | None, typer.Option(help="An API key of a writer.", envvar="RANKLOOP_KEY", show_default=False)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with whatever comes, until Ctrl-C.")
    ] = False,
) -> None:
    """Send feedback from a stream of Redis to a service; an entry is acknowledged once the service has it on disk.

    Each entry has a field [b]feedback[/b], JSON as POST .../feedback takes it. What is refused goes to the stream
    STREAM:refused, with the reason. What a consumer had read when it died is read again, and counts once.

    [b]Examples[/b]

      rankloop consume clicks --to front --redis redis://127.0.0.1:6379/0 --follow
    """
    import contextlib
    import platform

    from rankloop.extras import require

    require("httpx", extra="client", for_="rankloop consume")
    from rankloop.serving.client import Client, RankloopError
    from rankloop.serving.consuming import Consumer, StreamPlace, connect

    server = connect(redis)
    from redis.exceptions import RedisError

    place = StreamPlace(stream, group, name or platform.node() or "rankloop")
    with Client(url, key=key) as client, contextlib.suppress(KeyboardInterrupt):
        consumer = Consumer(client, ranker, server, place, tell=lambda problem: typer.echo(problem, err=True))
        try:
            told = consumer.follow() if follow else consumer.send_new()
        except RankloopError as error:
            raise ValueError(f"stopped; what was not acknowledged is read again: {error}") from None
        except RedisError as error:
            raise ValueError(f"{redis} cannot be used: {error}") from None
        typer.echo(f"{told.taken:,} entries taken, {told.refused:,} left out")
