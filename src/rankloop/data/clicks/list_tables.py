"""Lists from tables of impressions, with their propensities and features, such as `rankloop export` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from rankloop.data.clicks.batches import batches
from rankloop.data.clicks.columns import click_column, find_columns, read_header, whole_column
from rankloop.data.clicks.pages import PROPENSITY, Page
from rankloop.data.clicks.rows import drop_bad, row_checks
from rankloop.data.clicks.tally import Tally
from rankloop.data.feature_pages import CANDIDATES, FEATURES

_OTHERS, _OTHER_FEATURES = (
    "others",
    "other_features",
)  # candidates that nothing came back on, in the first row
_KEPT = ("propensity", "relevance", FEATURES, _OTHERS, _OTHER_FEATURES)
_CHANCE = "a propensity that is not above 0 and up to 1"


def table_lists(
    path: Path,
    tally: Tally,
    kind: str,
    columns: dict[str, str],
    first_position: int,
    query: str | None,
    feedback: str,
) -> Iterator[dict[str, Any]]:
    """Lists of a table that has a column for the page, in the order in which they begin."""
    for page in _pages(path, tally, kind, columns, first_position, query, feedback):
        yield _list(page, feedback)


def table_pages(path: Path, tally: Tally, columns: dict[str, str], first_position: int) -> Iterator[Page]:
    """Lists of a Parquet table with features of all candidates, for `feature_pages.read_feature_pages`."""
    for page in _pages(path, tally, "parquet", columns, first_position, None, "clicks"):
        others = (page.get(_OTHERS) or [None])[0] or []
        other_rows = (page.get(_OTHER_FEATURES) or [None])[0] or []
        fields = {
            PROPENSITY[0]: page.get("propensity"),
            CANDIDATES: page["item"] + others,
            FEATURES: page[FEATURES] + other_rows,
        }
        yield Page("", page["item"], page["clicks"], fields)


def has_features(path: Path) -> bool:
    """Whether a Parquet table has a column of features."""
    return FEATURES in read_header(path, "parquet")


def _pages(
    path: Path,
    tally: Tally,
    kind: str,
    columns: dict[str, str],
    first_position: int,
    query: str | None,
    feedback: str,
) -> Iterator[dict[str, Any]]:
    found = find_columns(path, kind, columns)
    header = read_header(path, kind)
    found |= {name: name for name in _KEPT[1:] if name in header and name not in found.values()}
    needed = ["page", "item", "position", "click" if feedback == "clicks" else "relevance"]
    for name in needed if query is None else [*needed, "query"]:
        if name not in found:
            raise ValueError(
                f"{path}: no column for {name}, which lists need; name it with columns={{{name!r}: ...}}"
            )
    kept = [name for name in _KEPT if name in found]
    wanted = {name: found[name] for name in dict.fromkeys([*needed, "query", *kept]) if name in found}
    rows = pl.concat(
        [
            _good(batch, tally, first_position, query, feedback, kept)
            for batch in batches(path, kind, wanted, tally)
        ]
        or [pl.DataFrame()]
    )
    if not rows.height:
        return
    values = [name for name in rows.columns if name != "page"]
    pages = rows.group_by("page", maintain_order=True).agg(pl.col(values).sort_by("position"))
    for page in pages.iter_rows(named=True):
        if page["position"] != list(range(len(page["position"]))):
            tally.bad_rows["a page with a position twice or left out"] += 1
        elif len(set(page["item"])) < len(page["item"]):
            tally.bad_rows["an id shown twice"] += 1
        else:
            yield page


def _good(
    batch: pl.DataFrame, tally: Tally, first_position: int, query: str | None, feedback: str, kept: list[str]
) -> pl.DataFrame:
    if query is not None:
        batch = batch.filter(pl.col("query").cast(pl.String) == query)
    types = batch.schema
    made = {"position": whole_column(types["position"], "position") - first_position}
    if feedback == "clicks":
        made["clicks"] = click_column(types["click"])
    else:
        made["clicks"] = pl.col("relevance").cast(pl.Float64, strict=False)
    batch = batch.with_columns(**made)
    checks = [("no page", pl.col("page").is_null())]
    if "propensity" in kept:
        chance = pl.col("propensity").cast(pl.Float64, strict=False)
        batch = batch.with_columns(propensity=chance)
        checks.append((_CHANCE, chance.is_not_null() & ~((chance > 0) & (chance <= 1))))
    if "query" not in batch.columns:
        batch = batch.with_columns(query=pl.lit(""))
    good = drop_bad(batch, tally, [*checks, *row_checks(first_position)])
    also = [name for name in kept if name != "relevance"]
    return good.select(pl.col("page", "item").cast(pl.String), "position", "clicks", *also)


def _list(page: dict[str, Any], feedback: str) -> dict[str, Any]:
    found = {"items": page["item"], feedback: page["clicks"]}
    chances, features = page.get("propensity"), page.get(FEATURES)
    if chances is not None and None not in chances:
        found["propensities"] = chances
    if features is not None and None not in features:
        found[FEATURES] = features
    return found
