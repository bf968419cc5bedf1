"""Result pages, one a line: what was shown, and what was clicked."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from rankloop.data.clicks.tally import Tally
from rankloop.data.text_files import malformed, open_text

# Names of the fields of a page in the known formats.
QUERY = ("query", "q", "query_id", "qid")
SHOWN = ("shown", "docs", "items", "documents")
CLICKED = ("clicked", "clicks")
PROPENSITY = ("propensity", "propensities", "propensity_score")

_CHUNK = 200_000  # impressions, which is 20 MB while they are counted


class Page(NamedTuple):
    """One page: the ids it showed by position, whether each was clicked, and the fields as they were read."""

    query: str
    shown: list[str]
    clicked: list[int]
    fields: dict[str, Any]


def count_pages(path: Path, tally: Tally, *, kind: str) -> None:
    """Count the pages of a file."""
    queries: list[str] = []
    items: list[str] = []
    positions: list[int] = []
    clicked: list[int] = []
    pages: list[str] = []
    for page in read_pages(path, tally, kind=kind):
        m = len(page.shown)
        pages.append(page.query)
        queries.extend([page.query] * m)
        items.extend(page.shown)
        positions.extend(range(m))
        clicked.extend(page.clicked)
        if len(items) > _CHUNK:
            _count(tally, queries, items, positions, clicked, pages)
            for column in (queries, items, positions, clicked, pages):
                column.clear()
    _count(tally, queries, items, positions, clicked, pages)


def _count(
    tally: Tally,
    queries: list[str],
    items: list[str],
    positions: list[int],
    clicked: list[int],
    pages: list[str],
) -> None:
    if not items:
        return
    columns = {"query": queries, "item": items, "position": positions, "clicked": clicked}
    cells = pl.DataFrame(columns).with_columns(pl.lit(1, pl.Int64).alias("shown"))
    order = ["query", "item", "position", "shown", "clicked"]
    tally.add(
        cells.select(order), pl.DataFrame({"query": pages}).with_columns(pl.lit(1, pl.Int64).alias("rows"))
    )


def read_pages(path: Path, tally: Tally, *, kind: str) -> Iterator[Page]:
    """The good pages of a file, one by one; bad ones are counted in `tally`."""
    read = _json_page if kind == "jsonl" else _tiangong_page
    number = 0
    try:
        with open_text(path) as text:
            for number, line in enumerate(text, start=1):
                if line.strip():
                    page = read(path, number, line, tally)
                    if page is not None:
                        yield page
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text, after line {number}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: broken gzip file, after line {number}: {error}") from error


def _json_page(path: Path, number: int, line: str, tally: Tally) -> Page | None:
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        malformed(path, number, f"not JSON: {error}")
    if not isinstance(fields, dict):
        malformed(path, number, f"not a JSON object: {line.strip()[:80]!r}")
    query = _field(path, number, fields, QUERY, needed=False)
    shown = _ids(path, number, _field(path, number, fields, SHOWN))
    clicks = _ids(path, number, _field(path, number, fields, CLICKED))
    on_page, chosen = set(shown), set(clicks)
    if not shown:
        tally.bad_rows["nothing shown"] += 1
    elif len(on_page) < len(shown):
        tally.bad_rows["an id shown twice"] += 1  # which of the two was clicked cannot be told
    elif not chosen <= on_page:
        tally.bad_rows["a click on an id that was not shown"] += 1
    else:
        return Page(_id(path, number, query), shown, [int(one in chosen) for one in shown], fields)
    return None


def _field(
    path: Path, number: int, fields: dict[str, Any], known: tuple[str, ...], *, needed: bool = True
) -> Any:
    for name in known:
        if name in fields:
            return fields[name]
    if needed:
        malformed(path, number, f"no field {' or '.join(known)}, only {', '.join(fields)}")
    return ""


def _ids(path: Path, number: int, given: Any) -> list[str]:
    if not isinstance(given, list):
        malformed(path, number, f"not a list of ids: {str(given)[:80]!r}")
    if not {type(one) for one in given} <= {int, str}:
        malformed(path, number, f"an id must be text or a whole number: {str(given)[:80]!r}")
    return [str(one) for one in given]


def _id(path: Path, number: int, given: Any) -> str:
    return _ids(path, number, [given])[0]


def _tiangong_page(path: Path, number: int, line: str, tally: Tally) -> Page | None:
    cells = line.rstrip("\r\n").split("\t")
    if len(cells) not in (
        5,
        6,
    ):  # session, query, ids, kinds of result, clicks, and grades in one of the files
        malformed(path, number, f"expected five or six cells between tabs, found {len(cells)}")
    try:
        shown, clicks = _ids(path, number, json.loads(cells[2])), json.loads(cells[4])
    except json.JSONDecodeError as error:
        malformed(path, number, f"not a list: {error}")
    if not isinstance(clicks, list) or len(clicks) != len(shown) or not set(clicks) <= {0, 1}:
        malformed(path, number, f"clicks must be 0 or 1 for each of {len(shown)} ids: {cells[4][:80]!r}")
    if not shown:
        tally.bad_rows["nothing shown"] += 1
        return None
    return Page(cells[1], shown, clicks, {})
