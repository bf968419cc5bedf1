"""The command that gives a served ranker history to learn from."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rankloop.cli.service_store import (
    DATA,
    AllowOption,
    DatabaseOption,
    DataOption,
    SchemaOption,
    allow_rankers,
    make_store,
)
from rankloop.cli.settings import ConfigOption

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine
    from rankloop.serving.stores.contract import Store


class _Source(NamedTuple):
    """The files, and how they are read."""

    files: list[Path]
    shape: str | None
    columns: dict[str, str]
    first_position: int
    query: str | None
    history: str
    bad_rows: Counter[str]
    most_lists: int

    @property
    def words(self) -> str:
        """For the log."""
        return ", ".join(file.name for file in self.files)[:200]

    def lists(self, feedback: str) -> Iterator[dict[str, Any]]:
        """The lists, as the ranker takes them."""
        from rankloop.data import read_lists

        return read_lists(
            list(self.files),
            format=self.shape,
            columns=self.columns,
            first_position=self.first_position,
            query=self.query,
            feedback=feedback,
            bad_rows=self.bad_rows,
        )


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Click logs, tables of `rankloop export`, or one .npz file of a saved ranker.",
        ),
    ],
    ranker: Annotated[str, typer.Option("--to", metavar="RANKER", help="The ranker that is to learn.")],
    url: Annotated[
        str | None,
        typer.Option(
            help="Send it to a running service, instead of writing to its store.", show_default=False
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="An API key of an admin.", envvar="RANKLOOP_KEY", show_default=False)
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            "--format", help="Of the log, such as ubi, yandex or baidu-ultr.", show_default="recognised"
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OURS=THEIRS", help="What a column of a table is called: page=serp. Repeat for several."
        ),
    ] = None,
    first_position: Annotated[int, typer.Option(help="What a table calls the top position.")] = 1,
    query: Annotated[str | None, typer.Option(help="Only lists of this query.", show_default="all")] = None,
    simulate: Annotated[
        int,
        typer.Option(
            metavar="ROUNDS",
            help="Play so many rounds with users fitted to the log, and begin with what was learnt then.",
            show_default="learn from the log itself",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 1,
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="What to call the import, which counts once.",
            show_default="a digest of the files",
        ),
    ] = None,
    part: Annotated[int, typer.Option(min=1, help="How many lists go into one row of the log.")] = 10_000,
    data: DataOption = DATA,
    database: DatabaseOption = None,
    schema: SchemaOption = "rankloop",
    config: ConfigOption = None,
    allow: AllowOption = None,
) -> None:
    """Let a ranker learn from history: a click log, a UBI log, the export of another ranker, or a simulation.

    All of it is learnt, or nothing: after an interruption run the same command again. The same files again change
    nothing. Stop a service on a folder first, or name it with [b]--url[/b].

    [b]Examples[/b]

      rankloop import clicks.parquet --to front

      rankloop import ubi_queries.jsonl ubi_events.jsonl --format ubi --query shoes --to front

      rankloop import old.parquet --to new --url http://127.0.0.1:8000

      rankloop import clicks.parquet --to front --simulate 20000
    """
    allow_rankers(allow)
    from rankloop.extras import require

    require("polars", "pyarrow", extra="data", for_="rankloop import")
    from rankloop.serving.warm_start import digest_of_files

    for file in files:
        if not file.is_file():
            raise ValueError(f"there is no file {file}")
    renamed = dict(_pair(one) for one in columns or [])
    options = (part, shape, sorted(renamed.items()), first_position, query, simulate, seed if simulate else 0)
    history = name or digest_of_files(files, *options)
    source = _Source(files, shape, renamed, first_position, query, history, Counter(), part)
    is_state = simulate > 0 or files[0].suffix == ".npz"
    if url is not None:
        if is_state:
            raise ValueError("a state is written to the store: stop the service, and leave out --url")
        answer = _send(source, ranker, url, key)
    else:
        answer = _write(source, ranker, make_store(data, database, schema), rounds=simulate, seed=seed)
    _tell(source, ranker, answer, is_state=is_state)


def _pair(text: str) -> tuple[str, str]:
    ours, equals, theirs = text.partition("=")
    if not equals:
        raise ValueError(f"--columns must be OURS=THEIRS, got {text!r}")
    return ours, theirs


def _send(source: _Source, ranker: str, url: str, key: str | None) -> dict[str, Any]:
    from rankloop.extras import require

    require("httpx", extra="client", for_="rankloop import --url")
    from rankloop.serving.client import Client, RankloopError
    from rankloop.serving.warm_start import parts

    told: dict[str, Any] = {}
    with Client(url, key=key, timeout=120.0) as client, _progress() as show:
        try:
            feedback = client.ranker(ranker).feedback
            for lists, number, last in parts(show(source.lists(feedback)), most_lists=source.most_lists):
                answer = client.import_lists(
                    ranker, lists, history=source.history, part=number, last=last, source=source.words
                )
                told = vars(answer)
        except RankloopError as error:
            raise ValueError(str(error)) from None
    return told


def _write(source: _Source, ranker: str, store: Store, *, rounds: int, seed: int) -> dict[str, Any]:
    import msgspec

    from rankloop.serving.engine import Engine
    from rankloop.serving.errors import RequestError
    from rankloop.serving.stores.contract import StoreError

    async def work() -> dict[str, Any]:
        engine = Engine(store, housekeeping=False)
        await engine.open()
        try:
            answer = await _write_to(engine, source, ranker, rounds=rounds, seed=seed)
            return {} if answer is None else msgspec.structs.asdict(answer)
        finally:
            await engine.close()

    try:
        return asyncio.run(work())
    except RequestError as error:
        raise ValueError(error.message) from None
    except StoreError as error:
        raise ValueError(str(error)) from None


async def _write_to(engine: Engine, source: _Source, ranker: str, *, rounds: int, seed: int) -> Any:
    import msgspec

    from rankloop.serving.importing import ImportRequest, import_history
    from rankloop.serving.warm_start import parts, saved_state, simulated_state

    fold = (await engine.find_to_write(ranker)).fold
    state = None
    if source.files[0].suffix == ".npz":
        state = saved_state(fold, source.files[0])
    elif rounds:
        from rankloop.data import read_clicks

        log = read_clicks(
            list(source.files),
            format=source.shape,
            columns=source.columns,
            first_position=source.first_position,
        )
        state = simulated_state(fold, log.select(query=source.query), rounds=rounds, seed=seed)
    if state is not None:
        told = ImportRequest(state=state, history=source.history, source=source.words)
        return await import_history(engine, ranker, told)
    answer = None
    with _progress() as show:
        lists_of = show(source.lists(fold.ranker.feedback.kind))
        for lists, number, last in parts(lists_of, most_lists=source.most_lists):
            body = {"lists": lists, "history": source.history, "part": number, "last": last}
            request = msgspec.convert(body | {"source": source.words}, ImportRequest)
            answer = await import_history(engine, ranker, request)
    return answer


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[Iterable[Any]], Iterator[Any]]]:
    """Counts what passes through it, in one line of a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.completed:,.0f} lists"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("lists", total=None)

        def show(lists: Iterable[Any]) -> Iterator[Any]:
            for one in lists:
                bar.advance(task)
                yield one

        yield show


def _tell(source: _Source, ranker: str, answer: dict[str, Any], *, is_state: bool) -> None:
    for reason, count in source.bad_rows.items():
        typer.echo(f"left out while reading: {count:,} with {reason}", err=True)
    if not answer:
        raise ValueError(f"{source.words}: no list to learn from")
    if answer["status"] == "conflict":
        raise ValueError(f"{ranker}: nothing was learnt, because the ranker was changed meanwhile: try again")
    if answer["duplicate"]:
        typer.echo(f"{ranker}: has learnt from this already (row {answer['seq']}); nothing changed")
        return
    told = "rounds taken over" if is_state else "lists learnt"
    typer.echo(f"{ranker}: {answer['learnt']:,} {told} (row {answer['seq']})")
    for reason, count in answer["left_out"].items():
        typer.echo(f"left out: {count:,} with {reason}", err=True)
