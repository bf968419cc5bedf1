"""Pages and lists of a log one by one: for click models, for a service to learn from, and with propensities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import ArgumentError, one_of, whole
from rankloop.data.clicks import FORMATS, find_files, log_format, plain_name
from rankloop.data.text import malformed
from rankloop.extras import require
from rankloop.features import read_features
from rankloop.feedback import Candidates, LoggedLists, Sessions

if TYPE_CHECKING:
    from rankloop.data.click_counts import Tally
    from rankloop.data.click_pages import Page
    from rankloop.data.click_tables import Table

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
        Prediction Challenge; ``"ubi"``, the documents of ``ubi_queries`` and ``ubi_events``, as JSON lines, for bulk
        requests too, or as arrays; ``"baidu-ultr"``, Parquet with a row for each page. By default recognised by the
        first bytes, but for ``"yandex"`` and ``"baidu-ultr"``.
    columns : mapping of str to str, optional
        For tables whose columns have names of their own: ``{"page": "serp"}``.
    first_position : int, optional
        What a table calls the top position.
    name : str, optional
        What to call the log; by default the name of the first file.

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
    require("polars", extra="data", for_="reading pages")
    from rankloop.data.click_counts import Tally

    files, tally = find_files(paths), Tally()
    if format is not None:
        one_of("format", format, SHAPES)
    first = whole("first_position", first_position, at_least=0)
    queries: dict[str, int] = {}
    items: dict[str, int] = {}
    of: list[int] = []
    shown: list[list[int]] = []
    order: list[list[int]] = []
    kinds = _kinds(files, format)
    for page in _pages_of(files, tally, format, columns or {}, first):
        times = {item: time for time, item in enumerate(dict.fromkeys(page.clicks), start=1)}
        of.append(queries.setdefault(page.query, len(queries)))
        shown.append([items.setdefault(item, len(items)) for item in page.shown])
        order.append([times.get(item, 0) for item in page.shown])
    called = plain_name(files[0]) if name is None else name
    if not shown:
        raise ValueError(f"{called}: no page to read{tally.reasons()}")
    m = max(map(len, shown))
    when = _padded(order, m, 0).astype(np.int16)
    return Sessions(
        items=_padded(shown, m, -1).astype(np.int32),
        clicks=(when > 0).astype(np.int8),
        queries=np.array(of, np.int32),
        order=when if kinds <= {"jsonl", "yandex", "ubi"} else None,
        query_ids=tuple(queries),
        item_ids=tuple(items),
        bad_rows=tally.bad_rows,
        name=called,
    )


def _pages_of(
    files: list[Path], tally: Tally, shape: str | None, columns: Mapping[str, str], first_position: int
) -> Iterator[Page]:
    """The pages of files, whatever shape each has; `shape` names one for all of them."""
    from rankloop.data import click_pages
    from rankloop.data.click_tables import Table

    if _kinds(files, shape) == {"ubi"}:
        yield from click_pages.ubi(files, tally)
        return
    for path in files:
        kind = log_format(path) if shape is None else shape
        if kind in ("jsonl", "tiangong"):
            yield from click_pages.read_pages(path, tally, kind=kind)
        elif kind == "yandex":
            yield from click_pages.yandex(path, tally)
        elif kind == "baidu-ultr":
            yield from click_pages.baidu(path, tally)
        else:
            yield from click_pages.gathered_pages(Table(path, kind, columns, first_position), tally)


def _kinds(files: list[Path], shape: str | None) -> set[str]:
    """What the files are; documents of UBI stand for themselves, as one of them says little without the others."""
    kinds = {log_format(path) if shape is None else shape for path in files}
    if "ubi" in kinds and len(kinds) > 1:
        raise ValueError(f"files of UBI and of {', '.join(sorted(kinds - {'ubi'}))} cannot be read together")
    return kinds


def _padded(rows: list[list[Any]], m: int, fill: float) -> NDArray[Any]:
    return np.array([row + [fill] * (m - len(row)) for row in rows])


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
    format, columns, first_position : object, optional
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
        Each with `items`, the names by position, and `clicks` or `relevance`; with `query`, `propensities` and
        `features` where the log has them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pages.jsonl"
    ...     _ = path.write_text('{"q": "cat", "docs": [7, 9, 8], "clicks": [8, 7]}\n')
    ...     list(read_lists(path))
    [{'items': ['7', '9', '8'], 'clicks': [1, 0, 1], 'query': 'cat'}]
    """
    require("polars", extra="data", for_="reading lists")
    one_of("feedback", feedback, ("clicks", "relevance"))
    if format is not None:
        one_of("format", format, SHAPES)
    first = whole("first_position", first_position, at_least=0)
    from rankloop.data.click_counts import Tally
    from rankloop.data.click_tables import Table

    tally = Tally(bad_rows=Counter() if bad_rows is None else bad_rows)
    files = find_files(paths)
    tables = [Table(path, format or log_format(path), columns or {}, first) for path in files]
    kinds = {table.kind for table in tables}
    if kinds <= {"parquet", "csv"}:
        from rankloop.data.click_pages import lists_of_table

        return chain.from_iterable(lists_of_table(table, tally, query, feedback) for table in tables)
    if feedback != "clicks":
        raise ValueError(f"feedback must be 'clicks' for logs of {', '.join(kinds)}, got {feedback!r}")
    return _lists(_pages_of(files, tally, format, columns or {}, first), tally, query)


