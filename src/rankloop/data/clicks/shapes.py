"""Published logs in the shapes in which they are published: pages one by one, with the clicks in their order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from rankloop.data.clicks.batches import batches
from rankloop.data.clicks.columns import click_column, find_columns, whole_column
from rankloop.data.clicks.pages import NOT_SHOWN, TWICE, read_pages
from rankloop.data.clicks.rows import drop_bad, row_checks
from rankloop.data.clicks.tally import Tally
from rankloop.data.text_files import malformed, open_text

_NEEDED = ("page", "query", "item", "position", "click")


class View(NamedTuple):
    """One page: its query, the ids it showed by position, and the ids clicked, in the order of the clicks."""

    query: str
    shown: list[str]
    clicked: list[str]


def pages_of_lines(path: Path, tally: Tally, *, kind: str) -> Iterator[View]:
    """Pages one a line; JSON lines have their clicks in order."""
    for page in read_pages(path, tally, kind=kind):
        hits = [one for one, hit in zip(page.shown, page.clicked, strict=True) if hit]
        if kind == "jsonl":
            given = next(page.fields[name] for name in ("clicked", "clicks") if name in page.fields)
            hits = [str(one) for one in given]
        yield View(page.query, page.shown, hits)


def yandex(path: Path, tally: Tally) -> Iterator[View]:
    """The Relevance Prediction Challenge: lines ``session time Q query region urls...`` and ``session time C url``."""
    held: list[View] = []
    session = ""
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            cells = line.split()
            if not cells:
                continue
            if len(cells) < 4 or cells[2] not in ("Q", "C"):
                malformed(path, number, f"not a line of type Q or C: {line.strip()[:80]!r}")
            if cells[0] != session:
                yield from _good(held, tally)
                held, session = [], cells[0]
            if cells[2] == "Q":
                held.append(View(cells[3], cells[5:], []))
            else:
                # A click belongs to the latest page of its session that showed the document.
                page = next((one for one in reversed(held) if cells[3] in one.shown), None)
                if page is None:
                    tally.bad_rows[NOT_SHOWN] += 1
                else:
                    page.clicked.append(cells[3])
    yield from _good(held, tally)


def ubi(paths: list[Path], tally: Tally) -> Iterator[View]:
    """User Behavior Insights, as JSON lines: ``ubi_queries`` and ``ubi_events``, in one file or several."""
    pages: dict[str, View] = {}
    clicks: list[tuple[str, str, str]] = []
    for path in paths:
        with open_text(path) as text:
            for number, line in enumerate(text, start=1):
                if line.strip():
                    _ubi_line(path, number, line, pages, clicks, tally)
    for _, query_id, item in sorted(clicks, key=lambda click: click[0]):
        if query_id not in pages:
            tally.bad_rows["a click of a query that is not in the log"] += 1
        elif item not in pages[query_id].shown:
            tally.bad_rows[NOT_SHOWN] += 1
        else:
            pages[query_id].clicked.append(item)
    yield from _good(list(pages.values()), tally)


def _ubi_line(
    path: Path,
    number: int,
    line: str,
    pages: dict[str, View],
    clicks: list[tuple[str, str, str]],
    tally: Tally,
) -> None:
    try:
        told = json.loads(line)
    except json.JSONDecodeError as error:
        malformed(path, number, f"not JSON: {error}")
    told = told.get("_source", told) if isinstance(told, dict) else {}
    if "query_response_hit_ids" in told:
        shown = [str(one) for one in told["query_response_hit_ids"] or []]
        pages[str(told.get("query_id"))] = View(str(told.get("user_query") or ""), shown, [])
    elif "action_name" in told:
        if told["action_name"] in ("click", "item_click", "product_click"):
            attributes: Any = told.get("event_attributes") or {}
            item = (attributes.get("object") or {}).get("object_id")
            if item is None:
                tally.bad_rows["a click without an object_id"] += 1
            else:
                clicks.append((str(told.get("timestamp", "")), str(told.get("query_id")), str(item)))
    else:
        malformed(path, number, "neither a query (query_response_hit_ids) nor an event (action_name)")


def baidu(path: Path, tally: Tally) -> Iterator[View]:
    """Baidu-ULTR as Parquet with a row for each page: query_md5, and lists url_md5, position and click."""
    names = pl.scan_parquet(path).collect_schema().names()
    query = next((name for name in ("query_md5", "query_id", "query") if name in names), None)
    missing = [name for name in ("url_md5", "position", "click") if name not in names]
    if query is None or missing:
        raise ValueError(f"{path}: no column {(missing or ['query_md5'])[0]}, only {', '.join(names)}")
    table = pl.scan_parquet(path).select(query, "url_md5", "position", "click")
    for batch in table.collect(engine="streaming").iter_slices(100_000):
        for name, urls, places, hits in batch.iter_rows():
            rows = sorted(zip(places, urls, hits, strict=True))
            shown = [str(url) for _, url, _ in rows]
            clicked = [str(url) for _, url, hit in rows if hit]
            yield from _good([View(str(name), shown, clicked)], tally)


def pages_of_table(
    path: Path, tally: Tally, *, kind: str, columns: dict[str, str], first_position: int
) -> Iterator[View]:
    """Pages from a table of impressions that has a column for the page."""
    found = find_columns(path, kind, columns)
    for needed in _NEEDED:
        if needed != "query" and needed not in found:
            raise ValueError(
                f"{path}: no column for {needed}, which pages need; name it with columns={{{needed!r}: ...}}"
            )
    wanted = {str(name): found[name] for name in _NEEDED if name in found}
    parts = []
    for batch in batches(path, kind, wanted, tally):
        if "query" not in batch.columns:
            batch = batch.with_columns(query=pl.lit(""))
        batch = batch.with_columns(
            position=whole_column(batch.schema["position"], "position") - first_position,
            clicks=click_column(batch.schema["click"]),
        )
        checks = [("no page", pl.col("page").is_null()), *row_checks(first_position)]
        parts.append(
            drop_bad(batch, tally, checks).select(
                pl.col("page", "query", "item").cast(pl.String), "position", "clicks"
            )
        )
    if not parts:
        return
    rows = pl.concat(parts).with_row_index("row")
    pages = rows.group_by("page", maintain_order=True).agg(
        pl.col("query").first(),
        pl.col("item", "position", "clicks").sort_by("position"),
    )
    for _, query, items, places, hits in pages.iter_rows():
        if places != list(range(len(places))):
            tally.bad_rows["a page with a position twice or left out"] += 1
            continue
        clicked = [item for item, hit in zip(items, hits, strict=True) if hit]
        yield from _good([View(query, items, clicked)], tally)


def _good(pages: list[View], tally: Tally) -> Iterator[View]:
    for page in pages:
        if not page.shown:
            tally.bad_rows["nothing shown"] += 1
        elif len(set(page.shown)) < len(page.shown):
            tally.bad_rows[TWICE] += 1
        else:
            yield page
