"""The log as a table: a row for each position with feedback, with the probability that it was so shown.

`data.read_logged_lists` reads the Parquet file, and `logs.evaluate` then estimates the value of another policy.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.extras import require
from rankloop.serving.log import records
from rankloop.serving.log.decision_state import Outcome, replay_decision
from rankloop.serving.log.digests import check_row
from rankloop.serving.log.fold import Fold, at_deadline
from rankloop.serving.log.records import Decision, Row, read_history
from rankloop.serving.log.sealed_context import key_name
from rankloop.serving.log.snapshots import config_fold
from rankloop.serving.log.stored_features import (
    StoredFeatures,
    candidate_names,
    features_of,
)
from rankloop.serving.stores.contract import Store

_PAGE = 1_000
_GROUP = 50_000  # rows in memory at once


class Answered(NamedTuple):
    """A list that was answered: its row, the ticket, the names that were shown, and what came back, by position.

    stored: the catalogue of stored features, for `stored_features.features_of`. erased: whether its context was.
    """

    row: Row
    decision: Decision
    shown: list[str]
    values: NDArray[np.float64]
    seconds: float
    stored: StoredFeatures
    erased: bool = False


async def answered_lists(
    store: Store, ranker: str, tell: Callable[[str], object] = lambda problem: None
) -> AsyncIterator[Answered]:
    """Every list that an answer counted for, in the order in which they were shown.

    tell: is told of rows that cannot be read; they are left out.
    """
    fold = await config_fold(store, ranker)
    fold.policies = await read_history(store, ranker, fold.config.policy)
    erased = await store.erased_keys()
    after = 0
    while page := await store.read(ranker, after=after, limit=_PAGE):
        after = page[-1].seq
        decisions = []
        for row in page:
            try:
                check_row(row)
                follow_names(fold, row)
            except (ValueError, RecursionError) as error:
                tell(f"{error or type(error).__name__}; it is left out")
            else:
                if row.kind == "decision":
                    decisions.append(row)
        stories = await store.stories(ranker, [row.event_id for row in decisions]) if decisions else {}
        for row in decisions:
            try:
                answered = _answered(fold, row, stories[row.event_id], erased)
            except (ValueError, IndexError, RecursionError) as error:
                tell(
                    f"the list of row {row.seq} cannot be read and is left out: {error or type(error).__name__}"
                )
                continue
            if answered is not None:
                yield answered


def _answered(fold: Fold, row: Row, story: list[Row], erased: set[str]) -> Answered | None:
    for one in story:
        check_row(one)
    found = _answer(fold, story)
    if found is None:
        return None
    decision = records.read_decision(row.body)
    seconds = (found[1] - row.at) / 1000
    is_erased = key_name(decision.context) in erased
    return Answered(row, decision, fold.names(decision), found[0], seconds, fold.stored, is_erased)


def follow_names(fold: Fold, row: Row) -> None:
    """Know the names of items that come with this row; all that reading the lists of a log needs of them."""
    if not fold.has_items:
        if row.kind == "items":
            fold.stored.follow(records.read_body(row), row.seq)
        return
    change = records.read_body(row) if row.kind in ("items", "reset") else None
    for name in (change.add if row.kind == "items" else change.items or ()) if change is not None else ():
        if name not in fold.number:
            fold.number[name] = len(fold.catalogue)
            fold.catalogue.append(name)


def _answer(fold: Fold, story: list[Row]) -> tuple[NDArray[np.float64], int] | None:
    """What was learnt from feedback on a list, and when that came."""
    told: dict[int, Outcome] = {}
    state = replay_decision(
        story, through=1 << 60, policy=fold.policies, silence_counts=fold.silence_counts, told=told
    )
    if state is None:
        return None
    if state.heard and state.expired:
        values = at_deadline(state, fold.policies.at(state.seq), fold.ranker)
        return None if values is None else (values, state.heard[-1][1])
    for row in story:
        if row.kind == "feedback" and told[row.seq].learns:
            return np.frombuffer(records.read_body(row).values, "<f8"), row.at
    return None


async def export(
    store: Store, ranker: str, path: Path, *, tell: Callable[[str], object] = lambda problem: None
) -> int:
    """Write the positions of all lists that feedback came on to a Parquet file, with features where lists have them.

    Parameters
    ----------
    store : Store
        Where the log is.
    ranker : str
        Whose log.
    path : Path
        The file to write.
    tell : callable, optional
        Is told of each row that cannot be read; it is left out, and the rest is written.

    Returns
    -------
    int
        How many rows were written.

    Raises
    ------
    ValueError
        Where the file cannot be written.
    """
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")
    require("polars", extra="data", for_="exporting to Parquet")
    import polars as pl

    schema: dict[str, Any] = {
        "decision": pl.String,
        "seq": pl.Int64,
        "model_seq": pl.Int64,
        "at": pl.Datetime("ms", "UTC"),
        "item": pl.String,
        "position": pl.Int32,
        "click": pl.Int8,
        "relevance": pl.Float64,
        "propensity": pl.Float64,
        "explored": pl.Boolean,
        "delay_seconds": pl.Float64,
        "context_erased": pl.Boolean,
    }
    has_features = not (await config_fold(store, ranker)).has_items
    if has_features:
        row = pl.List(pl.Float32)
        schema |= {"features": row, "others": pl.List(pl.String), "other_features": pl.List(row)}
    written = 0
    # In parts, then put together as a stream: however long the log, a group of rows is held.
    with tempfile.TemporaryDirectory(prefix="rankloop-export-") as folder:
        parts: list[Path] = []

        def write(group: list[dict[str, Any]]) -> None:
            parts.append(Path(folder, f"{len(parts)}.parquet"))
            pl.DataFrame(group, schema=schema, orient="row").write_parquet(parts[-1])

        group: list[dict[str, Any]] = []
        async for one in answered_lists(store, ranker, tell):
            group += with_features(one) if has_features else positions(one)
            if len(group) >= _GROUP:
                write(group)
                written += len(group)
                group = []
        write(group)
        pl.scan_parquet(parts).sink_parquet(path)
    return written + len(group)


def positions(one: Answered) -> list[dict[str, Any]]:
    """The rows of the table for one list: a row for each position with feedback."""
    chances = None
    if one.decision.propensities is not None:
        chances = np.frombuffer(one.decision.propensities, "<f8")
    return [
        {
            "decision": one.row.event_id,
            "seq": one.row.seq,
            "model_seq": one.decision.model_seq,
            "at": one.row.at,
            "item": one.shown[place],
            "position": place + 1,
            "click": int(value > 0),
            "relevance": float(value),
            "propensity": None if chances is None else float(chances[place]),
            "explored": one.decision.explored,
            "delay_seconds": one.seconds,
            "context_erased": one.erased,
        }
        for place, value in enumerate(one.values.tolist())
    ]


def with_features(one: Answered) -> list[dict[str, Any]]:
    """The same with the features of each item, and in the first row the candidates without feedback and theirs."""
    rows: list[dict[str, Any]] = positions(one)
    features, names = features_of(one.stored, one.decision), candidate_names(one.stored, one.decision)
    if features is None or names is None or not rows:
        return rows
    shown = np.frombuffer(one.decision.shown, "<i4")[: len(rows)].tolist()
    for row, number in zip(rows, shown, strict=True):
        if number < len(features):  # those behind were pinned
            row["features"] = features[number].tolist()
    others = sorted(set(range(len(features))) - set(shown))
    rows[0]["others"] = [names[number] for number in others]
    rows[0]["other_features"] = features[others].tolist()
    return rows