def _lists(pages: Iterator[Page], tally: Tally, query: str | None) -> Iterator[dict[str, Any]]:
    from rankloop.data.click_pages import CANDIDATES, FEATURES

    for page in pages:
        if query is not None and page.query != query:
            continue
        made: dict[str, Any] = {"items": page.shown, "clicks": page.clicked}
        if page.query:
            made["query"] = page.query
        chances = page.propensity
        # A number is that of the whole list, which says nothing of its positions.
        if isinstance(chances, list):
            made["propensities"] = chances
        if FEATURES in page.fields:
            names = [str(one) for one in page.fields.get(CANDIDATES, page.shown)]
            rows = dict(zip(names, page.fields[FEATURES], strict=False))
            if not set(page.shown) <= rows.keys():
                tally.bad_rows["something shown that has no features"] += 1
                continue
            made["features"] = [rows[item] for item in page.shown]
        yield made


def read_logged_lists(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    first_position: int = 1,
    item_ids: Sequence[str] | None = None,
    query: str | None = None,
    name: str | None = None,
) -> LoggedLists:
    r"""Read lists with the probability that each was shown, plain or gzip.

    Parameters
    ----------
    path : str or Path
        CSV or Parquet with a row for each impression (columns item, position, click, propensity; each row is a
        list of one item, at its position); or JSON lines, a page each, whose field ``"propensity"`` is a number
        for the whole list or a list with one for each position. Pages must be of one length, unless they have a field
        ``"features"``, a row for each of ``"candidates"`` (by default for what was shown): then each list has items
        of its own, numbered as its candidates. So it is for the Parquet table that `rankloop export` writes for lists
        with features: its rows are put together by list.
    format, columns, first_position : object, optional
        As for `read_clicks`. Of UBI are read the lists of `rankloop export --ubi`, which have propensities; `path` may
        be a folder then.
    item_ids : sequence of str, optional
        The items by name, so that two logs number them alike; by default those that occur, in order.
    query : str, optional
        Only lists of this query; by default all, whose number is then in `n_queries`.
    name : str, optional
        As for `read_clicks`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "shown.csv"
    ...     _ = path.write_text("item,position,click,propensity\na,1,0,0.5\nb,1,1,0.5\nb,2,0,0\n")
    ...     log = read_logged_lists(path)
    >>> log, dict(log.bad_rows)
    (LoggedLists('shown': 2 lists of 1, 2 items, 1 click; 1 bad row left out),
     {'a propensity that is not above 0 and up to 1': 1})
    """
    require("polars", extra="data", for_="reading a log of lists")
    from rankloop.data.click_counts import Tally
    from rankloop.data.click_pages import pages_of_table, read_pages
    from rankloop.data.click_tables import Table

    path = Path(path)
    files = find_files(path)
    kind = log_format(files[0]) if format is None else one_of("format", format, (*FORMATS, "ubi"))
    first = whole("first_position", first_position, at_least=0)
    if kind == "tiangong":
        raise ValueError(f"format must be one with propensities, got {kind!r} ({path})")
    tally, table = Tally(), Table(path, kind, columns or {}, first)
    queries: set[str] = set()
    bad_rows, called = tally.bad_rows, plain_name(path) if name is None else name
    if _has_features(path, kind):
        if item_ids is not None:
            raise ValueError("item_ids must be left out: lists with features have items of their own")
        pages = pages_of_table(table, tally) if kind == "parquet" else read_pages(path, tally, kind=kind)
        lists = _with_features(path, _of_query(path, pages, query, queries), bad_rows, called)
        return replace(lists, n_queries=1 if query is not None else len(queries))
    if kind in ("jsonl", "ubi"):
        pages = read_pages(path, tally, kind=kind) if kind == "jsonl" else _with_propensities(files, tally)
        names, fields = _pages(path, _of_query(path, pages, query, queries), tally)
    else:
        names, fields = _rows(table, tally, query, queries)
    if len(names) == 0:
        raise ValueError(f"{path}: no row to read{tally.reasons()}")
    known_names, numbers = np.unique(names, return_inverse=True)
    occurring = known_names.tolist()
    ids = sorted(occurring, key=lambda one: (len(one), one)) if item_ids is None else list(item_ids)
    known = {one: number for number, one in enumerate(ids)}
    unknown = [one for one in occurring if one not in known]
    if unknown:
        raise ValueError(f"item_ids must name every item of {path}, {unknown[0]!r} is missing")
    items = np.array([known[one] for one in occurring])[numbers].reshape(names.shape)
    fields["n_queries"] = 1 if query is not None else len(queries)
    return LoggedLists(items=items, item_ids=tuple(ids), bad_rows=bad_rows, name=called, **fields)


