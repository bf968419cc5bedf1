"""The commands about the data of a service: its log checked, copied, trimmed, erased, exported, imported, replayed.

Everything heavy is imported when a command is called.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rankloop.cli.service_store import (
    LiveStoreOptions,
    StoreOptions,
    allow_rankers,
    ask_service,
    chosen,
    now,
)
from rankloop.cli.settings import (
    DATA,
    AllowOption,
    DataOption,
    FirstPosition,
    KeyOption,
    UrlOption,
    named_values,
    read_values,
    service_option,
)
from rankloop.extras import counted, require

if TYPE_CHECKING:
    from rankloop.serving.api import ImportAnswer
    from rankloop.serving.client import Client
    from rankloop.serving.engine import Engine
    from rankloop.serving.stores.contract import Store


class SearchEngine(StrEnum):
    """What a model is written for."""

    LTR = "ltr"
    SOLR = "solr"


RankerArgument = Annotated[str | None, Argument(metavar="RANKER", help="One ranker.", show_default="all")]


def verify(
    ranker: RankerArgument = None,
    *,
    place: StoreOptions,
    digests: Annotated[
        bool, Option("--digests", help="Check digests, numbers and times only, and replay nothing.")
    ] = False,
    allow: AllowOption = None,
) -> None:
    """Check digests, replay the log, draw every list again.

    The log is replayed from its beginning and from each snapshot.

    Segments of closed history and the live log are one log. Exits with 1 when something differs, and names it. May
    run beside the service.
    """
    allow_rankers(allow)
    from rankloop.serving.log.verify import verify as replay_all

    async def look(store: Store) -> tuple[list[str], list[str], list[Any]]:
        wrong = await store.problems()
        names = await chosen(store, ranker)
        verdicts = [await replay_all(store, name, replay=not digests) for name in names]
        return await store.given_up(), wrong, verdicts

    given_up, wrong, verdicts = place.read(look)
    for loss in given_up:
        typer.echo(f"the store goes on without {loss}")
    for problem in wrong:
        typer.echo(f"the store: {problem}")
    for verdict in verdicts:
        word = "adds up" if verdict.holds else f"DOES NOT ADD UP, {verdict.n_problems} problems"
        other = f" ({verdict.other_code} of other code left out)" if verdict.other_code else ""
        earlier = f" ({verdict.earlier:,} of an earlier version, not replayed)" if verdict.earlier else ""
        closed = f", {verdict.segments:,} segments" if verdict.segments else ""
        replayed = (
            f"{verdict.decisions:,} lists drawn again, {verdict.learnt:,} rounds learnt again, "
            f"{verdict.snapshots} snapshots{other}, state {verdict.state_hash[:16]}"
        )
        typer.echo(
            f"{verdict.ranker}: {word}. {verdict.rows:,} rows{earlier}{closed}, "
            f"{'nothing replayed' if digests else replayed}"
        )
        for problem in verdict.problems:
            typer.echo(f"  {problem}")
    if wrong or not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def accept_loss(*, data: DataOption = DATA) -> None:
    """Go on without acknowledged rows that are gone.

    The store was put back, or has lost its end.

    Until then nothing serves such a store. [b]verify[/b] tells of the loss from then on. Look for a newer file first.

    [b]Examples[/b]

      rankloop accept-loss --data my-rankers
    """
    from rankloop.serving.stores.sqlite import SQLiteStore

    async def work() -> list[str]:
        store = SQLiteStore(data, accept_loss=True)
        if not data.exists():
            raise ValueError(f"there is no store in {data}")
        await store.open()
        try:
            return await store.given_up()
        finally:
            await store.close()

    for loss in asyncio.run(work()) or ["nothing: all that was acknowledged is there"]:
        typer.echo(f"the store goes on without {loss}")


def upgrade(
    ranker: RankerArgument = None,
    *,
    place: StoreOptions,
    refold: Annotated[
        bool,
        Option("--refold", help="Fold the whole log with this version, instead of going on from a snapshot."),
    ] = False,
    allow: AllowOption = None,
) -> None:
    """Go on with a log of another version of an algorithm.

    Or of another arithmetic.

    Brings the tables to the present format as well. Stop the services that share the log first.

    [b]Examples[/b]

      rankloop upgrade --data my-rankers
    """
    allow_rankers(allow)
    from rankloop.serving.log.snapshots import upgrade as go_on

    failed: list[str] = []

    async def work(store: Store) -> None:
        for name in await chosen(store, ranker):
            try:
                typer.echo(await go_on(store, name, refold=refold))
            except ValueError as error:
                failed.append(name)
                typer.echo(f"{name}: {error}", err=True)

    place.change(work)
    if failed:
        raise typer.Exit(1)


def backup(
    to: Annotated[Path, Argument(metavar="FOLDER", help="Where the copy goes: a new folder.")],
    *,
    place: StoreOptions,
) -> None:
    """Copy a store at one moment, while the service runs.

    Log, segments, snapshots and API keys.

    Every digest of the copy is checked. It is a store itself: `rankloop verify --data FOLDER` replays it, and
    `rankloop serve --data FOLDER` serves it.

    [b]Examples[/b]

      rankloop backup copies/monday --data my-rankers

      rankloop backup copies/monday --database postgresql://localhost/rankers
    """
    from rankloop.serving.stores.backup import backup as copy

    place.read(partial(copy, folder=to))
    typer.echo(f"{to}: {_check(StoreOptions(to))}")


def restore(
    copy: Annotated[Path, Argument(metavar="FOLDER", help="A copy that `rankloop backup` made.")],
    *,
    place: StoreOptions,
) -> None:
    """Put a copy into a new folder or an empty database.

    Its digests are checked there. A database must have no rankers.

    A folder's copy may go into a database, and a database's into a folder. What was acknowledged after the copy is
    not in it.

    [b]Examples[/b]

      rankloop restore copies/monday --data my-rankers

      rankloop restore copies/monday --database postgresql://localhost/rankers
    """
    from rankloop.serving.stores.backup import restore as put_back

    contents = _check(StoreOptions(copy))
    asyncio.run(put_back(copy, place.one(create=True)))
    if _check(place) != contents:
        raise ValueError("what was restored is not what is in the copy")
    typer.echo(f"{'the database' if place.database else place.data}: {contents}")


def _check(place: StoreOptions) -> str:
    """What is in a store, in words; ValueError where a digest of it differs."""
    from rankloop.serving.log.verify import verify

    async def look(store: Store) -> tuple[int, int]:
        problems = [f"the store: {problem}" for problem in await store.problems()]
        rows, names = 0, [*await store.rankers(), *await store.archived()]
        for name in names:
            verdict = await verify(store, name, replay=False)
            problems += [f"{name}: {problem}" for problem in verdict.problems]
            rows += verdict.rows
        if problems:
            raise ValueError(f"the copy is damaged: {'; '.join(problems[:5])}")
        return len(names), rows

    rankers, rows = place.read(look)
    return f"{counted(rankers, 'ranker')}, {rows:,} rows, every digest holds"


def trim(
    ranker: RankerArgument = None,
    retain: Annotated[
        str,
        service_option(
            "retain",
            "How much of each log stays live, such as 500000 (rows) or 7d.",
            metavar="ROWS or TIME",
        ),
    ] = "7d",
    *,
    place: StoreOptions,
    allow: AllowOption = None,
) -> None:
    """Move closed history to Parquet files, give space back.

    Closed are lists that are answered or expired.

    Nothing is lost: verify, export and the service read segments and live log as one. A running service does this by
    itself, with [b]serve --retain[/b]; beside a service on a folder this command has to wait until it is stopped.

    [b]Examples[/b]

      rankloop trim --retain 7d --data my-rankers

      rankloop trim --retain 100000 --database postgresql://localhost/rankers --segments /shared/segments
    """
    allow_rankers(allow)
    from rankloop.serving.retention import close_history, read_retention

    retention = read_retention(retain)

    async def work(store: Store) -> None:
        for name in await chosen(store, ranker):
            rows = files = 0
            until = await store.time(name, at=now())
            while segment := await close_history(store, name, retention, now=until):
                rows, files = rows + segment.rows, files + 1
            closed = await store.history(name)
            live = await store.last_seq(name) - (closed.through if closed is not None else 0)
            typer.echo(f"{name}: {rows:,} rows moved to {files} segments, {live:,} rows stay live")
        await store.give_space_back()

    place.change(work)


def erase(
    subject: Annotated[str, Option(help="The data subject, as requests named it.")],
    *,
    place: LiveStoreOptions,
) -> None:
    """Make the context of a data subject unreadable.

    Its keys are destroyed: the context of its lists can be read no more, in the log and in segments.

    What was learnt stays, and [b]verify[/b] still holds. May run beside the service, which forgets the key within a
    minute. Copies have keys of their own: give the command for each of them, too.

    [b]Examples[/b]

      rankloop erase --subject user-4711

      rankloop erase --subject user-4711 --data copies/monday
    """

    async def work(store: Store) -> int:
        return await store.erase_subject(subject, at=now())

    n_keys = place.change(work, own=False)
    if not n_keys:
        typer.echo("there is no key of this subject: nothing to erase")
        return
    typer.echo(f"{counted(n_keys, 'key')} destroyed")


def export(
    ranker: Annotated[str, Argument(metavar="RANKER", help="Whose log.")],
    parquet: Annotated[
        Path | None, Option(help="A table to write, with a row for each position with feedback.")
    ] = None,
    ubi: Annotated[
        Path | None, Option(help="Lines of UBI to write, as a bulk request of a search engine takes them.")
    ] = None,
    *,
    place: StoreOptions,
    allow: AllowOption = None,
) -> None:
    """Write the log with propensities.

    As a table, or as documents of User Behavior Insights.

    [b]Examples[/b]

      rankloop export unwind --parquet unwind.parquet

      rankloop export shop --ubi shop.ndjson
    """
    allow_rankers(allow)
    from rankloop.serving.log.export import export as write
    from rankloop.serving.log.export import export_ubi

    if parquet is None and ubi is None:
        raise ValueError("name a file to write with --parquet or --ubi")

    async def look(store: Store) -> list[str]:
        (name,) = await chosen(store, ranker)
        done = []
        for path, export_to, unit in ((parquet, write, "row"), (ubi, export_ubi, "list")):
            if path is not None:
                n = await export_to(store, name, path, tell=lambda problem: typer.echo(problem, err=True))
                done.append(f"{path}: {counted(n, unit)}")
        return done

    for line in place.read(look):
        typer.echo(line)


def export_model(
    ranker: Annotated[str, Argument(metavar="RANKER", help="Whose weights.")],
    engine: Annotated[
        SearchEngine, Option("--for", help="The plugin of Elasticsearch and OpenSearch, or Solr.")
    ] = SearchEngine.LTR,
    features: Annotated[
        str | None,
        Option(
            metavar="NAMES",
            help="What the engine calls the features, with commas between them, in the ranker's order.",
            show_default="feature_names of the ranker",
        ),
    ] = None,
    scales: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="JSON: how features were scaled before they came here, by name: mean and standard_deviation, or "
            "minimum and maximum.",
            show_default="they are those of the engine",
        ),
    ] = None,
    model: Annotated[
        str | None, Option(metavar="NAME", help="What to call it.", show_default="RANKER")
    ] = None,
    *,
    place: StoreOptions,
    allow: AllowOption = None,
) -> None:
    """Write a learnt linear ranker as a model of a search engine.

    May run beside the service. The engine computes in float32, and explores no more.

    [b]Examples[/b]

      rankloop export-model shop --features bm25,stars,price > model.json

      rankloop export-model shop --for solr --features bm25,stars,price > model.json
    """
    allow_rankers(allow)
    from rankloop.export_model import ltr_model, solr_model
    from rankloop.serving.served_ranker import ServedRanker

    async def look(store: Store) -> tuple[Any, str, list[str]]:
        (name,) = await chosen(store, ranker)
        fold = (await ServedRanker.load(name, store)).fold
        return fold.ranker.weights_now(), fold.config.algorithm, fold.stored.feature_names

    weights, algorithm, named = place.read(look)
    if weights is None:
        raise ValueError(f"RANKER must be a linear ranker, {ranker!r} is {algorithm}, which has no weights")
    names = named if features is None else [name.strip() for name in features.split(",")]
    if len(names) != len(weights):
        raise ValueError(
            f"--features must be {len(weights)} names, got {len(names)}: {', '.join(names) or 'none'}"
        )
    read = None if scales is None else _scales(scales)
    write = solr_model if engine is SearchEngine.SOLR else ltr_model
    typer.echo(json.dumps(write(model or ranker, weights, names, scales=read), indent=2))


def _scales(path: Path) -> dict[str, dict[str, float]]:
    try:
        read = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"--scales must be a file of JSON: {error}") from None
    if not isinstance(read, dict) or not all(isinstance(one, dict) for one in read.values()):
        raise ValueError(f"--scales must have an object for each feature by name, got {read!r:.200}")
    return read


def replay(
    ranker: Annotated[str, Argument(metavar="NAME", help="Whose log.")],
    other: Annotated[
        str, Option("--ranker", help="The algorithm to play on it: a name, or package.module:Class.")
    ],
    *,
    place: StoreOptions,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A parameter of the algorithm; repeatable."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        Option(
            "--log-ranker",
            metavar="PACKAGE.MODULE:CLASS",
            help="The ranker that wrote the log, where it is one of your own; repeatable.",
        ),
    ] = None,
) -> None:
    """Estimate how another ranker would have done on a log.

    From the lists on which the two agree.

    [b]Examples[/b]

      rankloop replay unwind --ranker RTop1F --set measure=sum_loss
    """
    allow_rankers([*(allow or []), *([other] if ":" in other else [])])
    from rankloop.serving.log.export import replay as play

    parameters = read_values("--set", settings)

    async def look(store: Store) -> Any:
        (name,) = await chosen(store, ranker)
        return await play(store, name, other=other, parameters=parameters)

    estimate = place.read(look)
    typer.echo(f"{estimate.rounds:,} lists with feedback, mean value {estimate.logged:.4f} as logged")
    if estimate.value is None:
        typer.echo(f"{estimate.other}: no estimate, because it never agrees with the log")
        return
    typer.echo(
        f"{estimate.other}: {estimate.value:.4f} (95% from {estimate.low:.4f} to {estimate.high:.4f}), "
        f"{estimate.matches:,} matches"
    )


@dataclass(frozen=True)
class ImportOptions:
    """How the files of an import are read, and what it is called."""

    shape: Annotated[
        str | None,
        Option("--format", help="Of the log, such as ubi, yandex or baidu-ultr.", show_default="recognised"),
    ] = None
    columns: Annotated[
        list[str] | None,
        Option(
            metavar="OURS=THEIRS", help="What a column of a table is called: page=serp. Repeat for several."
        ),
    ] = None
    first_position: FirstPosition = 1
    query: Annotated[str | None, Option(help="Only lists of this query.", show_default="all")] = None
    simulate: Annotated[
        int,
        Option(
            metavar="ROUNDS",
            help="Play so many rounds with users fitted to the log, and begin with what was learnt then.",
            show_default="learn from the log itself",
        ),
    ] = 0
    seed: Annotated[int, Option(help="Of the simulation.")] = 1
    name: Annotated[
        str | None,
        Option(
            "--as",
            metavar="NAME",
            help="What to call the import, which counts once.",
            show_default="a digest of the files",
        ),
    ] = None
    part: Annotated[int, Option(min=1, help="How many lists go into one row of the log.")] = 10_000


def import_(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE",
            help="Click logs, tables of `rankloop export`, or one .npz file of a saved ranker.",
        ),
    ],
    ranker: Annotated[str, Option("--to", metavar="RANKER", help="The ranker that is to learn.")],
    url: UrlOption = None,
    key: KeyOption = None,
    *,
    options: ImportOptions,
    place: LiveStoreOptions,
    allow: AllowOption = None,
) -> None:
    """Let a ranker learn from history.

    A click log, a UBI log, the export of another ranker, or a simulation.

    All of it is learnt, or nothing: after an interruption run the same command again. The same files again change
    nothing. Stop a service on a folder first, or name it with [b]--url[/b].

    [b]Examples[/b]

      rankloop import clicks.parquet --to front

      rankloop import ubi_queries.jsonl ubi_events.jsonl --format ubi --query shoes --to front

      rankloop import old.parquet --to new --url http://127.0.0.1:8000

      rankloop import clicks.parquet --to front --simulate 20000
    """
    allow_rankers(allow)
    require("polars", extra="data", for_="rankloop import")

    for file in files:
        if not file.is_file():
            raise ValueError(f"there is no file {file}")
    history = _History(files, options)
    if url is None:
        answer = place.with_engine(partial(_write, history=history, ranker=ranker))
    elif history.is_state:
        raise ValueError("a state is written to the store: stop the service, and leave out --url")
    else:
        answer = ask_service(url, key, partial(_send, history=history, ranker=ranker))
    _tell_import(history, ranker, answer)


@dataclass
class _History:
    """The files of an import, and how they are read."""

    files: list[Path]
    options: ImportOptions
    columns: dict[str, str] = field(init=False)
    name: str = field(init=False)
    bad_rows: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        from rankloop.serving.history_import import digest_of_files

        chosen = self.options
        self.columns = dict(named_values("--columns", chosen.columns or (), form="OURS=THEIRS"))
        self.name = chosen.name or digest_of_files(
            self.files,
            chosen.part,
            chosen.shape,
            sorted(self.columns.items()),
            chosen.first_position,
            chosen.query,
            chosen.simulate,
            chosen.seed if chosen.simulate else 0,
        )

    @property
    def source(self) -> str:
        """For the log."""
        return ", ".join(file.name for file in self.files)[:200]

    @property
    def is_state(self) -> bool:
        """Whether it is what a ranker has learnt elsewhere, and not lists to learn from."""
        return self.options.simulate > 0 or self.files[0].suffix == ".npz"

    def parts(self, feedback: str) -> Iterator[tuple[list[Any], int, bool]]:
        """The lists, as the ranker takes them, for one row of the log each time."""
        from rankloop.data import read_lists
        from rankloop.serving.history_import import parts

        lists = read_lists(
            list(self.files),
            format=self.options.shape,
            columns=self.columns,
            first_position=self.options.first_position,
            query=self.options.query,
            feedback=feedback,
            bad_rows=self.bad_rows,
        )
        yield from parts(_shown(lists), most_lists=self.options.part)


def _send(client: Client, *, history: _History, ranker: str) -> ImportAnswer | None:
    answer = None
    for lists, part, last in history.parts(client.ranker(ranker).feedback):
        source = history.source
        answer = client.import_lists(ranker, lists, history=history.name, part=part, last=last, source=source)
    return answer


async def _write(engine: Engine, *, history: _History, ranker: str) -> ImportAnswer | None:
    import msgspec

    from rankloop.data import read_clicks
    from rankloop.serving.history_import import ImportRequest, import_history, saved_state, simulated_state

    fold = (await engine.find_to_write(ranker)).fold
    if history.is_state:
        options = history.options
        if history.files[0].suffix == ".npz":
            state = saved_state(fold, history.files[0])
        else:
            log = read_clicks(
                list(history.files),
                format=options.shape,
                columns=history.columns,
                first_position=options.first_position,
            ).select(query=options.query)
            state = simulated_state(fold, log, rounds=options.simulate, seed=options.seed)
        request = ImportRequest(state=state, history=history.name, source=history.source)
        return await import_history(engine, ranker, request)
    answer = None
    for lists, number, last in history.parts(fold.ranker.feedback.kind):
        body = {"lists": lists, "history": history.name, "part": number, "last": last}
        request = msgspec.convert(body | {"source": history.source}, ImportRequest)
        answer = await import_history(engine, ranker, request)
    return answer


def _shown(lists: Iterable[Any]) -> Iterable[Any]:
    """The same, while a line of the terminal shows that they pass."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(lists, "lists", console=console, transient=True, disable=not console.is_terminal)


def _tell_import(history: _History, ranker: str, answer: ImportAnswer | None) -> None:
    for reason, count in history.bad_rows.items():
        typer.echo(f"left out while reading: {count:,} with {reason}", err=True)
    if answer is None:
        raise ValueError(f"{history.source}: no list to learn from")
    if answer.status == "conflict":
        raise ValueError(f"{ranker}: nothing was learnt, because the ranker was changed meanwhile: try again")
    if answer.duplicate:
        typer.echo(f"{ranker}: has learnt from this already (row {answer.seq}); nothing changed")
        return
    unit = "rounds taken over" if history.is_state else "lists learnt"
    typer.echo(f"{ranker}: {answer.learnt:,} {unit} (row {answer.seq})")
    for reason, count in answer.left_out.items():
        typer.echo(f"left out: {count:,} with {reason}", err=True)
