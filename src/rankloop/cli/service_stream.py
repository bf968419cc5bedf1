"""The command that sends what happens to rankers to a webhook or a file."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankloop.cli.service_store import (
    DATA,
    AllowOption,
    DatabaseOption,
    DataOption,
    SchemaOption,
    allow_rankers,
    chosen,
    looking,
)
from rankloop.cli.settings import ConfigOption

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Store
    from rankloop.serving.streaming import Sink


def stream(
    rankers: Annotated[
        list[str] | None,
        typer.Argument(metavar="RANKER", help="Whose events.", show_default="all, also later ones"),
    ] = None,
    to: Annotated[
        str, typer.Option(metavar="URL|FILE", help="A webhook, a file to append to, or - for the terminal.")
    ] = "-",
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with whatever happens, until Ctrl-C.")
    ] = False,
    cursor: Annotated[
        Path | None,
        typer.Option(
            help="Keeps how far was sent.", show_default="FILE.sent, or rankloop-stream.json for a webhook"
        ),
    ] = None,
    secret_file: Annotated[
        Path | None, typer.Option(help="A file with the secret that signs requests.", show_default=False)
    ] = None,
    alerts: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="A running service whose alerts are sent as well.", show_default=False
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="An API key of a reader of all rankers, for the alerts.",
            envvar="RANKLOOP_KEY",
            show_default=False,
        ),
    ] = None,
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    config: ConfigOption = None,
    allow: AllowOption = None,
) -> None:
    """Send each list that was learnt from, and each change of a ranker, to a webhook or a file.

    Events of a ranker come in the order of its log, each at least once, with an ID. What is not acknowledged is sent
    again, with growing pauses. How far it came is kept in a file, so that it goes on there. May run beside the service.

    [b]Examples[/b]

      rankloop stream front --to https://example.org/hook --secret-file secret --follow

      rankloop stream --to events.jsonl --follow
    """
    allow_rankers(allow)
    from rankloop.extras import require

    require("httpx", "msgspec", extra="serve", for_="rankloop stream")
    from rankloop.serving.streaming import Cursor, LinesFile, Refused, Stream, Webhook

    is_url = to.startswith(("http://", "https://"))
    secret = None
    if secret_file is not None:
        from rankloop.serving.signatures import read_secret

        secret = read_secret(secret_file)
    place = cursor or (None if to == "-" else Path("rankloop-stream.json" if is_url else f"{to}.sent"))
    if place is None:
        raise ValueError("to the terminal, name the file that keeps how far was sent: --cursor FILE")
    sent = 0

    async def work(store: Store) -> None:
        nonlocal sent
        for name in rankers or ():
            await chosen(store, name)
        sink: Sink
        if is_url:
            sink = Webhook(to, secret, tell=lambda problem: typer.echo(problem, err=True))
        else:
            sink = LinesFile(None if to == "-" else Path(to))
        stream = Stream(
            store,
            sink,
            Cursor(place),
            rankers=rankers or None,
            alerts=None if alerts is None else _asker(alerts, key),
        )
        try:
            await (stream.follow() if follow else stream.send_new())
        finally:
            sent = stream.sent
            await sink.close()

    with contextlib.suppress(KeyboardInterrupt):
        try:
            looking(data, database, schema, work)
        except Refused as error:
            raise ValueError(f"{error}: stopped there; what was acknowledged is not sent again") from None
    typer.echo(f"{sent:,} events sent", err=True)


def _asker(url: str, key: str | None) -> Callable[[], Any]:
    """Asks a service for the alerts there are."""
    import httpx

    headers = {} if key is None else {"authorization": f"Bearer {key}"}

    async def ask() -> list[str]:
        async with httpx.AsyncClient(trust_env=False, timeout=10.0) as http:
            while True:
                with contextlib.suppress(httpx.RequestError):
                    answer = await http.get(f"{url.rstrip('/')}/v1/rankers", headers=headers)
                    if answer.is_success:
                        return [str(one) for one in answer.json()["notices"]]
                    if answer.status_code in (401, 403):
                        raise ValueError(
                            f"{url} answered {answer.status_code}: the alerts need a key of a reader"
                        )
                await asyncio.sleep(1.0)

    return ask