def _of_query(path: Path, pages: Iterable[Page], query: str | None, queries: set[str]) -> Iterator[Page]:
    """The pages of one query, or all; `queries` gets the name of each that there is."""
    for page in pages:
        queries.add(page.query)
        if query in (None, page.query):
            yield page
    _check_query(path, query, queries)


def _check_query(path: Path, query: str | None, queries: set[str]) -> None:
    """ArgumentError where the log has other queries only."""
    if query is not None and queries and query not in queries:
        known = sorted(queries - {""})
        more = f" and {len(known) - 10:,} more" if len(known) > 10 else ""
        there = f"one of {', '.join(known[:10])}{more}" if known else "left out: the log names no queries"
        raise ArgumentError("query", f"query must be {there} ({path}), got {query!r}")


def _has_features(path: Path, kind: str) -> bool:
    from rankloop.data.click_counts import Tally
    from rankloop.data.click_pages import FEATURES, read_pages
    from rankloop.data.click_tables import read_header

    if kind == "parquet":
        return FEATURES in read_header(path, kind)
    if kind != "jsonl":
        return False
    first = next(read_pages(path, Tally(), kind=kind), None)
    return first is not None and FEATURES in first.fields


def _rows(table: Table, tally: Tally, query: str | None, queries: set[str]) -> tuple[Any, dict[str, Any]]:
    """Rows of a table as lists of one item each."""
    from rankloop.data.click_pages import logged_rows

    rows = logged_rows(table, tally)
    queries.update(rows["query"].unique().to_list())
    if query is not None:
        _check_query(table.path, query, queries)
        rows = rows.filter(rows["query"] == query)
    fields = {
        "clicks": rows["clicks"].to_numpy()[:, None],
        "positions": rows["position"].to_numpy()[:, None],
        "propensities": rows["propensity"].to_numpy()[:, None],
    }
    return rows["item"].to_numpy()[:, None].astype(np.str_), fields


