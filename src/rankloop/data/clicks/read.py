"""Reads click logs of any known format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rankloop.arguments import one_of, whole
from rankloop.data.clicks.files import Pace, Progress, find_files
from rankloop.data.clicks.remote import RemoteFile, local_copy
from rankloop.data.text_files import broken_file_named, open_bytes
from rankloop.extras import require

if TYPE_CHECKING:
    from rankloop.data.clicks.spilling import Spilling
    from rankloop.feedback import ClickLog

FORMATS = ("jsonl", "tiangong", "csv", "parquet")
_BY_PAGE = ("yandex", "ubi", "baidu-ultr")  # read as pages, then counted
_TABLES = ("open-bandit", "kdd-cup-2012")
# Track 2 of the KDD Cup 2012 has no header.
_KDD_CUP = (
    *("clicks", "shown", "display_url", "item", "advertiser", "depth"),
    *("position", "query", "keyword", "title", "description", "user"),
)


def read_clicks(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    first_position: int | None = None,
    clip: bool = False,
    resume: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    engine: str = "polars",
    memory_limit: str | None = None,
    spill_to: str | Path | None = None,
    name: str | None = None,
) -> ClickLog:
    r"""Count the clicks of a log, plain, gzip or zstd, by query, item and position.

    The log is read a piece at a time and never held: memory grows with the different (query, item, position) in it,
    not with its rows. Bad rows, such as a click on an id that was not shown, are left out, counted and reported in
    `bad_rows`, and the clicks on them in `bad_clicks`.

    Parameters
    ----------
    paths : str, Path or sequence of str or Path
        A file, a folder, a pattern such as ``"logs/*.parquet"``, or several of them; each file in one of four formats.
        JSON lines, a result page each: ``{"query": ...,
        "shown": [ids], "clicked": [ids]}``, or with other usual names for the fields. TianGong-ST's pages,
        cells between tabs. CSV, Parquet or JSON lines with a row for each impression (columns item, position, click,
        and query where there are several), or with counts (item, position, shown, clicks). Paths of object stores, such
        as ``"s3://bucket/logs/*.parquet"``, need the extra ``remote`` and the package of the store, such as s3fs; their
        files are copied to a temporary folder one at a time.
    format : str, optional
        ``"jsonl"``, ``"tiangong"``, ``"csv"`` or ``"parquet"``; by default recognised by the first bytes. Or that of a
        published log: ``"open-bandit"``, ``"kdd-cup-2012"`` (track 2), or ``"yandex"``, ``"ubi"`` and ``"baidu-ultr"``,
        which `read_sessions` describes.
    columns : mapping of str to str, optional
        For tables whose columns have names of their own: ``{"item": "sku"}``.
    first_position : int, optional
        What a table calls the top position. By default 1, unless rows at position 0 make it doubtful: then it asks.
    clip : bool, optional
        Count rows of counts with more clicks than impressions as clicked every time, instead of leaving them out.
    resume : str or Path, optional
        A folder for the counts of finished files: the same call goes on there after an interruption.
    progress : callable, optional
        Called with a `Progress` after each file, or each part of a large one.
    engine : str, optional
        ``"polars"``, or ``"duckdb"`` for tables with more different rows than memory holds; it needs the extra
        ``duckdb``, is slower, and counts the same.
    memory_limit : str, optional
        Of DuckDB, such as ``"2GB"``; by default its own, four fifths of the machine.
    spill_to : str or Path, optional
        The folder for what DuckDB cannot hold; by default a temporary one.
    name : str, optional
        What to call the log; by default the name of the first file.

    Returns
    -------
    ClickLog
        The counts.

    Raises
    ------
    ValueError
        For a file of another format, and for one without a valid row.

    Examples
    --------
    >>> import tempfile
    >>> from rankloop import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pages.jsonl"
    ...     good, bad = ('{"q": "cat", "docs": [7, 9], "clicks": [%d]}' % id for id in (9, 8))
    ...     _ = path.write_text(f"{good}\n{bad}\n")
    ...     log = data.read_clicks(path)
    >>> log
    ClickLog('pages': 1 query, 2 items, 2 positions, 1 row, 1 click; 1 bad row left out)
    >>> dict(log.bad_rows)
    {'a click on an id that was not shown': 1}
    """
    require("polars", "pyarrow", extra="data", for_="reading a click log")
    from rankloop.data.clicks import finished, pages, tables
    from rankloop.data.clicks import tally as click_tally
    from rankloop.data.clicks.json_tables import is_json_table

    files = find_files(paths)
    first = None if first_position is None else whole("first_position", first_position, at_least=0)
    if format is not None:
        one_of("format", format, (*FORMATS, *_TABLES, *_BY_PAGE))
    spilling = _spilling(engine, memory_limit, spill_to)
    if format in _BY_PAGE:
        from rankloop.data.read_sessions import read_sessions

        return read_sessions(paths, format=format, name=name).count()
    options = {"format": format, "columns": dict(columns or {}), "first_position": first, "clip": bool(clip)}
    kept = None if resume is None else finished.Finished(Path(resume), options)
    tally, pace = click_tally.Tally(), Pace(files, progress)
    for number, file in enumerate(files):
        before = None if kept is None else kept.find(file)
        if before is not None:
            tally.merge(before)
            pace.at(file, number, 1.0, kept=True)
            continue
        own = tally if kept is None else click_tally.Tally()
        watch = partial(pace.at, file, number)
        with local_copy(file) as path:
            known = log_format(path) if format is None or format in _TABLES else format
            if known == "tiangong" or (known == "jsonl" and not is_json_table(path, columns or {})):
                pages.count_pages(path, own, kind=known, watch=watch)
            else:
                tables.count_table(
                    path,
                    own,
                    kind=known,
                    columns=columns or {},
                    first_position=first,
                    clip=clip,
                    names=_KDD_CUP if format == "kdd-cup-2012" else (),
                    watch=watch,
                    spilling=spilling,
                )
        if kept is not None:
            kept.keep(file, own)
            tally.merge(own)
        pace.at(file, number, 1.0)
    return tally.log(name=plain_name(files[0]) if name is None else name)


def _spilling(engine: str, memory_limit: str | None, spill_to: str | Path | None) -> Spilling | None:
    from rankloop.data.clicks.spilling import Spilling

    if one_of("engine", engine, ("polars", "duckdb")) == "duckdb":
        require("duckdb", extra="duckdb", for_='engine="duckdb"')
        return Spilling(memory_limit, None if spill_to is None else Path(spill_to))
    for name, given in (("memory_limit", memory_limit), ("spill_to", spill_to)):
        if given is not None:
            raise ValueError(f'{name} is for engine="duckdb", got {given!r}')
    return None


def log_format(path: Path) -> str:
    """The format of a file, by its first bytes, because names can be wrong."""
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    try:
        with broken_file_named(path, lambda: 0), open_bytes(path) as file:
            line = file.readline(1 << 16)
        first = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text and not Parquet: {error}") from error
    if first.startswith("{"):
        return "jsonl"
    return "tiangong" if "\t[" in first else "csv"


def plain_name(path: Path | RemoteFile) -> str:
    """A file's name without its endings."""
    return path.name.split(".")[0] or path.name
