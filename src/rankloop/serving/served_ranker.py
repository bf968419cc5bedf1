"""One ranker in a running service: its fold, how a list is drawn from it, and how new rows are folded in."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.serving.adapters.estimates import weigh
from rankloop.serving.admission import Limits
from rankloop.serving.errors import Conflict, Mistake, TooLarge
from rankloop.serving.failpoints import reach
from rankloop.serving.log import records
from rankloop.serving.log.decision_state import Fate, Outcome, fate_of
from rankloop.serving.log.fold import Fold, Hand
from rankloop.serving.log.randomness import Draws, key_of
from rankloop.serving.log.records import Config, Decision, Entry, Row
from rankloop.serving.log.snapshots import code_hash, revive
from rankloop.serving.schemas import Matrix, RankRequest
from rankloop.serving.stores.contract import Store

_PAGE = 2_000  # rows read at a time
_REMEMBERED = 20_000  # outcomes of the newest rows but decisions, for those who wait for them
_ACCEPTED = Outcome("accepted")
_SHOWN = np.dtype("<i4")


class Live:
    """A ranker at work."""

    def __init__(self, name: str, fold: Fold, store: Store) -> None:
        self.name = name
        self.fold = fold
        self.store = store
        self.snapshot_seq = 0
        self.scanned = 0  # decisions up to here were looked at for expiry
        self._outcomes: dict[int, Outcome] = {}
        self._folding = asyncio.Lock()

    @classmethod
    async def load(cls, name: str, store: Store) -> Live:
        """From the newest snapshot that this code made, and the rows after it; from the first row if there is none."""
        live: Live | None = None
        first = await first_fold(store, name)
        code = code_hash(first.config.algorithm)
        for snapshot in reversed(await store.snapshots(name)):
            if snapshot.code_hash != code:
                continue
            whole = await store.read_snapshot(name, snapshot.seq)
            if whole is not None:
                live = cls(name, revive(whole), store)
                live.snapshot_seq = snapshot.seq
                break
        if live is None:
            live = cls(name, first, store)
        await asyncio.to_thread(warm_up, live.fold.config)
        await live.catch_up()
        return live

    async def catch_up(self) -> None:
        """Fold what is in the store and not here yet."""
        async with self._folding:
            while new := await self.store.read(self.name, after=self.fold.applied, limit=_PAGE):
                reach("while-tailing")
                await self._fold(new)
                if len(new) < _PAGE:
                    break

    async def take_in(self, new: list[Row]) -> None:
        """Fold rows that were just written; usually they follow those that were folded before."""
        if new[0].seq != self.fold.applied + 1:  # something went wrong in between; the store knows
            await self.catch_up()
            return
        async with self._folding:
            await self._fold(new)

    async def _fold(self, new: list[Row]) -> None:
        hand = await gather_hand(self.fold, self.store, self.name, new)
        fold, outcomes = self.fold.fold, self._outcomes
        for row in new:
            outcome = fold(row, hand)
            if row.kind != "decision":
                outcomes[row.seq] = outcome
        while len(outcomes) > _REMEMBERED:
            del outcomes[next(iter(outcomes))]

    def outcome(self, seq: int) -> Outcome:
        """What the row came to; it must have been folded lately."""
        return self._outcomes.get(seq, _ACCEPTED)

    async def fate(self, decision_id: str) -> Fate | None:
        """What became of a decision; None where there is none of this id."""
        found = self.fold.fates.get(decision_id)
        if found is not None:
            return found
        told = await self.store.stories(self.name, [decision_id])
        # Through the end of the log: on a replica the decision may be written and not folded yet.
        return _fate(self.fold, told[decision_id], through=1 << 60)

    def draw(
        self, request: RankRequest, decision_id: str, *, draws: Draws, now: int, limits: Limits
    ) -> tuple[Entry, Decision]:
        """A new decision, and the entry that makes it one. Changes nothing."""
        fold = self.fold
        context, candidates, packed = self._context(request, limits)
        key = key_of(fold.config.seed, decision_id)
        ranking = fold.ranker.rank(context, rng=draws.generator(key))
        shown = fold.active[ranking.items] if fold.has_items else ranking.items
        weights = None if context is None else weigh(fold.ranker, context, ranking, k=fold.estimates.k)
        decision = Decision(
            fold.applied,
            fold.generation,
            shown.astype(_SHOWN).tobytes(),
            key,
            now + round(fold.config.policy.deadline_seconds * 1000),
            ranking.explored,
            None if ranking.propensities is None else ranking.propensities.astype("<f8").tobytes(),
            tuple(records.pack(part) for part in ranking.memo),
            candidates,
            packed,
            request.context,
            None if weights is None else weights.astype("<f8").tobytes(),
        )
        digest = _digest(request.items, packed, request.context)
        return Entry(self.name, "decision", decision_id, records.encode(decision), digest), decision

    def _context(
        self, request: RankRequest, limits: Limits
    ) -> tuple[Any, list[str] | None, records.Packed | None]:
        if request.context is not None:
            size = len(msgspec.json.encode(request.context))
            if size > limits.context_bytes:
                raise TooLarge(
                    f"context must be at most {limits.context_bytes} bytes, got {size}", field="context"
                )
        if self.fold.has_items:
            if request.features is not None:
                raise Mistake(f"{self.fold.config.algorithm} takes no features", field="features")
            if request.items is not None and sorted(request.items) != sorted(self.fold.items):
                raise Mistake(
                    f"{self.fold.config.algorithm} ranks its own items: leave items out, or name all of them once",
                    field="items",
                )
            return None, None, None
        if request.features is None:
            raise Mistake(f"{self.fold.config.algorithm} needs features", field="features")
        features = _features(request.features, limits)
        names = request.items
        if names is None:
            names = [str(i) for i in range(len(features))]
        if len(names) != len(features):
            raise Mistake(
                f"there are {len(features)} rows of features for {len(names)} items", field="features"
            )
        if len(set(names)) != len(names):
            raise Mistake("items must not repeat", field="items")
        if features.shape[1] != self.fold.ranker.n_features:
            raise Mistake(
                f"features must have {self.fold.ranker.n_features} columns, got {features.shape[1]}",
                field="features",
            )
        return features, names, records.pack(features)


def _features(given: list[list[float]] | Matrix, limits: Limits) -> NDArray[np.float32]:
    if isinstance(given, Matrix):
        n, d = given.shape
        if n < 1 or d < 1 or len(given.data) != 4 * n * d:
            raise Mistake(
                f"features.data must be {n} x {d} float32, got {len(given.data)} bytes", field="features"
            )
        features = np.frombuffer(given.data, "<f4").reshape(n, d).astype(np.float32)
    else:
        if not given or len({len(row) for row in given}) != 1 or not given[0]:
            raise Mistake("features must be rows of one length, at least one of each", field="features")
        with np.errstate(over="ignore"):
            features = np.array(given, np.float32)
    if features.shape[0] > limits.items or features.shape[1] > limits.features:
        raise TooLarge(
            f"features must be at most {limits.items} x {limits.features}, got {features.shape}",
            field="features",
        )
    if not (np.abs(features) <= 1e30).all():
        raise Mistake("features must be finite, and at most 1e30", field="features")
    return features


def _digest(items: list[str] | None, features: records.Packed | None, context: Any) -> bytes:
    if items is None and features is None and context is None:
        return b"\0"
    told = msgspec.msgpack.encode([items, features, context], order="deterministic")
    return hashlib.blake2b(told, digest_size=16).digest()


def check_digest(entry: Entry, row: Row) -> None:
    """`Conflict` where the row that is there under the same id says something else."""
    if entry.digest != row.digest:
        raise Conflict(
            f"{entry.kind} {entry.event_id!r} is there already and says something else (row {row.seq})",
            field="decision_id" if entry.kind == "decision" else "event_id",
        )


def warm_up(config: Config) -> None:
    """Have the ranker's code compiled, or found on disk, before somebody waits for a list."""
    fold = Fold(config)
    ranker = fold.ranker
    rng = np.random.default_rng(1)
    context = None if fold.has_items else rng.random((2, ranker.n_features or 1)).astype(np.float32)
    ranking = ranker.rank(context, rng=rng)
    ranker.learn(ranking, np.zeros(ranker.feedback.length(len(ranking.items))))
    if fold.has_items:
        ranker.current()