def _with_propensities(files: list[Path], tally: Tally) -> Iterator[Page]:
    """The pages of UBI that rankloop drew; those that another system ordered have no propensities."""
    from rankloop.data.click_pages import ubi

    for page in ubi(files, tally):
        if page.fields:
            yield page
        else:
            tally.bad_rows["a list without propensities"] += 1


def _pages(path: Path, pages: Iterable[Page], tally: Tally) -> tuple[Any, dict[str, Any]]:
    """Pages of one length as lists."""
    from rankloop.data.click_pages import PROPENSITY
    from rankloop.data.click_tables import BAD_CHANCE

    shown: list[list[str]] = []
    clicks: list[list[int]] = []
    chances: list[Any] = []
    for page in pages:
        chance = page.propensity
        if not any(name in page.fields for name in PROPENSITY):
            malformed(path, len(shown) + 1, f"no field {' or '.join(PROPENSITY)}")
        if shown and len(page.shown) != len(shown[0]):
            tally.bad_rows["a list of another length than the first"] += 1
        elif not _are_chances(chance, len(page.shown)) or _other_kind(chance, chances):
            tally.bad_rows[BAD_CHANCE] += 1
        else:
            shown.append(page.shown)
            clicks.append(page.clicked)
            chances.append(chance)
    if not shown:
        return np.empty((0, 1), object), {}
    which = "propensities" if isinstance(chances[0], list) else "list_propensities"
    return np.array(shown), {"clicks": np.array(clicks), which: np.array(chances, np.float64)}


def _are_chances(chance: Any, length: int) -> bool:
    """Whether these are probabilities: one for the list, or one for each of its positions."""
    each = chance if isinstance(chance, list) else [chance]
    right = not isinstance(chance, list) or len(each) == length
    return right and all(isinstance(one, int | float) and 0 < one <= 1 for one in each)


def _other_kind(chance: Any, before: list[Any]) -> bool:
    return bool(before) and isinstance(chance, list) != isinstance(before[0], list)


def _with_features(path: Path, pages: Iterable[Page], bad_rows: Counter[str], name: str) -> LoggedLists:
    """Pages whose candidates bring features: what each could have shown, what it did, and with which probability."""
    from rankloop.data.click_pages import CANDIDATES, FEATURES
    from rankloop.data.click_tables import BAD_CHANCE

    parts: list[NDArray[np.float64]] = []
    shown: list[list[int]] = []
    clicks: list[list[int]] = []
    chances: list[Any] = []
    for page in pages:
        chance = page.propensity
        if _other_kind(chance, chances):
            bad_rows["a propensity of another kind than the first"] += 1
            continue
        if not _are_chances(chance, len(page.shown)):
            bad_rows[BAD_CHANCE] += 1
            continue
        try:
            features = read_features(page.fields.get(FEATURES), parts[0].shape[1] if parts else None)
        except ValueError:
            bad_rows["features that are not rows of as many finite numbers as the first"] += 1
            continue
        # Without a list of candidates, they are what was shown, by position.
        candidates = page.fields.get(CANDIDATES, page.shown)
        names = [str(one) for one in candidates] if isinstance(candidates, list) else []
        number = {one: number for number, one in enumerate(names)}
        if len(features) != len(number):
            bad_rows["another number of candidates than of rows of features"] += 1
        elif not set(page.shown) <= set(number):
            bad_rows["something shown that is not among the candidates"] += 1
        else:
            parts.append(features.astype(np.float64))
            shown.append([number[one] for one in page.shown])
            clicks.append(page.clicked)
            chances.append(chance)
    if not shown:
        malformed(path, 1, f"no good page; bad ones: {dict(bad_rows)}")
    m = max(len(row) for row in shown)
    single = not isinstance(chances[0], list)
    return LoggedLists(
        items=_padded(shown, m, -1),
        clicks=_padded(clicks, m, 0),
        propensities=None if single else _padded(chances, m, 1.0),
        list_propensities=np.array(chances, np.float64) if single else None,
        features=Candidates.read(parts),
        bad_rows=bad_rows,
        name=name,
    )
