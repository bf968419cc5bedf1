"""Logs with propensities, row by row, for off-policy evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankloop.arguments import one_of, whole
from rankloop.data.clicks.read import FORMATS, log_format, plain_name
from rankloop.extras import require
from rankloop.feedback import LoggedLists


def read_logged_lists(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    first_position: int = 1,
    item_ids: Sequence[str] | None = None,
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
    format : str, optional
        As for `read_clicks`.
    columns : mapping of str to str, optional
        As for `read_clicks`.
    first_position : int, optional
        As for `read_clicks`.
    item_ids : sequence of str, optional
        The items by name, so that two logs number them alike; by default those that occur, in order.
    name : str, optional
        As for `read_clicks`.

    Returns
    -------
    LoggedLists
        The lists, with clicks and propensities.

    Raises
    ------
    ValueError
        For a file of another format, and for one without a valid row.

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
    require("polars", "pyarrow", extra="data", for_="reading a log of lists")
    path = Path(path)
    kind = log_format(path) if format is None else one_of("format", format, FORMATS)
    first = whole("first_position", first_position, at_least=0)
    bad_rows: Counter[str] = Counter()
    if kind == "tiangong":
        raise ValueError(f"format must be one with propensities, got {kind!r} ({path})")
    if _has_features(path, kind):
        if item_ids is not None:
            raise ValueError("item_ids must be left out: lists with features have items of their own")
        from rankloop.data.clicks.tally import Tally
        from rankloop.data.feature_pages import read_feature_pages

        tally = Tally(bad_rows=bad_rows)
        if kind == "parquet":
            from rankloop.data.clicks.list_tables import table_pages

            pages = table_pages(path, tally, dict(columns or {}), first)
        else:
            from rankloop.data.clicks.pages import read_pages

            pages = read_pages(path, tally, kind=kind)
        return read_feature_pages(path, pages, bad_rows, plain_name(path) if name is None else name)
    read = _read_pages if kind == "jsonl" else _read_table
    names, fields = read(path, kind, bad_rows, dict(columns or {}), first)
    if len(names) == 0:
        reasons = ", ".join(f"{count:,} with {reason}" for reason, count in bad_rows.items())
        raise ValueError(f"{path}: no row to read" + (f"; bad rows: {reasons}" if reasons else ""))
    found, numbers = np.unique(names, return_inverse=True)
    ids = sorted(found.tolist(), key=lambda one: (len(one), one)) if item_ids is None else list(item_ids)
    known = {one: number for number, one in enumerate(ids)}
    unknown = [one for one in found.tolist() if one not in known]
    if unknown:
        raise ValueError(f"item_ids must name every item of {path}, {unknown[0]!r} is missing")
    items = np.array([known[one] for one in found.tolist()])[numbers].reshape(names.shape)
    return LoggedLists(
        items=items,
        item_ids=tuple(ids),
        bad_rows=bad_rows,
        name=plain_name(path) if name is None else name,
        **fields,
    )


def _has_features(path: Path, kind: str) -> bool:
    if kind == "parquet":
        from rankloop.data.clicks.list_tables import has_features

        return has_features(path)
    if kind != "jsonl":
        return False
    from rankloop.data.clicks.pages import read_pages
    from rankloop.data.clicks.tally import Tally
    from rankloop.data.feature_pages import FEATURES

    first = next(read_pages(path, Tally(), kind=kind), None)
    return first is not None and FEATURES in first.fields


def _read_table(
    path: Path, kind: str, bad_rows: Counter[str], columns: dict[str, str], first_position: int
) -> tuple[Any, dict[str, Any]]:
    import polars as pl

    from rankloop.data.clicks.batches import batches
    from rankloop.data.clicks.columns import click_column, find_columns, whole_column
    from rankloop.data.clicks.rows import drop_bad, row_checks
    from rankloop.data.clicks.tally import Tally

    found = find_columns(path, kind, columns)
    wanted: dict[str, str] = {}
    for needed in ("item", "position", "click", "propensity"):
        if needed not in found:
            raise ValueError(f"{path}: no column for {needed}; name it with columns={{{needed!r}: ...}}")
        wanted[needed] = found[needed]
    tally = Tally(bad_rows=bad_rows)
    parts = []
    for batch in batches(path, kind, wanted, tally):
        types = batch.schema
        batch = batch.with_columns(
            position=whole_column(types["position"], "position") - first_position,
            clicks=click_column(types["click"]),
            propensity=pl.col("propensity").cast(pl.Float64, strict=False),
            item=pl.col("item").cast(pl.String),
            query=pl.lit(""),
        )
        chance = pl.col("propensity")
        checks = row_checks(first_position)
        checks.append(("a propensity that is not above 0 and up to 1", ~((chance > 0) & (chance <= 1))))
        parts.append(drop_bad(batch, tally, checks).select("item", "position", "clicks", "propensity"))
    rows = pl.concat(parts) if parts else pl.DataFrame({"item": []})
    if rows.height == 0:
        return np.empty((0, 1), object), {}
    fields = {
        "clicks": rows["clicks"].to_numpy()[:, None],
        "positions": rows["position"].to_numpy()[:, None],
        "propensities": rows["propensity"].to_numpy()[:, None],
    }
    return rows["item"].to_numpy()[:, None].astype(np.str_), fields


def _read_pages(
    path: Path, kind: str, bad_rows: Counter[str], columns: dict[str, str], first_position: int
) -> tuple[Any, dict[str, Any]]:
    from rankloop.data.clicks.pages import PROPENSITY, read_pages
    from rankloop.data.clicks.tally import Tally
    from rankloop.data.text_files import malformed

    shown: list[list[str]] = []
    clicks: list[list[int]] = []
    chances: list[Any] = []
    for page in read_pages(path, Tally(bad_rows=bad_rows), kind=kind):
        name = next((name for name in PROPENSITY if name in page.fields), None)
        if name is None:
            malformed(path, len(shown) + 1, f"no field {' or '.join(PROPENSITY)}")
        chance = page.fields[name]
        if shown and len(page.shown) != len(shown[0]):
            bad_rows["a list of another length than the first"] += 1
        elif not _good(chance, len(page.shown), chances):
            bad_rows["a propensity that is not above 0 and up to 1"] += 1
        else:
            shown.append(page.shown)
            clicks.append(page.clicked)
            chances.append(chance)
    if not shown:
        return np.empty((0, 1), object), {}
    which = "propensities" if isinstance(chances[0], list) else "list_propensities"
    return np.array(shown), {"clicks": np.array(clicks), which: np.array(chances, np.float64)}


def _good(chance: Any, length: int, before: list[Any]) -> bool:
    """Probabilities, of the same kind as the previous ones."""
    if before and isinstance(chance, list) != isinstance(before[0], list):
        return False
    each = chance if isinstance(chance, list) else [chance]
    right = not isinstance(chance, list) or len(each) == length
    return right and all(isinstance(one, int | float) and 0 < one <= 1 for one in each)
