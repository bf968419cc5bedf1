"""The command `rankloop fit-clicks`: its options, its progress, and errors that speak of options."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankloop.extras import require

if TYPE_CHECKING:
    from rankloop.data.clicks.files import Progress

# How Python names what the command line calls otherwise.
_OPTIONS = (
    (r"columns=\{'(\w+)': \.\.\.\}", r"--columns \1=NAME"),
    (r"\bfirst_position=(\d+)", r"--first-position \1"),
    (r"\bfirst_position must", "--first-position must"),
    (r"^columns must name any of", "--columns must name any of"),
    (r"^columns: ", "--columns: "),
    (r"^paths: ", ""),
    (r"^(query|top|positions|smoothing|format|engine) must", r"--\1 must"),
    (r"^memory_limit (must|is)", r"--memory-limit \1"),
    (r"^spill_to is", "--spill-to is"),
    (r'\bengine="duckdb"', "--engine duckdb"),
)


def fit_clicks(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Click logs: JSON lines, CSV or Parquet, plain, gzip or zstd; folders, patterns and s3:// too.",
        ),
    ],
    query: Annotated[
        str | None, typer.Option(help="Only this query.", show_default="all, with positions in common")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="Only so many items, those shown most often.", show_default="all")
    ] = None,
    positions: Annotated[
        int | None, typer.Option(help="Only so many positions, from the top.", show_default="all")
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            "--format", help="Of the log, such as yandex, ubi or baidu-ultr.", show_default="recognised"
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OURS=THEIRS", help="What a column of a table is called: item=sku. Repeat for several."
        ),
    ] = None,
    first_position: Annotated[
        int | None,
        typer.Option(help="What a table calls the top position.", show_default="1, or asked where in doubt"),
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Count more clicks than impressions as clicked every time.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(help="Folder for the counts of finished files, to go on after an interruption."),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="polars, or duckdb for tables with more different rows than memory holds.")
    ] = "polars",
    memory_limit: Annotated[
        str | None, typer.Option(help="Of duckdb, such as 2GB.", show_default="four fifths of the machine")
    ] = None,
    spill_to: Annotated[
        Path | None, typer.Option(help="Folder for what duckdb cannot hold.", show_default="a temporary one")
    ] = None,
    smoothing: Annotated[
        float,
        typer.Option(
            help="Impressions added to each item, so that estimates of rare items stay away from 0 and 1."
        ),
    ] = 1.0,
    model: Annotated[
        str | None,
        typer.Option(help="A click model by its short name, or all, to compare them on later pages."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for parameters and picture.")] = Path("results/clicks"),
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON, for programs.")] = False,
) -> None:
    """Estimate a click model from a log: what users like, and where they look.

    Prints it, draws it, and writes a parameter file that [b]environments.PositionBased.read[/b] takes. Without
    [b]--model[/b] it is the position-based model, from counts. With [b]--model all[/b] ten models are fitted to the
    first pages and compared on the later ones; the file is then one for [b]feedback.read_model[/b].

    [b]Examples[/b]

      rankloop fit-clicks clicks.jsonl.gz --query 9982_0 --top 10

      rankloop fit-clicks impressions.parquet --top 10 --positions 5 --out results/mine

      rankloop fit-clicks 'logs/*.csv.gz' --columns item=sku --columns position=slot --first-position 0

      rankloop fit-clicks pages.jsonl --model all

      rankloop fit-clicks impressions.csv --model all --columns page=serp
    """
    require("matplotlib", "polars", "pyarrow", extra="data,plot", for_="fit-clicks")
    from rich.console import Console

    from rankloop.cli import click_models
    from rankloop.cli.fit_clicks import fit_clicks as fit
    from rankloop.cli.fit_clicks import plain, tell, write
    from rankloop.data.clicks.files import find_files

    console = None if as_json else Console(file=sys.stdout, highlight=False)
    try:
        found_files = find_files(files)
        missing = [str(file) for file in found_files if isinstance(file, Path) and not file.is_file()]
        if missing:
            raise ValueError(f"there is no file {missing[0]}")
        reading = {"format": shape, "columns": named_columns(columns or ())}
        if model is not None:
            if clip or resume is not None or engine != "polars":
                raise ValueError(
                    "--clip, --resume and --engine are for counts, and --model reads pages: leave one of them out"
                )
            click_models.run(
                files,
                model,
                query=query,
                top=top,
                positions=positions,
                smoothing=smoothing,
                out=out,
                console=console,
                first_position=1 if first_position is None else first_position,
                **reading,
            )
            return
        found = fit(
            files,
            query=query,
            top=top,
            positions=positions,
            smoothing=smoothing,
            first_position=first_position,
            clip=clip,
            resume=resume,
            engine=engine,
            memory_limit=memory_limit,
            spill_to=spill_to,
            progress=_show if sys.stderr.isatty() else None,
            **reading,
        )
    except ValueError as error:
        raise ValueError(in_options(str(error))) from error
    parameters, picture = write(found, out)
    if console is None:
        typer.echo(json.dumps(plain(found), indent=2, ensure_ascii=False))
        return
    tell(found, console)
    typer.echo(f"Parameters: {parameters}")
    typer.echo(f"Picture: {picture}")


def named_columns(given: Sequence[str]) -> dict[str, str]:
    """Columns from ``item=sku``, of which one word may hold several between commas."""
    named: dict[str, str] = {}
    for word in (word for words in given for word in words.split(",")):
        ours, equals, theirs = word.partition("=")
        if not (ours and equals and theirs):
            raise ValueError(f"--columns must be OURS=THEIRS, such as item=sku, got {word!r}")
        named[ours] = theirs
    return named


def in_options(message: str) -> str:
    """A message about arguments of Python, in the words of the command line."""
    for python, option in _OPTIONS:
        message = re.sub(python, option, message)
    return message


def _show(progress: Progress) -> None:
    if progress.done == progress.total:
        sys.stderr.write("\r\x1b[K")
    else:
        left = progress.seconds_left
        time_left = f", {left / 60:.0f} min left" if 90 <= left < float("inf") else f", {left:.0f} s left"
        told = f"{progress.done / max(progress.total, 1):.0%} counted"
        sys.stderr.write(f"\r\x1b[K{told}{time_left if left < float('inf') else ''}: {progress.file.name}")
    sys.stderr.flush()
