"""Lists that were answered, as a table and to estimate how another ranker would have done.

The table has a row for each position with feedback, with the probability that it was so shown.
`data.read_logged_lists` reads the Parquet file, and `logs.evaluate` then estimates the value of another policy.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker, Ranking
from rankloop.extras import require
from rankloop.serving.log import records
from rankloop.serving.log.candidate_lists import is_chosen
from rankloop.serving.log.digests import check_row
from rankloop.serving.log.fold import Fold, learnt_rows, pages
from rankloop.serving.log.randomness import Draws, key_of
from rankloop.serving.log.records import DEFAULTS, Config, Decision, Row, read_history, unpack
from rankloop.serving.log.snapshots import config_fold
from rankloop.serving.log.stored_features import (
    StoredFeatures,
    candidate_names,
    features_of,
    request_of,
)
from rankloop.serving.privacy import key_name
from rankloop.serving.registry import build, has_items
from rankloop.serving.stores.contract import Store

_GROUP = 50_000  # rows in memory at once
COLUMNS = {  # with Polars' names of their types
    "decision": "String",
    "seq": "Int64",
    "model_seq": "Int64",
    "at": "Datetime",
    "item": "String",
    "position": "Int32",
    "click": "Int8",
    "relevance": "Float64",
    "propensity": "Float64",
    "explored": "Boolean",
    "delay_seconds": "Float64",
    "context_erased": "Boolean",
}


class Answered(NamedTuple):
    """A list that was answered: its row, the decision, the names that were shown, and what came back, by position.

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
    async for page in pages(store, ranker):
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
    state, learnt = learnt_rows(fold, story)
    if state is None:
        return None
    for answer, values in learnt:
        seconds = state.delay(answer, at=answer.at)
        if seconds is not None:  # otherwise nobody answered
            return Answered(
                row=row,
                decision=state.decision,
                shown=fold.names(state.decision),
                values=values,
                seconds=seconds,
                stored=fold.stored,
                erased=key_name(state.decision.context) in erased,
            )
    return None


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


def _check_writable(path: Path) -> None:
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")


async def export(
    store: Store, ranker: str, path: Path, *, tell: Callable[[str], object] = lambda problem: None
) -> int:
    """Write the positions of all lists that feedback came on to a Parquet file; how many rows that were.

    Lists of features have theirs in it. tell: is told of each row that cannot be read; it is left out, and the rest is
    written. ValueError where the file cannot be.
    """
    _check_writable(path)
    require("polars", extra="data", for_="exporting to Parquet")
    import polars as pl

    schema: dict[str, Any] = {name: getattr(pl, kind) for name, kind in COLUMNS.items()}
    schema["at"] = pl.Datetime("ms", "UTC")
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


def ubi_documents(one: Answered, ranker: str) -> list[dict[str, Any]]:
    """A list and what came back on it as documents of UBI, each behind the line that a bulk request has for it.

    Ordinals count from 0, as OpenSearch's workbench counts ranks. The words of the search are what a request says as
    ``user_query`` in its context.
    """
    decision, context = one.decision, one.decision.context
    words = context.get("user_query", "") if isinstance(context, dict) and not one.erased else ""
    about = {"application": ranker, "query_id": one.row.event_id, "user_query": str(words)}
    attributes: dict[str, Any] = {"explored": decision.explored, "model_seq": decision.model_seq}
    if decision.propensities is not None:
        attributes["propensities"] = np.frombuffer(decision.propensities, "<f8").tolist()
    search = {
        "timestamp": _iso(one.row.at),
        "query_response_id": one.row.event_id,
        "query_response_hit_ids": one.shown,
        "query_attributes": attributes,
    }
    found: list[dict[str, Any]] = [{"index": {"_index": "ubi_queries"}}, about | search]
    for action, after in (("impression", 0.0), ("click", one.seconds)):
        for place, value in enumerate(one.values.tolist()):
            if action == "impression" or value > 0:
                thing = {"object": {"object_id": one.shown[place]}, "position": {"ordinal": place}}
                event = {"action_name": action, "timestamp": _iso(one.row.at + round(1000 * after))}
                found += [{"index": {"_index": "ubi_events"}}, about | event | {"event_attributes": thing}]
    return found


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def export_ubi(
    store: Store, ranker: str, path: Path, *, tell: Callable[[str], object] = lambda problem: None
) -> int:
    """Write the lists that feedback came on, and their events, as lines of UBI; how many lists that were."""
    _check_writable(path)
    n_lists = 0
    with path.open("wb") as file:
        async for one in answered_lists(store, ranker, tell):
            file.write(msgspec.json.Encoder().encode_lines(ubi_documents(one, ranker)))
            n_lists += 1
    return n_lists


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


