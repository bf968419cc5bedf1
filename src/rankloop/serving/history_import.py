"""History from elsewhere, for a warm start: it becomes rows of a ranker's log, checked before anything is written."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from rankloop import base
from rankloop.base import Ranker
from rankloop.features import key_of
from rankloop.serving.admission import (
    Conflict,
    Limits,
    RequestError,
    check_names,
    check_size,
    checked_feedback,
    refuse,
)
from rankloop.serving.api import ImportAnswer, ItemName, Query
from rankloop.serving.log import records
from rankloop.serving.log.decision_state import Outcome
from rankloop.serving.log.digests import check_row, digest_of
from rankloop.serving.log.records import Entry, Import, Learnt, Packed, Row
from rankloop.serving.registry import build, carried

if TYPE_CHECKING:
    from rankloop.base import Environment
    from rankloop.feedback import ClickLog
    from rankloop.serving.engine import Engine
    from rankloop.serving.group_commit import Written
    from rankloop.serving.log.decision_state import RelatedRows
    from rankloop.serving.log.fold import Fold
    from rankloop.serving.stores.contract import Store
History = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=100)]


class ShownList(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A list that was shown elsewhere, best position first, and what came back on each position.

    propensities: the probability with which each item was shown where it was. features: a row for each item.
    query: what was searched for, for rankers that remember queries.
    """

    items: list[ItemName]
    clicks: list[float] | None = None
    relevance: list[float] | None = None
    propensities: list[float] | None = None
    features: list[list[float]] | None = None
    query: Query | None = None


