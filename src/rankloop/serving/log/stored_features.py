"""The catalogue of a ranker with features: vectors that are stored once, so that a request names the items only.

A list that is drawn from stored features says in its row which items it had, and the row of the log that it was drawn
from: together they name one vector of each item, because a vector that is replaced is kept as long as lists that were
drawn from it may be answered.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker
from rankloop.serving.log.records import ByReference, Config, Decision, Items, Packed, pack, unpack

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]
_INT = np.dtype("<i4")
_FLOAT = np.dtype("<f4")
REPLACED_BYTES = 64_000_000  # of replaced vectors that are kept for feedback, of one ranker
_ANY = 1 << 30  # features
_SLACK = 60_000  # milliseconds after a change in which lists drawn before it may still be written


class Replaced(msgspec.Struct, frozen=True, array_like=True):
    """A vector that an item had from row `since` on, and no longer from row `before` on; kept until `until`."""

    item: int
    since: int
    before: int
    until: int
    vector: bytes


class SavedFeatures(msgspec.Struct):
    """`StoredFeatures` for a snapshot: names of all items ever, numbers and vectors of the present ones."""

    names: list[str]
    numbers: list[int]
    since: list[int]
    vectors: Packed
    replaced: list[Replaced]
    feature_names: list[str]
    digest: bytes
    version: int


class Change(NamedTuple):
    """A change that was checked: a row of `vectors` for each of `add`, then of `update`."""

    add: list[str]
    retire: list[str]
    update: list[str]
    vectors: Floats
    feature_names: list[str] | None


class StoredFeatures:
    """The items whose features are stored, each with its present vector. `version`: the row that changed them last."""

    def __init__(self) -> None:
        self.names: list[str] = []  # of every item there ever was; its place is the item's number
        self.present: dict[str, int] = {}  # numbers, in the order in which the items came
        self.feature_names: list[str] = []
        self.version = 0
        self.digest = b""
        self.known: dict[str, int] = {}  # the numbers of all items there ever were
        self._slot = np.empty(0, np.int64)  # by item, where its vector is; -1 where it is retired
        self._vectors = np.empty((0, 0), np.float32)
        self._since = np.empty(0, np.int64)
        self._free: list[int] = []
        self._replaced: deque[Replaced] = deque()  # oldest first
        self._replaced_of: dict[int, deque[Replaced]] = {}  # the same by item

    @property
    def n_columns(self) -> int:
        """How many features are stored for each item; 0 before there is one."""
        return self._vectors.shape[1]

    def begin(self, config: Config, n_features: int) -> None:
        """Take over the items that a ranker is created with; ValueError where their features make no sense."""
        if config.items is None and config.features is None and not config.feature_names:
            return
        if config.items and config.features is None:
            raise ValueError(
                f"{config.algorithm} takes items with their features: give both, got items={config.items[:3]!r} "
                "and features=None"
            )
        names = config.feature_names or None
        items = Items(config.items or [], [], [], config.features, names)
        self.change(items, n_features, seq=1, at=0, waits=0)

    def change(self, items: Items, n_features: int, *, seq: int, at: int, waits: int) -> None:
        """Take over the change in row `seq`; ValueError, and nothing changes, where it cannot be made."""
        change = self.check(items, n_features)
        while self._replaced and self._replaced[0].until < at:
            self._forget()
        until = at + waits + _SLACK
        for name in change.retire:
            slot = self._leave(name, seq, until)
            self._slot[self.present.pop(name)] = -1
            self._free.append(slot)
        for name, vector in zip(change.update, change.vectors[len(change.add) :], strict=True):
            slot = self._leave(name, seq, until)
            self._vectors[slot], self._since[slot] = vector, seq
        self._reach(len(change.add), change.vectors.shape[1])
        for name, vector in zip(change.add, change.vectors, strict=False):
            number = self.known.setdefault(name, len(self.names))
            if number == len(self.names):
                self.names.append(name)
            slot = self._free.pop()
            self._slot[number], self.present[name] = slot, number
            self._vectors[slot], self._since[slot] = vector, seq
        while len(self._replaced) * 4 * max(self.n_columns, 1) > REPLACED_BYTES:
            self._forget()
        if change.feature_names is not None:
            self.feature_names = change.feature_names
        self.version = seq
        said = msgspec.msgpack.encode([seq, items])
        self.digest = hashlib.blake2b(self.digest + said, digest_size=16).digest()

    def follow(self, items: Items, seq: int) -> None:
        """Take over the change in row `seq` where it could be made, and keep what it replaces as long as there is room.

        For who reads a log to see what its lists were drawn from, and folds nothing else.
        """
        with contextlib.suppress(ValueError):  # it came to nothing then, too
            self.change(
                Items(items.add, items.retire, items.update, items.features), _ANY, seq=seq, at=0, waits=0
            )

    def check(self, items: Items, n_features: int) -> Change:
        """The change as it would be made; ValueError where it cannot be."""
        names = items.feature_names
        if names and (len(names) != n_features or len(set(names)) != n_features):
            raise ValueError(
                f"feature_names must be {n_features} names, none twice, got {len(names)}: {names[:5]}"
            )
        for name in items.add:
            if name in self.present:
                raise ValueError(f"item {name!r} is there already: give its new features with update")
        for field, named in (("retire", items.retire), ("update", items.update)):
            for name in named:
                if name not in self.present:
                    raise ValueError(f"{field} must name items that are there, got {name!r}")
        given = [*items.add, *items.retire, *items.update]
        if len(set(given)) != len(given):
            twice = next(name for i, name in enumerate(given) if name in given[:i])
            raise ValueError(f"add, retire and update must name an item once, got {twice!r} twice")
        n_rows = len(items.add) + len(items.update)
        if items.features is None:
            if n_rows:
                raise ValueError(
                    f"features must have {n_rows} rows, one for each of add and update, got none"
                )
            return Change([], items.retire, [], np.empty((0, self.n_columns), np.float32), names)
        vectors = unpack(items.features).astype(np.float32)
        if vectors.ndim != 2 or len(vectors) != n_rows:
            raise ValueError(
                f"features must have {n_rows} rows, one for each of add and update, got shape {vectors.shape}"
            )
        if self.n_columns and vectors.shape[1] != self.n_columns:
            raise ValueError(
                f"features must have {self.n_columns} columns as those that are stored, got {vectors.shape[1]}"
            )
        if not 0 < vectors.shape[1] <= n_features:
            raise ValueError(
                f"features must have at most {n_features} columns, the ranker's n_features, got {vectors.shape[1]}"
            )
        return Change(items.add, items.retire, items.update, vectors, names)

    def _leave(self, name: str, seq: int, until: int) -> int:
        """Keep the vector that an item has for lists that were drawn from it; the place that it has."""
        number = self.present[name]
        slot = int(self._slot[number])
        kept = self._vectors[slot].astype(_FLOAT).tobytes()
        self._keep(Replaced(number, int(self._since[slot]), seq, until, kept))
        return slot

    def _keep(self, one: Replaced) -> None:
        self._replaced.append(one)
        self._replaced_of.setdefault(one.item, deque()).append(one)

    def _forget(self) -> None:
        item = self._replaced.popleft().item
        self._replaced_of[item].popleft()
        if not self._replaced_of[item]:
            del self._replaced_of[item]

    def _reach(self, n_more: int, n_columns: int) -> None:
        n_slots = len(self.names) + n_more
        if n_slots > len(self._slot):
            grown = np.full(max(n_slots, 2 * len(self._slot)), -1, np.int64)
            grown[: len(self._slot)] = self._slot
            self._slot = grown
        there = len(self._vectors)
        if n_more <= len(self._free):
            return
        room = max(there + n_more - len(self._free), 2 * there)
        vectors = np.zeros((room, n_columns), np.float32)
        since = np.zeros(room, np.int64)
        if there:
            vectors[:there], since[:there] = self._vectors, self._since
        self._vectors, self._since = vectors, since
        self._free += range(room - 1, there - 1, -1)

    def numbers(self, names: Iterable[str]) -> list[int | None]:
        """The numbers of present items; None for each name that is not there."""
        return list(map(self.present.get, names))

    def vectors(self, numbers: Whole, *, drawn_from: int | None = None) -> Floats:
        """The vectors of items, a row each: the present ones, or those of the state that row `drawn_from` made."""
        slots = self._slot[numbers]
        if drawn_from is None:
            return self._vectors.take(slots, axis=0)
        there = slots >= 0
        there &= self._since[slots] <= drawn_from
        found = self._vectors.take(slots, axis=0)
        if not there.all():
            for place in np.flatnonzero(~there).tolist():
                found[place] = self._old(int(numbers[place]), drawn_from)
        return found

    def _old(self, number: int, drawn_from: int) -> Floats:
        for one in self._replaced_of.get(number, ()):
            if one.since <= drawn_from < one.before:
                return np.frombuffer(one.vector, _FLOAT).astype(np.float32)
        raise ValueError(
            f"the features that {self.names[number]!r} had in row {drawn_from} are no longer kept"
        )

    def since(self, name: str) -> int:
        """The row that stored the vector that an item has."""
        return int(self._since[self._slot[self.present[name]]])

    def save(self) -> SavedFeatures | None:
        """For a snapshot; None where nothing was ever stored."""
        if not self.version:
            return None
        numbers = np.array(list(self.present.values()), np.int64)
        slots = self._slot[numbers]
        return SavedFeatures(
            names=self.names,
            numbers=numbers.tolist(),
            since=self._since[slots].tolist(),
            vectors=pack(self._vectors[slots]),
            replaced=list(self._replaced),
            feature_names=self.feature_names,
            digest=self.digest,
            version=self.version,
        )

    @classmethod
    def restore(cls, saved: SavedFeatures | None) -> StoredFeatures:
        found = cls()
        if saved is None:
            return found
        found.names = list(saved.names)
        found.known = {name: number for number, name in enumerate(found.names)}
        found.present = {found.names[number]: number for number in saved.numbers}
        found._vectors = np.array(unpack(saved.vectors))
        found._since = np.array(saved.since, np.int64)
        found._slot = np.full(len(found.names), -1, np.int64)
        found._slot[saved.numbers] = np.arange(len(saved.numbers))
        for one in saved.replaced:
            found._keep(one)
        found.feature_names = list(saved.feature_names)
        found.digest, found.version = saved.digest, saved.version
        return found


def merged(stored: Floats, columns: Floats | None, shared: Floats | None) -> Floats:
    """Rows of features as a ranker takes them: what is stored, what the request adds, and products with what it shares.

    Examples
    --------
    >>> merged(np.float32([[1, 2]]), np.float32([[7]]), np.float32([10, 0]))
    array([[ 1.,  2.,  7., 10., 20.,  0.,  0.]], dtype=float32)
    """
    parts = [stored] if columns is None else [stored, columns]
    if shared is not None:
        parts += [stored * one for one in shared]
    return stored if len(parts) == 1 else np.concatenate(parts, axis=1)


def numbers_of(stored: ByReference) -> Whole:
    """The numbers of all items of a list, pinned ones at the end."""
    return np.frombuffer(stored.items, _INT).astype(np.int64)


def by_reference(
    numbers: Sequence[int] | Whole, columns: Floats | None, shared: Floats | None
) -> ByReference:
    """What is written into the row of a list instead of its features."""
    return ByReference(
        np.asarray(numbers).astype(_INT).tobytes(),
        b"" if columns is None else columns.astype(_FLOAT).tobytes(),
        b"" if shared is None else shared.astype(_FLOAT).tobytes(),
    )


def features_of(catalogue: StoredFeatures, decision: Decision) -> Floats | None:
    """The features that a list was drawn from, a row for each item that was not pinned."""
    if decision.stored is None:
        return None if decision.features is None else unpack(decision.features)
    numbers = numbers_of(decision.stored)
    if decision.choice is not None:
        n_pinned = len(decision.shown) // _INT.itemsize - len(decision.choice.positions) // _INT.itemsize
        numbers = numbers[: len(numbers) - n_pinned]
    if not len(numbers):
        return None
    columns, shared = decision.stored.columns, decision.stored.shared
    return merged(
        catalogue.vectors(numbers, drawn_from=decision.model_seq),
        np.frombuffer(columns, _FLOAT).astype(np.float32).reshape(len(numbers), -1) if columns else None,
        np.frombuffer(shared, _FLOAT).astype(np.float32) if shared else None,
    )


def request_of(ranker: Ranker, catalogue: StoredFeatures, decision: Decision) -> Any:
    """The request that a list was drawn from, as `ranker` takes it; None where it had no features."""
    features = features_of(catalogue, decision)
    if features is None or not ranker.takes_queries:
        return features
    names = candidate_names(catalogue, decision) or []
    return ranker.as_request(features, decision.query, names[: len(features)])


def candidate_names(catalogue: StoredFeatures, decision: Decision) -> list[str] | None:
    """The names in a request's own list, pinned items at its end; None where the ranker has items of its own."""
    if decision.stored is None:
        return decision.candidates
    return [catalogue.names[number] for number in numbers_of(decision.stored).tolist()]


def items_shown(decision: Decision) -> NDArray[Any]:
    """The numbers of the shown items in the catalogue; empty where the request brought items of its own."""
    shown = np.frombuffer(decision.shown, _INT)
    if decision.stored is not None:
        return np.frombuffer(decision.stored.items, _INT)[shown]
    return shown if decision.candidates is None else shown[:0]