# How another ranker would have done on a log, estimated from the rounds on which the two agree.


class Replay(msgspec.Struct):
    """Mean value of the logged lists, and of those of the other ranker, with a 95% confidence interval."""

    ranker: str
    other: str
    rounds: int
    matches: int
    logged: float
    value: float | None
    low: float | None
    high: float | None


async def replay(
    store: Store, ranker: str, *, other: str, parameters: dict[str, Any] | None = None
) -> Replay:
    """Play `other` on the log of `ranker`; ValueError where it does not take what is in the log.

    Feedback in the log counts where the other ranker shows the same item at the same position, divided by the
    probability with which the log's own ranker showed it there. The other ranker learns from the rounds in which all
    that was observed is also about its own list. On a log of random lists that is unbiased for its value with as much
    feedback (Li et al. 2011). Where the log prefers some lists, the other ranker learns more about those than it would
    by itself, and one that counts missing feedback as none is then misled: read the estimate with the number of
    matches.
    """
    first = await config_fold(store, ranker)
    own_items = has_items(other)
    if own_items != first.has_items:
        raise ValueError(f"{other} and {first.config.algorithm} do not take the same requests")
    names = list(first.config.items or [])
    given = parameters or {}
    if not own_items:
        given = {"n_features": first.ranker.n_features} | given
    config = Config(other, first.config.seed, names if own_items else None, given, defaults=DEFAULTS)
    player = build(config, n_items=len(names))
    if player.feedback.kind != first.ranker.feedback.kind:
        raise ValueError(
            f"{other} learns from {player.feedback.kind}, the log of {ranker!r} has {first.ranker.feedback.kind}"
        )
    draws = Draws()
    pay, weights, logged, matches = [], [], [], 0
    async for one in answered_lists(store, ranker):
        if one.decision.choice is not None or not is_chosen(one.decision):
            continue  # another ranker would have had other items to choose from, or the list was a baseline
        if own_items and not set(one.shown) <= set(names):
            continue  # from after a change of items
        request = request_of(player, one.stored, one.decision)
        mine = player.rank(request, rng=draws.generator(key_of(config.seed, f"replay {one.row.event_id}")))
        known = names if own_items else (candidate_names(one.stored, one.decision) or [])
        place = {name: i for i, name in enumerate(known)}
        theirs = np.array([place[name] for name in one.shown[: len(one.values)]], np.int64)
        shared = min(len(theirs), len(mine.items))
        agree = mine.items[:shared] == theirs[:shared]
        logged.append(float(one.values.sum()))
        chances = _chances(first.ranker, one, shared)
        if chances is None:
            pay.append(0.0)
            weights.append(0.0)
            continue
        weight = np.where(agree, 1.0 / chances, 0.0)
        pay.append(float((weight * one.values[:shared]).sum()))
        weights.append(float(weight.mean()) if shared else 0.0)
        if agree.all():
            matches += 1
            needed = player.feedback.length(len(mine.items))
            if needed <= len(one.values):
                player.learn(mine, one.values[:needed])
    return _summary(ranker, other, np.array(pay), np.array(weights), np.array(logged), matches)


def _chances(logged: Ranker, one: Answered, n: int) -> Any:
    """The probability of each shown (item, position); None where this round says nothing."""
    if one.decision.propensities is not None:
        return np.frombuffer(one.decision.propensities, "<f8")[:n]
    ranking = Ranking(
        np.frombuffer(one.decision.shown, "<i4").astype(np.int64),
        None,
        tuple(unpack(part) for part in one.decision.memo),
        one.decision.explored,
    )
    chance = logged.exploration_chance(ranking)
    # Only the rounds that explored count then.
    return None if not chance else np.full(n, chance)


def _summary(ranker: str, other: str, pay: Any, weights: Any, logged: Any, matches: int) -> Replay:
    n = len(pay)
    if weights.sum() == 0 if n else True:
        return Replay(ranker, other, n, matches, float(logged.mean()) if n else math.nan, None, None, None)
    # Self-normalised: the weights average to 1 only in the long run.
    value = float(pay.sum() / weights.sum())
    spread = float(np.sqrt(np.square(pay - value * weights).sum())) / float(weights.sum())
    reach = 1.96 * spread
    return Replay(ranker, other, n, matches, float(logged.mean()), value, value - reach, value + reach)
