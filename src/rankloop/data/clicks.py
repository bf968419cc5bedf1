"""Click logs of any known format: which files a path means, and their counts."""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rankloop.arguments import ArgumentError, one_of, whole
from rankloop.data.text import broken_file_named, open_bytes
from rankloop.extras import require

if TYPE_CHECKING:
    from rankloop.feedback import ClickLog

FORMATS = ("jsonl", "tiangong", "csv", "parquet")
_BY_PAGE = ("yandex", "ubi", "baidu-ultr")  # read as pages, then counted
_OF_UBI = re.compile(r'"(action_name|user_query|query_response_\w+|actionName|userQuery|_index)"\s*:')
_TABLES = ("open-bandit", "kdd-cup-2012")
# Track 2 of the KDD Cup 2012 has no header.
_KDD_CUP = (
    *("clicks", "shown", "display_url", "item", "advertiser", "depth"),
    *("position", "query", "keyword", "title", "description", "user"),
)


def find_files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files of a path or several: each a file, a folder with all in it, or a pattern such as ``logs/*.parquet``.

    What it returns can be passed to every reader in place of the paths.
    """
    several = [paths] if isinstance(paths, str) or not isinstance(paths, Sequence) else list(paths)
    if not several:
        raise ValueError("paths must name at least one file, got none")
    return [file for one in several for file in _files_of(one)]


def _files_of(one: str | Path) -> list[Path]:
    if not isinstance(one, str | os.PathLike):
        raise TypeError(
            f"paths must name files, got {type(one).__name__}: write a DuckDB relation or a data frame to Parquet first"
        )
    if isinstance(one, str) and one.startswith("file://"):
        one = url2pathname(urlsplit(one).path)
    if "://" in str(one):
        raise ArgumentError(
            "paths", f"paths: {one} is an address: copy its files to a folder of this machine first"
        )
    path = Path(one)
    if path.is_dir():
        inside = sorted(
            file
            for file in path.rglob("*")
            if file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        )
        if not inside:
            raise ArgumentError("paths", f"paths: the folder {path} has no file")
        return inside
    if not path.exists() and glob.has_magic(str(one)):
        matching = sorted(Path(name) for name in glob.glob(str(one), recursive=True))  # noqa: PTH207
        matching = [file for file in matching if file.is_file()]
        if not matching:
            raise ArgumentError("paths", f"paths: no file matches {str(one)!r}")
        return matching
    return [path]


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
    if first.startswith(("{", "[{")) and _OF_UBI.search(first):
        return "ubi"
    if first.startswith("{"):
        return "jsonl"
    return "tiangong" if "\t[" in first else "csv"


def plain_name(path: Path) -> str:
    """A file's name without its endings."""
    return path.name.split(".")[0] or path.name


def read_clicks(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    first_position: int | None = None,
    clip: bool = False,
    resume: object = None,
    progress: object = None,
    engine: str = "polars",
    memory_limit: object = None,
    spill_to: object = None,
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
        and query where there are several), or with counts (item, position, shown, clicks).
    format : str, optional
        ``"jsonl"``, ``"tiangong"``, ``"csv"`` or ``"parquet"``; by default recognised by the first bytes. Or that of a
        published log: ``"open-bandit"``, ``"kdd-cup-2012"`` (track 2), or ``"yandex"``, ``"ubi"`` and ``"baidu-ultr"``,
        which `read_sessions` describes; ``"ubi"`` is recognised too.
    columns : mapping of str to str, optional
        For tables whose columns have names of their own: ``{"item": "sku"}``.
    first_position : int, optional
        What a table calls the top position. By default 1, unless rows at position 0 make it doubtful: then it asks.
    clip : bool, optional
        Count rows of counts with more clicks than impressions as clicked every time, instead of leaving them out.
    resume, progress, engine, memory_limit, spill_to : object, optional
        Ignored: Polars counts every log, a hundred million rows in seconds.
    name : str, optional
        What to call the log; by default the name of the first file.

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
    require("polars", extra="data", for_="reading a click log")
    from rankloop.data.click_counts import Tally, count_table, is_json_table
    from rankloop.data.click_pages import count_pages

    files = find_files(paths)
    first = None if first_position is None else whole("first_position", first_position, at_least=0)
    if format is not None:
        one_of("format", format, (*FORMATS, *_TABLES, *_BY_PAGE))
    one_of("engine", engine, ("polars", "duckdb"))
    if engine != "polars" or any(one is not None for one in (resume, progress, memory_limit, spill_to)):
        said = "resume, progress, engine, memory_limit and spill_to are ignored and will go"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
    known = format or ("ubi" if {log_format(path) for path in files} == {"ubi"} else "")
    if known in _BY_PAGE:
        from rankloop.data.sessions import read_sessions

        return read_sessions(files, format=known, name=name).count()
    tally = Tally()
    for path in files:
        known = log_format(path) if format is None or format in _TABLES else format
        if known == "tiangong" or (known == "jsonl" and not is_json_table(path, columns or {})):
            count_pages(path, tally, kind=known)
        else:
            count_table(
                path,
                tally,
                kind=known,
                columns=columns or {},
                first_position=first,
                clip=clip,
                names=_KDD_CUP if format == "kdd-cup-2012" else (),
            )
    return tally.log(name=plain_name(files[0]) if name is None else name)
