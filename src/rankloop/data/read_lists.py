"""Lists of a log, one by one, as a service takes them to learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rankloop.arguments import one_of, whole
from rankloop.data.clicks.files import find_files
from rankloop.data.clicks.read import log_format
from rankloop.data.clicks.remote import local_copy
from rankloop.data.read_sessions import SHAPES, page_views
from rankloop.extras import require


def read_lists(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    first_position: int = 1,
    query: str | None = None,
    feedback: str = "clicks",
    bad_rows: Counter[str] | None = None,
) -> Iterator[dict[str, Any]]:
    r"""Read lists with what came back on them, one by one, for `Client.import_lists`.

    Parameters
    ----------
    paths : str, Path or sequence of str or Path
        Files, folders or patterns, as for `read_clicks`; the table that `rankloop export` writes among them.
    format : str, optional
        As for `read_sessions`.
    columns : mapping of str to str, optional
        As for `read_sessions`.
    first_position : int, optional
        As for `read_sessions`.
    query : str, optional
        Only lists of this query; by default all.
    feedback : {"clicks", "relevance"}, optional
        What came back; relevance is in a column of that name.
    bad_rows : Counter of str, optional
        Counts what is left out, by reason.

    Returns
    -------
    iterator of dict
        Each with `items`, the names by position, and `clicks` or `relevance`; with `propensities` and `features` where
        the log has them.

    Raises
    ------
    ValueError
        For a file of another format.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pages.jsonl"
    ...     _ = path.write_text('{"q": "cat", "docs": [7, 9, 8], "clicks": [8, 7]}\n')
    ...     list(read_lists(path))
    [{'items': ['7', '9', '8'], 'clicks': [1, 0, 1]}]
    """
    require("polars", "pyarrow", extra="data", for_="reading lists")
    one_of("feedback", feedback, ("clicks", "relevance"))
    if format is not None:
        one_of("format", format, SHAPES)
    first = whole("first_position", first_position, at_least=0)
    counted: Counter[str] = Counter() if bad_rows is None else bad_rows
    return _lists(find_files(paths), format, dict(columns or {}), first, query, feedback, counted)


def _lists(
    files: Any,
    shape: str | None,
    columns: dict[str, str],
    first_position: int,
    query: str | None,
    feedback: str,
    bad_rows: Counter[str],
) -> Iterator[dict[str, Any]]:
    from rankloop.data.clicks.tally import Tally

    tally = Tally(bad_rows=bad_rows)
    with ExitStack() as stack:
        copies = [stack.enter_context(local_copy(file)) for file in files]
        kinds = {log_format(path) if shape is None else shape for path in copies}
        if kinds <= {"parquet", "csv"}:
            from rankloop.data.clicks.list_tables import table_lists

            for path in copies:
                kind = log_format(path) if shape is None else shape
                yield from table_lists(path, tally, kind, columns, first_position, query, feedback)
            return
        if feedback != "clicks":
            raise ValueError(f"feedback must be 'clicks' for logs of {', '.join(kinds)}, got {feedback!r}")
        if kinds == {"jsonl"}:
            for path in copies:
                yield from _json_lists(path, tally, query)
            return
        for view in page_views(copies, tally, shape, columns, first_position):
            if query is None or view.query == query:
                clicked = set(view.clicked)
                yield {"items": view.shown, "clicks": [int(item in clicked) for item in view.shown]}


def _json_lists(path: Path, tally: Any, query: str | None) -> Iterator[dict[str, Any]]:
    from rankloop.data.clicks.pages import PROPENSITY, read_pages
    from rankloop.data.feature_pages import CANDIDATES, FEATURES

    for page in read_pages(path, tally, kind="jsonl"):
        if query is not None and page.query != query:
            continue
        found: dict[str, Any] = {"items": page.shown, "clicks": page.clicked}
        chances = next((page.fields[name] for name in PROPENSITY if name in page.fields), None)
        if isinstance(
            chances, list
        ):  # a number is that of the whole list, which says nothing of its positions
            found["propensities"] = chances
        if FEATURES in page.fields:
            names = [str(one) for one in page.fields.get(CANDIDATES, page.shown)]
            rows = dict(zip(names, page.fields[FEATURES], strict=False))
            if not set(page.shown) <= rows.keys():
                tally.bad_rows["something shown that has no features"] += 1
                continue
            found["features"] = [rows[item] for item in page.shown]
        yield found
