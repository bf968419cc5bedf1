"""The commands about logs of clicks: `rankloop fit-clicks` and `rankloop evaluate`.

Each command imports what it needs when it is called, so that help is quick.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer import Argument, Option

from rankloop.cli.settings import FirstPosition, ResultAsJson, named_values, plain_console
from rankloop.extras import counted, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankloop.base import Ranker
    from rankloop.cli.click_reports import Report
    from rankloop.feedback import LoggedLists
    from rankloop.logs import Evaluation


ColumnsOption = Annotated[
    list[str] | None,
    Option(
        metavar="OURS=THEIRS", help="What a column of a table is called: item=article. Repeat for several."
    ),
]


@dataclass(frozen=True)
class Selection:
    """Which part of a log is read."""

    query: Annotated[
        str | None, Option(help="Only this query.", show_default="all, with positions in common")
    ] = None
    top: Annotated[
        int | None, Option(help="Only so many items, those shown most often.", show_default="all")
    ] = None
    positions: Annotated[
        int | None, Option(help="Only so many positions, from the top.", show_default="all")
    ] = None


@dataclass(frozen=True)
class Counting:
    """How the clicks of a log are counted."""

    clip: Annotated[
        bool, Option("--clip", help="Count more clicks than impressions as clicked every time.")
    ] = False
    # Polars counts every log: these are ignored, with a warning, and will go.
    resume: Annotated[Path | None, Option(hidden=True)] = None
    engine: Annotated[str, Option(hidden=True)] = "polars"
    memory_limit: Annotated[str | None, Option(hidden=True)] = None
    spill_to: Annotated[Path | None, Option(hidden=True)] = None


def fit_clicks(
    files: Annotated[
        list[str],
        Argument(
            metavar="FILE",
            help="Click logs: JSON lines, CSV or Parquet, plain, gzip or zstd; folders and patterns too.",
        ),
    ],
    *,
    selection: Selection,
    shape: Annotated[
        str | None,
        Option("--format", help="Of the log, such as yandex, ubi or baidu-ultr.", show_default="recognised"),
    ] = None,
    columns: ColumnsOption = None,
    first_position: Annotated[
        int | None,
        Option(help="What a table calls the top position.", show_default="1, or asked where in doubt"),
    ] = None,
    counting: Counting,
    smoothing: Annotated[
        float,
        Option(
            help="Impressions added to each item, so that estimates of rare items stay away from 0 and 1."
        ),
    ] = 1.0,
    model: Annotated[
        str | None, Option(help="A click model by its short name, or all, to compare them on later pages.")
    ] = None,
    out: Annotated[Path, Option(help="Folder for parameters and picture.")] = Path("results/clicks"),
    as_json: ResultAsJson = False,
) -> None:
    """Estimate a click model from a click log.

    What users like, and where they look.

    Prints it and writes a parameter file that [b]environments.PositionBased.read[/b] takes. Without [b]--model[/b] it
    is the position-based model, from counts, and is drawn, too; so it is with [b]--model pbm[/b] for a table without
    pages. With [b]--model all[/b] ten models are fitted to the first pages and compared on the later ones; the file is
    then one for [b]feedback.read_model[/b].

    [b]Examples[/b]

      rankloop fit-clicks clicks.jsonl.gz --query 9982_0 --top 10

      rankloop fit-clicks impressions.parquet --top 10 --positions 5 --out results/mine

      rankloop fit-clicks 'logs/*.csv.gz' --columns item=sku --columns position=slot --first-position 0

      rankloop fit-clicks pages.jsonl --model all

      rankloop fit-clicks impressions.csv --model all --columns page=serp
    """
    require("matplotlib", "polars", extra="data,plot", for_="fit-clicks")
    from rankloop.data.clicks import find_files

    try:
        paths: list[Any] = find_files(files)
        missing = [str(file) for file in paths if isinstance(file, Path) and not file.is_file()]
        if missing:
            raise ValueError(f"there is no file {missing[0]}")
        reading = {"format": shape, "columns": named_columns(columns or ()), "first_position": first_position}
        if model == "pbm" and not _has_pages(paths, reading):
            model = None  # counts are enough for it
        if model is None:
            report = _fit_counts(paths, selection, counting, smoothing, reading)
        elif counting.clip:
            raise ValueError("--clip is for counts, and --model reads pages: leave one of them out")
        else:
            report = _fit_pages(paths, selection, model, smoothing, reading)
    except ValueError as error:
        raise ValueError(in_options(error)) from error
    parameters, picture = report.write(out)
    if as_json:
        typer.echo(json.dumps(report.plain(), indent=2, ensure_ascii=False))
        return
    report.tell(plain_console())
    typer.echo(f"Parameters: {parameters}")
    if picture is not None:
        typer.echo(f"Picture: {picture}")


def _fit_counts(
    paths: list[Any], selection: Selection, counting: Counting, smoothing: float, reading: dict[str, Any]
) -> Report:
    from rankloop import data
    from rankloop.cli.click_reports import CountsReport

    ignored = (counting.resume, counting.memory_limit, counting.spill_to)
    if counting.engine != "polars" or any(one is not None for one in ignored):
        said = "--resume, --engine, --memory-limit and --spill-to are ignored: Polars counts every log"
        typer.echo(said, err=True)
    log = data.read_clicks(paths, clip=counting.clip, **reading)
    return CountsReport(log.select(**asdict(selection)), smoothing=smoothing)


def _has_pages(paths: list[Any], reading: dict[str, Any]) -> bool:
    """Whether each log says which impressions were one page; tables of impressions or counts need not."""
    from rankloop.data.click_tables import match_columns, read_header
    from rankloop.data.clicks import log_format

    kinds = [(path, reading["format"] or log_format(path)) for path in paths]
    return all(
        kind not in ("csv", "parquet")
        or "page" in match_columns(path, read_header(path, kind), reading["columns"])
        for path, kind in kinds
    )


def _fit_pages(
    paths: list[Any], selection: Selection, model: str, smoothing: float, reading: dict[str, Any]
) -> Report:
    from rankloop import data, logs
    from rankloop.arguments import one_of
    from rankloop.cli.click_reports import PagesReport

    if selection.top is not None:
        raise ValueError(
            "--top leaves out parts of pages, and --model needs whole ones: leave one of them out"
        )
    one_of("--model", model, (*logs.MODELS, "all"))
    if reading["first_position"] is None:
        reading = reading | {"first_position": 1}
    pages = data.read_sessions(paths, **reading)
    pages = pages.select(query=selection.query, positions=selection.positions)
    if model == "all":
        return PagesReport(pages, logs.MODELS, None, smoothing=smoothing)
    return PagesReport(pages, tuple(dict.fromkeys(("rcm", "rctr", model))), model, smoothing=smoothing)


def judgments(
    files: Annotated[
        list[str], Argument(metavar="FILE", help="Click logs with pages: UBI, JSON lines, CSV or Parquet.")
    ],
    *,
    model: Annotated[str, Option(help="A click model by its short name.")] = "dbn",
    form: Annotated[str, Option("--as", help="csv, workbench, quepid or letor.")] = "csv",
    out: Annotated[Path | None, Option(help="The file to write.", show_default="standard output")] = None,
    grades: Annotated[int, Option(help="The best rating; the worst is 0.")] = 3,
    least: Annotated[int, Option(help="Only items that were shown so often for a query.")] = 1,
    smoothing: Annotated[float, Option(help="Impressions added to each item.")] = 1.0,
    confidence: Annotated[float, Option(help="The level of the intervals.")] = 0.9,
    shape: Annotated[
        str | None, Option("--format", help="Of the log, such as yandex or ubi.", show_default="recognised")
    ] = None,
    columns: ColumnsOption = None,
    first_position: FirstPosition = 1,
) -> None:
    """Write how relevant results are, from clicks.

    By a click model, with intervals, beside clicks over expected clicks (COEC).

    [b]csv[/b] has it all. [b]workbench[/b] is what OpenSearch's Search Relevance Workbench imports as judgments,
    [b]quepid[/b] a CSV for Quepid, [b]letor[/b] lines for learning to rank, without features.

    [b]Examples[/b]

      rankloop judgments ubi_queries.ndjson ubi_events.ndjson --model dbn

      rankloop judgments ubi.ndjson --as workbench --least 20 --out judgments.json
    """
    require("polars", extra="data", for_="judgments")
    from rankloop import data, logs
    from rankloop.arguments import one_of
    from rankloop.logs.judgments import FORMS

    one_of("--as", form, FORMS)
    one_of("--model", model, [name for name in logs.MODELS if name not in ("rcm", "rctr")])
    if out is not None and not out.parent.is_dir():
        raise ValueError(f"cannot write {out}: there is no folder {out.parent}")
    try:
        named = named_columns(columns or ())
        pages = data.read_sessions(files, format=shape, columns=named, first_position=first_position)
        with warnings.catch_warnings():  # it tells them itself
            warnings.simplefilter("ignore", logs.ClickModelWarning)
            fit = logs.fit_model(pages, model, smoothing=smoothing, confidence=confidence)
        found = logs.Judgments.of(fit, least=least)
        text = found.text(form, grades=grades)
    except ValueError as error:
        raise ValueError(in_options(error)) from error
    for told in (
        str(pages),
        *(f"left out: {n:,} with {why}" for why, n in pages.bad_rows.items()),
        *fit.warnings,
    ):
        typer.echo(told, err=True)
    if out is None:
        typer.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8")
    n_queries = counted(len({query for query, _ in found.items}), "query")
    typer.echo(f"{out}: {counted(len(found.items), 'judgment')} of {n_queries}, by {model}")


def named_columns(texts: Sequence[str]) -> dict[str, str]:
    """Columns from ``item=sku``, of which one word may hold several between commas."""
    words = (word for text in texts for word in text.split(","))
    return dict(named_values("--columns", words, form="OURS=THEIRS, such as item=sku"))


# Arguments of Python that are options here.
_ARGUMENTS = {
    *("query", "top", "positions", "smoothing", "format", "columns", "first_position"),
    *("least", "grades", "confidence"),
}


def in_options(error: ValueError) -> str:
    """What is wrong with an argument of Python, in the words of the command line.

    >>> from rankloop.arguments import ArgumentError
    >>> in_options(ArgumentError("top", "top must be a whole number of at least 1, got 0"))
    '--top must be a whole number of at least 1, got 0'
    >>> in_options(ValueError("log.csv: no column for item; name it with columns={'item': ...}"))
    'log.csv: no column for item; name it with --columns item=NAME'
    """
    from rankloop.arguments import ArgumentError

    message = str(error)
    if isinstance(error, ArgumentError) and error.argument in _ARGUMENTS:
        message = f"--{error.argument.replace('_', '-')}{message.removeprefix(error.argument)}"
    message = message.removeprefix("paths: ").replace("columns={'", "--columns ")
    message = message.replace("': ..., '", "=NAME,").replace("': ...}", "=NAME")
    return message.replace("first_position=", "--first-position ")


class Answer(NamedTuple):
    """What one estimator says of one ranker, or why it does not."""

    ranker: str
    value: Evaluation | None
    words: str

    def sentence(self, unit: str) -> str:
        """The estimate with all that it stands on."""
        if (value := self.value) is None:
            return self.words
        words = (
            f"{value.value:.4f} {unit}, {value.confidence:.0%} interval {value.low:.4f} to {value.high:.4f}"
        )
        words += f", effective size {value.effective_size:,.0f} of {value.n_rows:,}"
        if value.draw_error:
            error, of_lists = value.standard_error, value.draw_error
            words += f", standard error {error:.4f} of which drawing lists is {of_lists:.4f}"
        if value.bias:
            words += f", of which clipping may be {value.bias:.4f}"
        return words + (f"; warning: {self.words}" if self.words else "")


def unit_of(lists: LoggedLists) -> str:
    """What the numbers count: in a table each row is one item at its position."""
    one_by_one = lists.items.shape[1] == 1 and lists.n_positions > 1
    return "clicks per impression" if one_by_one else "clicks per list"


def plain_answers(answers: list[Answer], lists: LoggedLists, estimator: str) -> dict[str, Any]:
    """The estimates for programs."""
    names = ("value", "low", "high", "standard_error", "effective_size", "mean_weight", "bias", "draw_error")
    return {
        "log": lists.name,
        "rows": lists.n_rows,
        "queries": lists.n_queries,
        "unit": unit_of(lists),
        "estimator": estimator,
        "rankers": [
            {"ranker": answer.ranker, "words": answer.words}
            | ({} if answer.value is None else {name: getattr(answer.value, name) for name in names})
            for answer in answers
        ],
    }


def evaluate(
    log: Annotated[
        Path, Argument(metavar="LOG", help="Lists with propensities: JSON lines, CSV or Parquet.")
    ],
    ranker: Annotated[
        list[str],
        Option(
            metavar="RANKER",
            help="A saved ranker's file, a ranker by its name, or items such as 3,1,2 (for a log with features: weights"
            " of features such as 0.5,-1.2); repeatable.",
        ),
    ],
    estimator: Annotated[
        str, Option(help="ips, self-normalised, item-position, doubly-robust or switch.")
    ] = "doubly-robust",
    confidence: Annotated[float, Option(help="The level of the intervals.")] = 0.95,
    query: Annotated[
        str | None, Option(help="Only lists of this query.", show_default="all, together")
    ] = None,
    shape: Annotated[
        str | None,
        Option("--format", help="Of the log: jsonl, csv, parquet or ubi.", show_default="recognised"),
    ] = None,
    columns: ColumnsOption = None,
    first_position: FirstPosition = 1,
    explore: Annotated[
        bool,
        Option(
            "--explore/--no-explore",
            help="Lists as a ranker draws them, or the order that it estimates to be best (for a log with features).",
        ),
    ] = True,
    seed: Annotated[int, Option(help="Seed of the rankings that a ranker is asked for.")] = 0,
    as_json: ResultAsJson = False,
) -> None:
    """Estimate from a log what other rankers would have earned.

    In clicks per list.

    The log must have the chance with which each list, or each item at its position, was shown. Where it rarely shows
    what a ranker would, there is no number but a sentence. The items of a saved ranker are numbered as in the log:
    those that occur, shorter names first, then by the alphabet. Lists may bring features: JSON lines with the fields
    candidates and features, for rankers of lists with features. In a table without features each row is an item at
    its position, and counts alone: the numbers are then clicks per impression. JSON lines give clicks per list.

    [b]Examples[/b]

      rankloop evaluate shown.jsonl --ranker Uniform --ranker ranker.npz

      rankloop evaluate shown.csv --ranker 3,1,2 --estimator switch --json

      rankloop evaluate documents.jsonl --ranker pdgd.npz --ranker 0.5,-1.2 --no-explore
    """
    require("polars", extra="data", for_="evaluate")
    from rankloop import data, logs
    from rankloop.arguments import one_of
    from rankloop.logs.off_policy import ESTIMATORS

    if not log.exists():
        raise ValueError(f"there is no file {log}")
    one_of("estimator", estimator, ESTIMATORS)
    try:
        named = named_columns(columns or ())
        lists = data.read_logged_lists(
            log, format=shape, columns=named, first_position=first_position, query=query
        )
    except ValueError as error:
        raise ValueError(in_options(error)) from error
    answers = [Answer("as logged", logs.on_policy(lists, confidence=confidence), "")]
    how = {"estimator": estimator, "confidence": confidence, "explore": explore, "seed": seed}
    answers += [_value(text, lists, how) for text in ranker]
    if as_json:
        typer.echo(json.dumps(plain_answers(answers, lists, estimator), indent=2, ensure_ascii=False))
        return
    typer.echo(str(lists))
    if lists.n_queries > 1:
        typer.echo(f"All {lists.n_queries:,} queries together; --query NAME takes one.")
    width = max(len(answer.ranker) for answer in answers)
    for answer in answers:
        typer.echo(f"{answer.ranker:<{width}}  {answer.sentence(unit_of(lists))}")


def _value(text: str, lists: LoggedLists, how: dict[str, Any]) -> Answer:
    from rankloop import logs

    policy = _policy(text, lists)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", logs.PropensityWarning)
        try:
            value = logs.evaluate(lists, policy, **how)
        except logs.TooFewSamples as refusal:
            return Answer(text, None, f"cannot tell: {refusal}")
        except ValueError as error:
            raise ValueError(f"--ranker {text}: {error}") from None
    words = [str(one.message) for one in caught if issubclass(one.category, logs.PropensityWarning)]
    return Answer(text, value, "; ".join(words))


def _policy(text: str, lists: LoggedLists) -> Ranker | list[int] | NDArray[np.int64]:
    from rankloop.rankers.registry import find, load

    if Path(text).is_file():
        return load(text)
    if text.endswith(".npz"):
        raise ValueError(f"--ranker {text}: there is no such file")
    if "," in text:
        return _items(text, lists) if lists.features is None else _by_weights(text, lists)
    kind: Any = find(text)
    known = inspect.signature(kind).parameters
    if lists.features is None:
        sizes, what = {"n_items": lists.n_items, "n_positions": lists.n_positions}, "items and positions"
    else:
        sizes, what = {"n_features": lists.features.n_features}, "features and positions"
        if "n_items" not in known:  # which must go with the number of positions
            sizes["n_positions"] = lists.n_positions
        sizes = {name: size for name, size in sizes.items() if name in known}
    try:
        policy: Ranker = kind(**sizes)
    except TypeError as error:
        raise ValueError(
            f"--ranker {text}: it needs more than {what}; save it from Python and give its file ({error})"
        ) from error
    return policy


def _items(text: str, lists: LoggedLists) -> list[int]:
    number = {name: i for i, name in enumerate(lists.item_ids)}
    unknown = [name for name in text.split(",") if name not in number]
    if unknown:
        raise ValueError(f"--ranker {text}: the log has no item {unknown[0]!r}")
    return [number[name] for name in text.split(",")]


def _by_weights(text: str, lists: LoggedLists) -> NDArray[np.int64]:
    """The documents of each list by the weighed sum of their features, best first."""
    import numpy as np

    requests = lists.features
    assert requests is not None
    try:
        weights = np.array([float(one) for one in text.split(",")])
    except ValueError:
        weights = np.empty(0)
    if len(weights) != requests.n_features:
        raise ValueError(f"--ranker {text}: must be {requests.n_features} weights, one for each feature")
    top = np.full((lists.n_rows, lists.n_positions), -1, np.int64)
    for row in range(lists.n_rows):
        order = np.argsort(-(requests[row] * weights).sum(axis=1), kind="stable")[: lists.n_positions]
        top[row, : len(order)] = order
    return top
