"""Result pages one by one: JSON lines, the shapes in which logs are published, and tables put together by page."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rankloop.data.click_tables import (
    BAD_CHANCE,
    Table,
    click_column,
    drop_bad,
    match_columns,
    read_batches,
    read_header,
    require_columns,
    row_checks,
    whole_column,
)
from rankloop.data.text import json_object, line_blocks, lines_of, malformed, open_text
from rankloop.data.ubi import Event, Query, Unknown, impressed, is_action, read_document

if TYPE_CHECKING:
    from rankloop.data.click_counts import Tally

# Names of the fields of a page in the known formats.
QUERY = ("query", "q", "query_id", "qid")
SHOWN = ("shown", "docs", "items", "documents")
CLICKED = ("clicked", "clicks")
PROPENSITY = ("propensity", "propensities", "propensity_score")
FEATURES, CANDIDATES = "features", "candidates"
# Candidates that nothing came back on, in the first row of a list.
_OTHERS, _OTHER_FEATURES = "others", "other_features"
_KEPT = ("propensity", "relevance", FEATURES, _OTHERS, _OTHER_FEATURES)

_NO_TEXT = r"^(true|false|[\[{].*|-?\d[\d.eE+-]*)$"  # what may not have been text in JSON

NOT_SHOWN = "a click on an id that was not shown"
TWICE = "an id shown twice"


class Page(NamedTuple):
    """One page: the ids it showed by position, those clicked in the order of the clicks, and its fields as read."""

    query: str
    shown: list[str]
    clicks: list[str]
    fields: Mapping[str, Any] = MappingProxyType({})
    hits: list[int] | None = None  # by position, where an id may be shown twice

    @property
    def clicked(self) -> list[int]:
        """For each position whether it was clicked."""
        if self.hits is not None:
            return self.hits
        chosen = set(self.clicks)
        return [int(one in chosen) for one in self.shown]

    @property
    def propensity(self) -> Any:
        """That of the list, or those of its positions, as it was read; None where there is none."""
        return next((self.fields[name] for name in PROPENSITY if name in self.fields), None)


def count_pages(path: Path, tally: Tally, *, kind: str) -> None:
    """Count the pages of a file."""
    for number, block in line_blocks(path):
        frame = _parsed(path, number, block) if kind == "jsonl" else None
        if frame is not None:
            _count_frame(frame, tally)
            continue
        pages = list(_pages_of_block(path, number, block, tally, kind))
        cells = {
            "query": [page.query for page in pages for _ in page.shown],
            "item": [one for page in pages for one in page.shown],
            "position": [place for page in pages for place in range(len(page.shown))],
            "clicked": [one for page in pages for one in page.clicked],
        }
        if pages:
            _add(tally, pl.DataFrame(cells), pl.DataFrame({"query": [page.query for page in pages]}))


def _add(tally: Tally, cells: pl.DataFrame, pages: pl.DataFrame) -> None:
    one = pl.lit(1, pl.Int64)
    order = ("query", "item", "position", one.alias("shown"), "clicked")
    tally.add(cells.select(order), pages.select("query", one.alias("rows")))


def _parsed(path: Path, number: int, block: bytes) -> pl.DataFrame | None:
    """The pages of a block as columns query, shown and clicked; None if a line has to be looked at by itself.

    Nothing is accepted that Python would refuse, or read otherwise.
    """
    place, line = next(lines_of(path, number, block), (0, "{}"))
    first = json_object(path, place, line)
    query, shown, clicked = (
        next((name for name in known if name in first), "") for known in (QUERY, SHOWN, CLICKED)
    )
    if not (isinstance(first.get(shown), list) and isinstance(first.get(clicked), list)):
        return None
    ids = {int: pl.Int64, str: pl.String}
    kinds = {type(one) for one in (*first[shown], *first[clicked])}
    if len(kinds) != 1 or not kinds <= ids.keys() or (query and type(first[query]) not in ids):
        return None
    # Fields by another of the known names must be null: a line that has one is looked at by itself.
    types: dict[str, Any] = dict.fromkeys((*QUERY, *SHOWN, *CLICKED), pl.Null)
    types |= dict.fromkeys((shown, clicked), pl.List(ids[kinds.pop()]))
    if query:
        types[query] = ids[type(first[query])]
    n_lines = sum(bool(line.strip()) for line in block.split(b"\n"))
    twice = any(block.count(f'"{name}"'.encode()) > n_lines for name in (query, shown, clicked))
    if twice or b"\\" in block:
        return None  # of a field given twice Polars takes the first, and it reads what is escaped otherwise
    try:
        frame = pl.read_ndjson(io.BytesIO(block), schema=types)
    except pl.exceptions.PolarsError:
        return None
    frame = frame.select(
        pl.col(query).alias("query") if query else pl.lit("").alias("query"),
        pl.col(shown).alias("shown"),
        pl.col(clicked).alias("clicked"),
    )
    nulls = pl.any_horizontal(
        pl.all().is_null(), *(pl.col(name).list.contains(pl.lit(None)) for name in ("shown", "clicked"))
    )
    if frame.height != n_lines or frame.select(nulls.any()).item():
        return None
    # Polars makes text of a number or a truth value, which are no ids.
    values = (frame["query"], frame["shown"].explode(), frame["clicked"].explode())
    texts = [column for column in values if column.dtype == pl.String]
    return None if any(column.str.contains(_NO_TEXT).any() for column in texts) else frame


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
    positions = pl.int_ranges(pl.col("shown").list.len()).alias("position")
    items = pages.with_columns(positions).explode("shown", "position")
    hits = pl.col("shown").is_in(pl.col("clicked")).cast(pl.Int64).alias("clicked")
    _add(tally, items.select("query", "position", hits, item="shown"), pages)


def read_pages(path: Path, tally: Tally, *, kind: str) -> Iterator[Page]:
    """The good pages of a file, one by one; bad ones are counted in `tally`."""
    for number, block in line_blocks(path):
        yield from _pages_of_block(path, number, block, tally, kind)


def _pages_of_block(path: Path, number: int, block: bytes, tally: Tally, kind: str) -> Iterator[Page]:
    read = _json_page if kind == "jsonl" else _tiangong_page
    for place, line in lines_of(path, number, block):
        page = read(path, place, line, tally)
        if page is not None:
            yield page


def _json_page(path: Path, number: int, line: str, tally: Tally) -> Page | None:
    fields = json_object(path, number, line)
    query = _field(path, number, fields, QUERY, needed=False)
    shown = _ids(path, number, _field(path, number, fields, SHOWN))
    clicks = _ids(path, number, _field(path, number, fields, CLICKED))
    on_page = set(shown)
    if not shown:
        tally.bad_rows["nothing shown"] += 1
    elif len(on_page) < len(shown):
        tally.bad_rows[TWICE] += 1  # which of the two was clicked cannot be told
    elif not on_page.issuperset(clicks):
        tally.bad_rows[NOT_SHOWN] += 1
    else:
        return Page(_ids(path, number, [query])[0], shown, clicks, fields)
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


def _ids(path: Path, number: int, ids: Any) -> list[str]:
    if not isinstance(ids, list):
        malformed(path, number, f"not a list of ids: {str(ids)[:80]!r}")
    if not set(map(type, ids)) <= {int, str}:
        malformed(path, number, f"an id must be text or a whole number: {str(ids)[:80]!r}")
    return [str(one) for one in ids]


def _tiangong_page(path: Path, number: int, line: str, tally: Tally) -> Page | None:
    cells = line.rstrip("\r\n").split("\t")
    # Session, query, ids, kinds of result, clicks, and grades in one of the files.
    if len(cells) not in (5, 6):
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
    hit = [one for one, click in zip(shown, clicks, strict=True) if click]
    return Page(cells[1], shown, hit, hits=clicks)


def yandex(path: Path, tally: Tally) -> Iterator[Page]:
    """The Relevance Prediction Challenge: lines ``session time Q query region urls...`` and ``session time C url``."""
    held: list[Page] = []
    session = ""
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            cells = line.split()
            if not cells:
                continue
            if len(cells) < 4 or cells[2] not in ("Q", "C"):
                malformed(path, number, f"not a line of type Q or C: {line.strip()[:80]!r}")
            if cells[0] != session:
                yield from good_pages(held, tally)
                held, session = [], cells[0]
            if cells[2] == "Q":
                held.append(Page(cells[3], cells[5:], []))
            else:
                # A click belongs to the latest page of its session that showed the document.
                page = next((one for one in reversed(held) if cells[3] in one.shown), None)
                if page is None:
                    tally.bad_rows[NOT_SHOWN] += 1
                else:
                    page.clicks.append(cells[3])
    yield from good_pages(held, tally)


def ubi(paths: list[Path], tally: Tally) -> Iterator[Page]:
    """User Behavior Insights: searches and events, in one file or several, as JSON lines or arrays."""
    queries: dict[str, Query] = {}
    events: list[Event] = []
    for path in paths:
        for document in _ubi_documents(path):
            try:
                one = read_document(document)
            except Unknown as error:
                # Without the value: reasons are counted.
                tally.bad_rows[str(error).partition(", got ")[0]] += 1
                continue
            if isinstance(one, Event):
                events.append(one)
            elif not _same_search(one, queries.setdefault(one.query_id, one)):
                tally.bad_rows["a query_id that was used for another list"] += 1
            elif one.shown:
                queries[one.query_id] = one
    pages = _shown_pages(queries, [one for one in events if one.action == "impression"], tally)
    for click in sorted((one for one in events if one.action == "click"), key=lambda one: one.at):
        page = pages.get(click.query_id)
        if page is None:
            tally.bad_rows["a click of a query that is not in the log"] += 1
        elif click.item not in page.shown:
            tally.bad_rows[NOT_SHOWN] += 1
        else:
            page.clicks.append(click.item)
    yield from pages.values()


def _same_search(one: Query, before: Query) -> bool:
    return one.shown in ((), before.shown) or not before.shown


def _ubi_documents(path: Path) -> Iterator[Any]:
    """What is in a file, but for the lines of bulk requests that say what to do with the next one."""
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            is_array = line.lstrip().startswith("[")
            try:
                found = json.loads(line + text.read() if is_array else line)
            except json.JSONDecodeError as error:
                malformed(path, number + (error.lineno - 1) * is_array, f"not JSON: {error.msg}")
            yield from (one for one in (found if is_array else [found]) if not is_action(one))


def _shown_pages(queries: dict[str, Query], impressions: list[Event], tally: Tally) -> dict[str, Page]:
    """A page for each search: the ids that came back, or else the impressions by ordinal."""
    # A source that calls some position 0 counts from there.
    zero = {one.application for one in impressions if one.ordinal == 0}
    seen: dict[str, list[Event]] = {}
    for one in impressions:
        if one.query_id not in queries or not queries[one.query_id].shown:
            seen.setdefault(one.query_id, []).append(one)
    pages: dict[str, Page] = {}
    for query_id in dict.fromkeys([*queries, *seen]):
        query, its = queries.get(query_id), seen.get(query_id, [])
        if query is not None and query.shown:
            chances = query.propensities
            fields = {} if chances is None else {PROPENSITY[0]: list(chances)}
            pages[query_id] = Page(query.user_query, list(query.shown), [], fields)
            continue
        words = (
            query.user_query
            if query is not None
            else next((one.user_query for one in its if one.user_query), "")
        )
        try:
            first = 0 if its and its[0].application in zero else 1
            shown = impressed(((one.ordinal, one.item) for one in its), first=first)
        except Unknown as error:
            tally.bad_rows[str(error)] += 1
            continue
        if shown:
            pages[query_id] = Page(words, shown, [])
        else:
            tally.bad_rows["nothing shown"] += 1
    return pages


def baidu(path: Path, tally: Tally) -> Iterator[Page]:
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
            yield from good_pages([Page(str(name), shown, clicked)], tally)


def gathered_pages(table: Table, tally: Tally) -> Iterator[Page]:
    """Pages from a table of impressions that has a column for the page."""
    for page in _gathered(table, tally, "pages"):
        clicked = [item for item, hit in zip(page["item"], page["clicks"], strict=True) if hit]
        yield Page(page["query"], page["item"], clicked)


def good_pages(pages: list[Page], tally: Tally) -> Iterator[Page]:
    """Those that show something, and nothing twice."""
    for page in pages:
        if not page.shown:
            tally.bad_rows["nothing shown"] += 1
        elif len(set(page.shown)) < len(page.shown):
            tally.bad_rows[TWICE] += 1
        else:
            yield page


def lists_of_table(table: Table, tally: Tally, query: str | None, feedback: str) -> Iterator[dict[str, Any]]:
    """Lists of a table that has a column for the page, in the order in which they begin."""
    for page in _gathered(table, tally, "lists", query, feedback):
        made = {"items": page["item"], feedback: page["clicks"]}
        if page["query"]:
            made["query"] = page["query"]
        chances, features = page.get("propensity"), page.get(FEATURES)
        if chances is not None and None not in chances:
            made["propensities"] = chances
        if features is not None and None not in features:
            made[FEATURES] = features
        yield made


def pages_of_table(table: Table, tally: Tally) -> Iterator[Page]:
    """Lists of a Parquet table with features of all candidates."""
    for page in _gathered(table, tally, "lists"):
        others = (page.get(_OTHERS) or [None])[0] or []
        other_rows = (page.get(_OTHER_FEATURES) or [None])[0] or []
        fields = {
            PROPENSITY[0]: page.get("propensity"),
            CANDIDATES: page["item"] + others,
            FEATURES: page[FEATURES] + other_rows,
        }
        clicks = [item for item, hit in zip(page["item"], page["clicks"], strict=True) if hit]
        yield Page(page["query"], page["item"], clicks, fields)


def _gathered(
    table: Table, tally: Tally, what: str, query: str | None = None, feedback: str = "clicks"
) -> Iterator[dict[str, Any]]:
    """The rows of a table put together by page, those that are whole; `what` says in an error what they are for."""
    path = table.path
    header = read_header(path, table.kind)
    matched = match_columns(path, header, table.columns)
    if what == "lists":
        matched |= {name: name for name in _KEPT[1:] if name in header and name not in matched.values()}
    needed = ["page", "item", "position", "click" if feedback == "clicks" else "relevance"]
    needed_too = needed if query is None else [*needed, "query"]
    require_columns(path, needed_too, matched, f", which {what} need")
    kept = [name for name in _KEPT if name in matched] if what == "lists" else []
    wanted = {name: matched[name] for name in dict.fromkeys([*needed, "query", *kept]) if name in matched}
    batches = read_batches(path, table.kind, wanted, tally)
    parts = [_good_rows(batch, tally, table.first_position, query, kept) for batch in batches]
    if not parts:
        return
    rows = pl.concat(parts)
    values = [name for name in rows.columns if name not in ("page", "query")]
    pages = rows.group_by("page", maintain_order=True).agg(
        pl.col("query").first(), pl.col(values).sort_by("position")
    )
    for page in pages.iter_rows(named=True):
        if page["position"] != list(range(len(page["position"]))):
            tally.bad_rows["a page with a position twice or left out"] += 1
        elif len(set(page["item"])) < len(page["item"]):
            tally.bad_rows[TWICE] += 1
        else:
            yield page


def _good_rows(
    batch: pl.DataFrame, tally: Tally, first_position: int, query: str | None, kept: list[str]
) -> pl.DataFrame:
    if query is not None:
        batch = batch.filter(pl.col("query").cast(pl.String) == query)
    types = batch.schema
    relevance = pl.col("relevance").cast(pl.Float64, strict=False)
    batch = batch.with_columns(
        position=whole_column(types["position"], "position") - first_position,
        clicks=click_column(types["click"]) if "click" in types else relevance,
    )
    checks = [("no page", pl.col("page").is_null())]
    if "propensity" in kept:
        chance = pl.col("propensity").cast(pl.Float64, strict=False)
        batch = batch.with_columns(propensity=chance)
        checks.append((BAD_CHANCE, chance.is_not_null() & ~((chance > 0) & (chance <= 1))))
    if "query" not in batch.columns:
        batch = batch.with_columns(query=pl.lit(""))
    good = drop_bad(batch, tally, [*checks, *row_checks(first_position)])
    also = [name for name in kept if name != "relevance"]
    return good.select(pl.col("page", "query", "item").cast(pl.String), "position", "clicks", *also)


def logged_rows(table: Table, tally: Tally) -> pl.DataFrame:
    """The good rows of a table of impressions with their propensities: query, item, position, clicks, propensity."""
    path = table.path
    matched = match_columns(path, read_header(path, table.kind), table.columns)
    needed = ("item", "position", "click", "propensity")
    require_columns(path, needed, matched)
    wanted = {name: matched[name] for name in (*needed, "query") if name in matched}
    chance = pl.col("propensity")
    checks = [*row_checks(table.first_position), (BAD_CHANCE, ~((chance > 0) & (chance <= 1)))]
    types = {"query": pl.String, "item": pl.String, "position": pl.Int64, "clicks": pl.Int64}
    types["propensity"] = pl.Float64
    parts = [pl.DataFrame(schema=types)]
    for batch in read_batches(path, table.kind, wanted, tally):
        batch = batch.with_columns(
            position=whole_column(batch.schema["position"], "position") - table.first_position,
            clicks=click_column(batch.schema["click"]),
            propensity=chance.cast(pl.Float64, strict=False),
            item=pl.col("item").cast(pl.String),
            query=pl.col("query").cast(pl.String) if "query" in wanted else pl.lit(""),
        )
        parts.append(drop_bad(batch, tally, checks).select(list(types)))
    return pl.concat(parts)