async def first_fold(store: Store, name: str) -> Fold:
    """The fold of the first row, a `config`."""
    (first,) = await store.read(name, after=0, limit=1)
    config = records.read_body(first)
    if not isinstance(config, Config):
        raise ValueError(f"the log of {name!r} must begin with its configuration, got {first.kind}")
    try:
        fold = Fold(config)
    except ValueError as error:
        raise ValueError(f"ranker {name!r} cannot be loaded: {error}") from None
    fold.fold(first, Hand())
    return fold


async def gather_hand(fold: Fold, store: Store, name: str, new: list[Row]) -> Hand:
    """Everything that folding `new` will ask for."""
    hand = Hand()
    wanted: dict[str, None] = {}
    for row in new:
        about = row.event_id if row.kind == "decision" and row.event_id in fold.parked else row.decision
        if about is not None:
            fate = fold.fates.get(about)
            if fate is None:
                wanted[about] = None
            else:
                hand.fates[about] = fate
    if wanted:
        for about, story in (await store.stories(name, list(wanted))).items():
            fate = _fate(fold, story, through=fold.applied)
            if fate is not None:
                hand.fates[about] = fate
                fold.fates.put(about, fate)
            hand.early[about] = [row for row in story if row.kind == "feedback" and row.seq <= fold.applied]
    return hand


def _fate(fold: Fold, story: list[Row], *, through: int) -> Fate | None:
    return fate_of(story, through=through, policy=fold.config.policy, silence_counts=fold.silence_counts)
