"""The commands about the log of a service: whether it holds, and how another version goes on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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
    looking,
    make_store,
    with_store,
)
from rankloop.cli.settings import ConfigOption

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Store


def verify(
    ranker: RankerArgument = None,
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    segments: SegmentsOption = None,
    config: ConfigOption = None,
    digests: Annotated[
        bool,
        typer.Option("--digests", help="Check digests, numbers and times only, and replay nothing."),
    ] = False,
    allow: AllowOption = None,
) -> None:
    """Check all digests, replay the log from its beginning and from each snapshot, and draw every list again.

    Segments of closed history and the live log are one log. Exits with 1 when something differs, and names it. May
    run beside the service.
    """
    allow_rankers(allow)
    from rankloop.serving.log.verify import verify as replay_all

    async def look(store: Store) -> tuple[list[str], list[Any]]:
        wrong = await store.problems()
        names = await chosen(store, ranker)
        return wrong, [await replay_all(store, name, replay=not digests) for name in names]

    wrong, verdicts = looking(data, database, schema, look, segments=segments)
    for problem in wrong:
        typer.echo(f"the store: {problem}")
    good = not wrong
    for verdict in verdicts:
        told = "adds up" if verdict.holds else f"DOES NOT ADD UP, {verdict.n_problems} problems"
        other = f" ({verdict.other_code} of other code left out)" if verdict.other_code else ""
        earlier = f" ({verdict.earlier:,} of an earlier version, not replayed)" if verdict.earlier else ""
        closed = f", {verdict.segments:,} segments" if verdict.segments else ""
        replayed = (
            f"{verdict.decisions:,} lists drawn again, {verdict.learnt:,} rounds learnt again, "
            f"{verdict.snapshots} snapshots{other}, state {verdict.state_hash[:16]}"
        )
        typer.echo(
            f"{verdict.ranker}: {told}. {verdict.rows:,} rows{earlier}{closed}, "
            f"{'nothing replayed' if digests else replayed}"
        )
        for problem in verdict.problems:
            typer.echo(f"  {problem}")
        good = good and verdict.holds
    if not good:
        raise typer.Exit(1)


def upgrade(
    ranker: RankerArgument = None,
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    segments: SegmentsOption = None,
    config: ConfigOption = None,
    refold: Annotated[
        bool,
        typer.Option(
            "--refold", help="Fold the whole log with this version, instead of going on from a snapshot."
        ),
    ] = False,
    allow: AllowOption = None,
) -> None:
    """Go on with a log that another version of an algorithm, or another arithmetic, has folded so far.

    Brings the tables to the present format as well. Stop the services that share the log first.

    [b]Examples[/b]

      rankloop upgrade --data my-rankers
    """
    allow_rankers(allow)
    from rankloop.serving.log.upgrade import upgrade as go_on

    failed: list[str] = []

    async def work(store: Store) -> None:
        for name in await chosen(store, ranker):
            try:
                typer.echo(await go_on(store, name, refold=refold))
            except ValueError as error:
                failed.append(name)
                typer.echo(f"{name}: {error}", err=True)

    with_store(make_store(data, database, schema, segments=segments), work)
    if failed:
        raise typer.Exit(1)
