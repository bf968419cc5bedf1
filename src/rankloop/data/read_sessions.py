"""Result pages one by one, from logs of any known shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rankloop.arguments import one_of, whole
from rankloop.data.clicks.files import find_files
from rankloop.data.clicks.read import FORMATS, log_format, plain_name
from rankloop.data.clicks.remote import local_copy
from rankloop.extras import require
from rankloop.feedback import Sessions

if TYPE_CHECKING:
    from rankloop.data.clicks.shapes import View
    from rankloop.data.clicks.tally import Tally

SHAPES = (*FORMATS, "yandex", "ubi", "baidu-ultr")


def read_sessions(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    first_position: int = 1,
    name: str | None = None,
) -> Sessions:
    r"""Read result pages with their clicks, in the order of the log, for click models that need more than counts.

    Pages are held in memory, five bytes an impression and two more for the order of the clicks. Bad rows are left out,
    counted and reported in `bad_rows`.

    Parameters
    ----------
    paths : str, Path or sequence of str or Path
        Files, folders or patterns, as for `read_clicks`.
    format : str, optional
        ``"jsonl"`` or ``"tiangong"``, pages one a line; ``"csv"`` or ``"parquet"``, tables of impressions with a column
        ``page`` (or ``session``) that says which belong together; ``"yandex"``, the lines Q and C of the Relevance
        Prediction Challenge; ``"ubi"``, the JSON lines of ``ubi_queries`` and ``ubi_events``; ``"baidu-ultr"``, Parquet
        with a row for each page. By default one of the first four, recognised by the first bytes.
    columns : mapping of str to str, optional
        For tables whose columns have names of their own: ``{"page": "serp"}``.
    first_position : int, optional
        What a table calls the top position.
    name : str, optional
        What to call the log; by default the name of the first file.

    Returns
    -------
    Sessions
        The pages.

    Raises
    ------
    ValueError
        For a file of another format, and for one without a valid page.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pages.jsonl"
    ...     _ = path.write_text('{"q": "cat", "docs": [7, 9, 8], "clicks": [8, 7]}\n')
    ...     pages = read_sessions(path)
    >>> pages, pages.order
    (Sessions('pages': 1 pages of up to 3, 1 query, 3 items, 2 clicks),
     array([[2, 0, 1]], dtype=int16))
    """
    require("polars", "pyarrow", extra="data", for_="reading pages")
    from rankloop.data.clicks.tally import Tally

    files, tally = find_files(paths), Tally()
    if format is not None:
        one_of("format", format, SHAPES)
    first = whole("first_position", first_position, at_least=0)
    queries: dict[str, int] = {}
    items: dict[str, int] = {}
    of: list[int] = []
    shown: list[list[int]] = []
    order: list[list[int]] = []
    with ExitStack() as stack:
        copies = [stack.enter_context(local_copy(file)) for file in files]
        kinds = {log_format(path) if format is None else format for path in copies}
        for page in page_views(copies, tally, format, dict(columns or {}), first):
            times = {item: time for time, item in enumerate(dict.fromkeys(page.clicked), start=1)}
            of.append(queries.setdefault(page.query, len(queries)))
            shown.append([items.setdefault(item, len(items)) for item in page.shown])
            order.append([times.get(item, 0) for item in page.shown])
    called = plain_name(files[0]) if name is None else name
    if not shown:
        reasons = ", ".join(f"{count:,} with {reason}" for reason, count in tally.bad_rows.items())
        raise ValueError(f"{called}: no page to read" + (f"; bad rows: {reasons}" if reasons else ""))
    m = max(map(len, shown))
    when = np.array([[*page, *[0] * (m - len(page))] for page in order], np.int16)
    ordered = kinds <= {"jsonl", "yandex", "ubi"}
    return Sessions(
        items=np.array([[*page, *[-1] * (m - len(page))] for page in shown], np.int32),
        clicks=(when > 0).astype(np.int8),
        queries=np.array(of, np.int32),
        order=when if ordered else None,
        query_ids=tuple(queries),
        item_ids=tuple(items),
        bad_rows=tally.bad_rows,
        name=called,
    )


def page_views(
    files: list[Path], tally: Tally, shape: str | None, columns: dict[str, str], first_position: int
) -> Iterator[View]:
    """The pages of files, whatever shape each has; `shape` names one for all of them."""
    from rankloop.data.clicks import shapes

    if shape == "ubi":
        yield from shapes.ubi(files, tally)
        return
    for path in files:
        kind = log_format(path) if shape is None else shape
        if kind in ("jsonl", "tiangong"):
            yield from shapes.pages_of_lines(path, tally, kind=kind)
        elif kind == "yandex":
            yield from shapes.yandex(path, tally)
        elif kind == "baidu-ultr":
            yield from shapes.baidu(path, tally)
        else:
            yield from shapes.pages_of_table(
                path, tally, kind=kind, columns=columns, first_position=first_position
            )
