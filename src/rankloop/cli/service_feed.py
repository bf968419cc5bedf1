"""The command that sends feedback from a file to a service."""

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