class SavedArray(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An array of a ranker's state: little-endian bytes, in JSON as base64."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class SavedRanker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a ranker with the same algorithm and parameters: its items by number, and the rounds it learnt."""

    arrays: dict[str, SavedArray]
    rounds: Annotated[int, Meta(ge=1, le=(1 << 53) - 1)]
    items: list[ItemName] = []


class ImportRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """History to learn from: lists, or a state for a ranker that has learnt nothing yet.

    history: names the import; the same again changes nothing. By default it is derived from the lists. A long history
    comes in parts, counted from 1; it is learnt when the `last` has come. source: where it is from, in a few words.
    """

    lists: list[ShownList] = []
    state: SavedRanker | None = None
    history: History | None = None
    part: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    last: bool = True
    source: Annotated[str, Meta(max_length=200)] = ""


async def import_history(engine: Engine, name: str, request: ImportRequest) -> ImportAnswer:
    """Write one part of a history; the last one makes the ranker learn from all of them."""
    served = await engine.find_to_write(name)
    if (request.state is None) == (not request.lists):
        raise RequestError("send either lists or a state", field="lists")
    body = _body_of(served.fold, request, engine.limits)
    packed = records.encode(body)
    event_id = part_id(body.history, body.part)
    if await engine.store.find(name, "import", event_id) is None:
        _check_use(served.fold, body)
        for part in range(1, body.part):
            if await engine.store.find(name, "import", part_id(body.history, part)) is None:
                raise Conflict(f"part {part} of history {body.history!r} is missing", field="part")
    # What the source is called is not part of what makes two deliveries the same.
    digest = digest_of(records.encode(msgspec.structs.replace(body, source="")))
    return _answer(await engine.write(Entry(name, "import", event_id, packed, digest)), body.history)


def _answer(written: Written, history: str) -> ImportAnswer:
    outcome = written.outcome
    if not written.new or outcome is None:
        return ImportAnswer("duplicate", written.row.seq, history, duplicate=True)
    status: Any = outcome.status
    learnt, left_out = outcome.imported or (None, {})
    return ImportAnswer(status, written.row.seq, history, False, learnt, dict(left_out))


def _body_of(fold: Fold, request: ImportRequest, limits: Limits) -> Import:
    if request.state is not None:
        return _state_body(fold, request, request.state, limits)
    kind: Any = fold.ranker.feedback.kind
    names: dict[str, int] = {}
    for i, one in enumerate(request.lists):
        _check_list(fold, one, i)
        for item in one.items:
            names.setdefault(item, len(names))
    shape = len(request.lists), max(len(one.items) for one in request.lists)
    places, values = np.full(shape, -1, "<i4"), np.zeros(shape, "u1" if kind == "clicks" else "<f8")
    chances = None if request.lists[0].propensities is None else np.ones(shape)
    features = None
    if not fold.has_items:
        features = np.zeros((*shape, fold.ranker.n_features or 0), np.float32)
    for i, one in enumerate(request.lists):
        n = len(one.items)
        places[i, :n] = [names[item] for item in one.items]
        values[i, :n] = getattr(one, kind)
        if (one.propensities is None) != (chances is None):
            raise RequestError(
                "propensities must be given for all lists, or for none", field=f"lists[{i}].propensities"
            )
        if chances is not None:
            chances[i, :n] = one.propensities
        if features is not None and one.features is not None:
            features[i, :n] = one.features
    queries = None
    if fold.ranker.takes_queries:
        queries = records.pack(np.array([key_of(one.query or "") for one in request.lists], "<i8"))
    body = Import(
        history=request.history or "",
        part=request.part,
        last=request.last,
        source=request.source,
        form=kind,
        names=list(names),
        lists=records.pack(places),
        values=records.pack(values),
        propensities=None if chances is None else records.pack(chances),
        features=None if features is None else records.pack(features),
        queries=queries,
    )
    if request.history is not None:
        return body
    arrays = (body.lists, body.values, body.propensities, body.features, body.queries)
    packed = [one.data for one in arrays if one is not None]
    return msgspec.structs.replace(body, history=digest_of(kind, "\n".join(names), *packed).hex())


def _check_list(fold: Fold, one: ShownList, i: int) -> None:
    kind = fold.ranker.feedback.kind
    field = f"lists[{i}].{kind}"
    values = getattr(one, kind)
    if values is None or (one.clicks is not None and one.relevance is not None):
        raise RequestError(f"{fold.config.algorithm} learns from {kind}: send that alone", field=field)
    if not one.items or len(set(one.items)) < len(one.items):
        raise RequestError("items must be names, none twice", field=f"lists[{i}].items")
    checked_feedback(values, fold.ranker, len(one.items), field=field)
    if one.propensities is not None:
        field = f"lists[{i}].propensities"
        chances = np.array(one.propensities)
        if len(chances) != len(one.items) or not ((chances > 0) & (chances <= 1)).all():
            raise RequestError(
                f"propensities must be {len(one.items)} numbers above 0 and up to 1, got {one.propensities}",
                field=field,
            )
    _check_features(fold, one, f"lists[{i}].features")
    if fold.ranker.takes_queries and one.query is None:
        raise RequestError(f"{fold.config.algorithm} needs the query", field=f"lists[{i}].query")


def _check_features(fold: Fold, one: ShownList, field: str) -> None:
    if fold.has_items:
        if one.features is not None:
            raise RequestError(f"{fold.config.algorithm} takes no features", field=field)
        return
    d = fold.ranker.n_features
    rows = one.features or ([] if d else [[]] * len(one.items))
    if len(rows) != len(one.items) or any(len(row) != d for row in rows):
        raise RequestError(f"features must be {len(one.items)} rows of {d} numbers", field=field)
    with np.errstate(over="ignore"):
        packed = np.array(rows, np.float64).astype(np.float32)
    if not np.isfinite(packed).all():
        raise RequestError("features must be finite numbers of float32", field=field)


def _state_body(fold: Fold, request: ImportRequest, state: SavedRanker, limits: Limits) -> Import:
    if request.part != 1 or not request.last:
        raise RequestError("a state has one part", field="part")
    check_names(state.items, limits, field="state.items")
    if fold.has_items != bool(state.items):
        needs = "the names of its items" if fold.has_items else "no items"
        raise RequestError(f"the state of {fold.config.algorithm} needs {needs}", field="state.items")
    check_size(fold.config, limits, n_items=len(state.items))
    arrays = {name: Packed(one.dtype, one.shape, one.data) for name, one in sorted(state.arrays.items())}
    learnt = records.encode(Learnt(arrays, state.items, state.rounds))
    history = digest_of(learnt).hex() if request.history is None else request.history
    return Import(history=history, part=1, last=True, source=request.source, form="state", learnt=learnt)


def _check_use(fold: Fold, body: Import) -> None:
    """Refuse a part that would change nothing, while nothing has been written."""
    if fold.frozen:
        raise Conflict("the ranker is frozen: resume learning first")
    if body.form == "state":
        if fold.rounds:
            raise Conflict(
                f"the ranker has learnt from {fold.rounds:,} lists, and a state would replace that: reset it first",
                field="state",
            )
        refuse(lambda: _try_state(fold, records.decode(Learnt, body.learnt)), field="state")
        return
    learning = Learning(fold)
    learning.add(body, until_learnt=True)
    if not learning.learnt:
        ((reason, _),) = learning.left_out.most_common(1)
        raise RequestError(f"no list can be learnt from: {reason}", field="lists")


def _try_state(fold: Fold, learnt: Learnt) -> None:
    known = build(fold.config, n_items=len(learnt.active))
    known.load({name: records.unpack(part) for name, part in learnt.arrays.items()})
    if learnt.active != fold.items:
        carried(known, fold.config, before=learnt.active, names=fold.items)


# What is imported: a long history in parts, a state from a file, and a state from a simulation.

MOST_LISTS = 10_000  # in a part
_MOST_CELLS = 200_000  # names and numbers in a part: a few megabytes


class Part(NamedTuple):
    """Some lists of a history: which part of it they are, from 1, and whether they are the last."""

    lists: list[dict[str, Any]]
    number: int
    last: bool


def parts(lists: Iterable[dict[str, Any]], *, most_lists: int = MOST_LISTS) -> Iterator[Part]:
    """A history in parts, each small enough for one request.

    Examples
    --------
    >>> [(len(part.lists), part.number, part.last) for part in parts([{"items": ["a"]}] * 3, most_lists=2)]
    [(2, 1, False), (1, 2, True)]
    """
    held: list[dict[str, Any]] = []
    number, cells = 1, 0
    for one in lists:
        if len(held) >= most_lists or (held and cells >= _MOST_CELLS):
            yield Part(held, number, False)
            held, number, cells = [], number + 1, 0
        held.append(one)
        cells += len(one["items"]) * (3 + len(one.get("features", [[]])[0]))
    if held:
        yield Part(held, number, True)


def digest_of_files(files: Iterable[Path], *options: object) -> str:
    """What an import of these files is called: the same content read in the same way has the same name."""
    digest = hashlib.blake2b(repr(options).encode(), digest_size=16)
    for file in files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()


def saved_state(fold: Fold, path: Path) -> SavedRanker:
    """The state in a file that `Ranker.save` wrote, for a served ranker with the same algorithm and parameters."""
    saved = base.read_state(path)
    base.check_origin(saved, fold.ranker)
    arrays = {name: value for name, value in saved.items() if name != base.ORIGIN}
    rounds = int(arrays["t"].max()) if "t" in arrays else 1
    return _state(arrays, fold, max(rounds, 1))


def simulated_state(
    fold: Fold, log: ClickLog, *, rounds: int, seed: int, progress: bool | None = None
) -> SavedRanker:
    """The state of the ranker after a simulation with users fitted to a click log.

    A position-based model is fitted to the log. A ranker of clicks plays against it; for one of relevance each item is
    relevant with the probability of a click where it is examined. An item that is not in the log is as attractive as
    the mean of those that are.
    """
    from rankloop import logs, simulation  # which a service does without

    if not fold.has_items:
        raise ValueError(
            f"{fold.config.algorithm} takes its items with each request: a simulation needs a ranker with items"
        )
    found = logs.fit_pbm(log)
    attraction = _attraction(fold.items, found)
    ranker = build(fold.config, n_items=len(fold.items))
    world = _world(ranker, attraction, found.examination)
    simulation.play(ranker, world, rounds=rounds, seed=seed, progress=progress)
    return _state(ranker.state_arrays(), fold, rounds)


def _attraction(items: list[str], found: Any) -> NDArray[np.float64]:
    place = {name: i for i, name in enumerate(items)}
    total, shown = np.zeros(len(items)), np.zeros(len(items))
    for (_, item), value, times in zip(found.items, found.attraction, found.shown, strict=True):
        if item in place:
            total[place[item]] += value * times
            shown[place[item]] += times
    known = shown > 0
    if not known.any():
        raise ValueError(f"no item of the ranker is in the log: {items[0]!r}, for example, is not")
    mean = total / np.maximum(shown, 1.0)
    return np.where(known, mean, mean[known].mean())


def _world(ranker: Ranker, attraction: NDArray[np.float64], examination: NDArray[np.float64]) -> Environment:
    from rankloop import environments

    if ranker.feedback.kind != "clicks":
        return environments.FixedItems(environments.users.bernoulli(attraction))
    needed = ranker.n_positions or len(attraction)
    if len(examination) < needed:
        raise ValueError(
            f"the ranker shows {needed} positions, and the log has {len(examination)}: create it with fewer"
        )
    return environments.PositionBased(attraction=attraction, examination=examination[:needed])


def _state(arrays: Any, fold: Fold, rounds: int) -> SavedRanker:
    packed = {name: records.pack(np.asarray(value)) for name, value in arrays.items()}
    saved = {name: SavedArray(*msgspec.structs.astuple(one)) for name, one in packed.items()}
    return SavedRanker(saved, rounds, fold.items)


# In the log a history is one row or several, its parts. The parts before the last are kept and change nothing; the last
# makes the ranker learn from all of them at once. So a history that was interrupted has no effect, and sending it again
# completes it. Lists that the ranker cannot use, because an item is not there any more, say, are left out and counted.

UNKNOWN = "an item that the ranker does not have"
SHORT = "fewer positions than the ranker learns from"


class LoggedList(NamedTuple):
    """One list: places of its items in the names of the import, what came back, and what else is known of it."""

    places: NDArray[np.int64]
    values: NDArray[np.float64]
    propensities: NDArray[np.float64] | None
    features: NDArray[np.float32] | None
    query: int | None


def part_id(history: str, part: int) -> str:
    """The event ID of a part."""
    return f"{history}/{part}"


def lists_of(body: Import) -> Iterator[LoggedList]:
    """The lists of a part, one by one."""
    if body.lists is None or body.values is None:
        return
    places, values = records.unpack(body.lists).astype(np.int64), records.unpack(body.values).astype(float)
    chances = None if body.propensities is None else records.unpack(body.propensities)
    features = None if body.features is None else records.unpack(body.features)
    queries = None if body.queries is None else records.unpack(body.queries)
    for i, length in enumerate((places >= 0).sum(axis=1).tolist()):
        yield LoggedList(
            places[i, :length],
            values[i, :length],
            None if chances is None else chances[i, :length],
            None if features is None else features[i, :length],
            None if queries is None else int(queries[i]),
        )


class Learning:
    """A copy of a ranker that learns from the lists of a history, so that the ranker changes at once or not at all."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self.ranker: Ranker = build(fold.config, n_items=len(fold.active))
        self.ranker.load(fold.ranker.state_arrays())
        self.learnt = 0
        self.left_out: Counter[str] = Counter()

    def add(self, body: Import, *, until_learnt: bool = False) -> None:
        """Learn from a part; `until_learnt`: no further than its first list that can be learnt from."""
        here = np.array([self._fold.number.get(name, -1) for name in body.names], np.int64)
        if self._fold.has_items:
            here = np.where(here >= 0, self._fold.places(here), -1)
        for one in lists_of(body):
            reason = self.learn(one, here, body.names)
            if reason:
                self.left_out[reason] += 1
            else:
                self.learnt += 1
                if until_learnt:
                    return

    def learn(self, one: LoggedList, here: NDArray[np.int64], names: list[str]) -> str:
        """Learn from one list, where `here` are the ranker's numbers of the items; otherwise the reason why not."""
        ranker = self.ranker
        n = ranker.n_positions
        if n is None:
            items = np.arange(len(one.places))
            features = ranker.as_request(one.features, one.query, [names[i] for i in one.places.tolist()])
        else:
            items, features = here[one.places][:n], None
            if len(items) < n:
                return SHORT
            if (items < 0).any():
                return UNKNOWN
        chances = None if one.propensities is None else one.propensities[: len(items)].copy()
        values = one.values[: ranker.feedback.length(len(items))].copy()
        try:
            ranker.learn_logged(items, values, propensities=chances, features=features)
        except ValueError as error:
            return str(error)
        return ""


def learn_from(fold: Fold, row: Row, related: RelatedRows) -> Learning | None:
    """What the ranker learns from the history that ends in `row`; None where parts are missing. Changes nothing."""
    parts = [*related.parts.get(row.seq, []), row]
    if len(parts) != records.read_body(row).part:
        return None
    learning = Learning(fold)
    for one in parts:
        learning.add(records.read_body(one))
    return learning


def take(fold: Fold, row: Row, related: RelatedRows) -> Outcome:
    """Fold one row of a history. A frozen ranker, or one to which parts are missing, takes nothing."""
    body: Import = records.read_body(row)
    if not body.last:
        return Outcome("accepted")
    if fold.frozen:
        return Outcome("conflict")
    if body.form == "state":
        return _take_state(fold, body)
    learning: Learning | None = related.learning.pop(row.seq, None) or learn_from(fold, row, related)
    if learning is None:
        return Outcome("conflict")
    fold.ranker = learning.ranker
    fold.rounds += learning.learnt
    fold.counts.imported += learning.learnt
    return Outcome("accepted", learning.learnt > 0, (learning.learnt, dict(learning.left_out)))


def _take_state(fold: Fold, body: Import) -> Outcome:
    if fold.rounds:
        return Outcome("conflict")
    learnt = records.decode(Learnt, body.learnt)
    try:
        fold.take_over(learnt)
    except ValueError:
        return Outcome("conflict")
    fold.counts.imported += learnt.rounds
    return Outcome("accepted", True, (learnt.rounds, {}))


async def learn_ahead(fold: Fold, row: Row, related: RelatedRows) -> None:
    """Learn from a history in a thread, so that others are answered meanwhile, right before its last row is folded."""
    body: Import = records.read_body(row)
    if body.last and body.form != "state" and not fold.frozen:
        related.learning[row.seq] = await asyncio.to_thread(learn_from, fold, row, related)


async def find_parts(store: Store, ranker: str, new: list[Row], related: RelatedRows) -> None:
    """Read the earlier parts of every history that ends in these rows."""
    for row in new:
        if row.kind != "import":
            continue
        body: Import = records.read_body(row)
        if not body.last or body.part == 1:
            continue
        found = []
        for part in range(1, body.part):
            one = await store.find(ranker, "import", part_id(body.history, part))
            if one is not None and one.seq < row.seq:
                check_row(one)
                found.append(one)
        related.parts[row.seq] = found
