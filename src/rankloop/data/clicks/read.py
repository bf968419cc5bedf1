"""Reads click logs of any known format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankloop.arguments import one_of, whole
from rankloop.data.text_files import open_text
from rankloop.extras import require

if TYPE_CHECKING:
    from rankloop.feedback import ClickLog

FORMATS = ("jsonl", "tiangong", "csv", "parquet")


def read_clicks(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    first_position: int = 1,
    name: str | None = None,
) -> ClickLog:
    r"""Count the clicks of a log, plain or gzip, by query, item and position.

    The log is read a piece at a time and never held: memory grows with the different (query, item, position) in it,
    not with its rows. Bad rows, such as a click on an id that was not shown, are left out, counted and reported in
    `bad_rows`.

    Parameters
    ----------
    paths : str, Path or sequence of str or Path
        A file or several, each in one of four formats. JSON lines, a result page each: ``{"query": ...,
        "shown": [ids], "clicked": [ids]}``, or with other usual names for the fields. TianGong-ST's pages,
        cells between tabs. CSV or Parquet with a row for each impression (columns item, position, click, and
        query where there are several), or with counts (item, position, shown, clicks).
    format : str, optional
        ``"jsonl"``, ``"tiangong"``, ``"csv"`` or ``"parquet"``; by default recognised by the first bytes.
    columns : mapping of str to str, optional
        For tables whose columns have names of their own: ``{"item": "sku"}``.
    first_position : int, optional
        What a table calls the top position, usually 1.
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
    from rankloop.data.clicks import pages, tables
    from rankloop.data.clicks import tally as click_tally

    files = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not files:
        raise ValueError("paths must name at least one file, got none")
    first = whole("first_position", first_position, at_least=0)
    tally = click_tally.Tally()
    for path in files:
        known = log_format(path) if format is None else one_of("format", format, FORMATS)
        if known in ("jsonl", "tiangong"):
            pages.count_pages(path, tally, kind=known)
        else:
            tables.count_table(path, tally, kind=known, columns=columns or {}, first_position=first)
    return tally.log(name=plain_name(files[0]) if name is None else name)


def log_format(path: Path) -> str:
    """The format of a file, by its first bytes, because names can be wrong."""
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    with open_text(path) as text:
        try:
            first = text.readline(1 << 16)
        except (UnicodeDecodeError, OSError, EOFError) as error:
            raise ValueError(f"{path}: not text and not Parquet: {error}") from error
    if first.startswith("{"):
        return "jsonl"
    return "tiangong" if "\t[" in first else "csv"


def plain_name(path: Path) -> str:
    """A file's name without its endings."""
    return path.name.split(".")[0] or path.name
