"""Result pages, one a line: what was shown, and what was clicked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from rankloop.data.clicks import json_lines
from rankloop.data.clicks.tally import Tally
from rankloop.data.text_files import malformed

# Names of the fields of a page in the known formats.
QUERY = ("query", "q", "query_id", "qid")
SHOWN = ("shown", "docs", "items", "documents")
CLICKED = ("clicked", "clicks")
PROPENSITY = ("propensity", "propensities", "propensity_score")

NOT_SHOWN = "a click on an id that was not shown"
TWICE = "an id shown twice"

_CHUNK = 200_000  # impressions, which is 20 MB while they are counted


class Page(NamedTuple):
    """One page: the ids it showed by position, whether each was clicked, and the fields as they were read."""

    query: str
    shown: list[str]
    clicked: list[int]
    fields: dict[str, Any]


def count_pages(
    path: Path, tally: Tally, *, kind: str, watch: Callable[[float], None] = lambda _: None
) -> None:
    """Count the pages of a file; `watch` is told the share done."""
    for number, block in json_lines.line_blocks(path, watch):
        frame = _parsed(path, number, block) if kind == "jsonl" else None
        if frame is not None:
            _count_frame(frame, tally)
        else:
            _count_lines(path, number, block, tally, kind)


def _parsed(path: Path, number: int, block: bytes) -> pl.DataFrame | None:
    """The pages of a block as columns query, shown and clicked; None if one has to be looked at by itself."""
    _, line = next(json_lines.lines(path, number, block), (0, "{}"))
    first = json_lines.parse(path, number, line)
    query, shown, clicked = (
        next((name for name in known if name in first), None) for known in (QUERY, SHOWN, CLICKED)
    )
    if shown is None or clicked is None:
        return None
    if not (isinstance(first[shown], list) and isinstance(first[clicked], list)):
        return None
    # Fields by another of the known names must be null: a line that has one is looked at by itself.
    types = dict.fromkeys((*QUERY, *SHOWN, *CLICKED), json_lines.type_of(None))
    types[shown] = types[clicked] = json_lines.type_of(first[shown] + first[clicked])
    if query is not None:
        if type(first[query]) not in (str, int):
            return None
        types[query] = json_lines.type_of(first[query])
    frame = json_lines.parse_block(block, types)
    if frame is None:
        return None
    frame = frame.select(
        (pl.lit("") if query is None else pl.col(query)).alias("query"),
        pl.col(shown).alias("shown"),
        pl.col(clicked).alias("clicked"),
    )
    doubtful = pl.any_horizontal(
        pl.all().is_null(),
        *(pl.col(name).list.contains(pl.lit(None)) for name in ("shown", "clicked")),
    )
    return None if frame.select(doubtful.any()).item() else frame


def _count_frame(pages: pl.DataFrame, tally: Tally) -> None:
    checks = (
        ("nothing shown", pl.col("shown").list.len() == 0),
        (TWICE, pl.col("shown").list.n_unique() < pl.col("shown").list.len()),
        (NOT_SHOWN, pl.col("clicked").list.set_difference("shown").list.len() > 0),
    )
    for reason, bad in checks:
        good = pages.filter(~bad)
        if good.height < pages.height:
            tally.bad_rows[reason] += pages.height - good.height
        pages = good
    items = pages.with_columns(position=pl.int_ranges(pl.col("shown").list.len())).explode(
        "shown", "position"
    )
    cells = items.select(
        "query",
        "position",
        pl.col("shown").alias("item"),
        pl.lit(1, pl.Int64).alias("shown"),
        pl.col("shown").is_in(pl.col("clicked")).cast(pl.Int64).alias("clicked"),
    )
    _add(tally, cells, pages.select("query"))


def _add(tally: Tally, cells: pl.DataFrame, pages: pl.DataFrame) -> None:
    order = ["query", "item", "position", "shown", "clicked"]
    tally.add(cells.select(order), pages.with_columns(pl.lit(1, pl.Int64).alias("rows")))


def _count_lines(path: Path, number: int, block: bytes, tally: Tally, kind: str) -> None:
    queries: list[str] = []
    items: list[str] = []
    positions: list[int] = []
    clicked: list[int] = []
    pages: list[str] = []

    def count() -> None:
        columns = {"query": queries, "item": items, "position": positions, "clicked": clicked}
        cells = pl.DataFrame(columns).with_columns(pl.lit(1, pl.Int64).alias("shown"))
        _add(tally, cells, pl.DataFrame({"query": pages}))
        for column in (queries, items, positions, clicked, pages):
            column.clear()

    for page in _pages(path, json_lines.lines(path, number, block), tally, kind):
        m = len(page.shown)
        pages.append(page.query)
        queries.extend([page.query] * m)
        items.extend(page.shown)
        positions.extend(range(m))
        clicked.extend(page.clicked)
        if len(items) > _CHUNK:
            count()
    if items:
        count()


def read_pages(path: Path, tally: Tally, *, kind: str) -> Iterator[Page]:
    """The good pages of a file, one by one; bad ones are counted in `tally`."""
    for number, block in json_lines.line_blocks(path):
        yield from _pages(path, json_lines.lines(path, number, block), tally, kind)


def _pages(path: Path, lines: Iterator[tuple[int, str]], tally: Tally, kind: str) -> Iterator[Page]:
    read = _json_page if kind == "jsonl" else _tiangong_page
    for number, line in lines:
        page = read(path, number, line, tally)
        if page is not None:
            yield page


def _json_page(path: Path, number: int, line: str, tally: Tally) -> Page | None:
    fields = json_lines.parse(path, number, line)
    query = _field(path, number, fields, QUERY, needed=False)
    shown = _ids(path, number, _field(path, number, fields, SHOWN))
    clicks = _ids(path, number, _field(path, number, fields, CLICKED))
    on_page, chosen = set(shown), set(clicks)
    if not shown:
        tally.bad_rows["nothing shown"] += 1
    elif len(on_page) < len(shown):
        tally.bad_rows[TWICE] += 1  # which of the two was clicked cannot be told
    elif not chosen <= on_page:
        tally.bad_rows[NOT_SHOWN] += 1
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
