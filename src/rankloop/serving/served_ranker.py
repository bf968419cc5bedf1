"""One ranker in a running service: how a list is drawn, how feedback is checked, and how new rows are folded in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from rankloop.serving.admission import Conflict, Limits, NotFound, RequestError, checked_feedback
from rankloop.serving.api import FeedbackRequest, RankRequest
from rankloop.serving.estimates import weigh
from rankloop.serving.failpoints import reach
from rankloop.serving.log import records
from rankloop.serving.log.candidate_lists import feedback_length, written_memo
from rankloop.serving.log.comparison import unit_key
from rankloop.serving.log.decision_state import DecisionCache, DecisionState, Outcome, RecentDecisions
from rankloop.serving.log.digests import check_row, digest_of
from rankloop.serving.log.fold import Fold, OtherHistory, fold_rows, state_of
from rankloop.serving.log.guard_rails import draw_for
from rankloop.serving.log.randomness import Draws, key_of
from rankloop.serving.log.records import Config, Decision, Entry, Row
from rankloop.serving.log.snapshots import newest_fold, old_fold, warm_up
from rankloop.serving.rank_request import for_ranker, read_request
from rankloop.serving.registry import OtherVersion
from rankloop.serving.stores.contract import Diverged, Head, Store

_PAGE = 2_000  # rows read at a time
_AT_ONCE = 250  # rows folded before others get a turn
_REMEMBERED = 20_000  # outcomes of the newest rows but decisions, for those who wait for them
_ACCEPTED = Outcome("accepted")
_SHOWN = np.dtype("<i4")
_FLOAT = np.dtype("<f8")


class ServedRanker:
    """A ranker in a running service, as far as its log has been folded."""

    def __init__(self, name: str, fold: Fold, store: Store) -> None:
        self.name = name
        self.fold = fold
        self.store = store
        self.snapshot_seq = 0
        self.read_only: str | None = None  # why it ranks only, and learns nothing
        self.asked_at = 0  # milliseconds, when somebody last asked for it
        self.current_until = 0  # until when nobody need look whether others wrote
        self.others_until = 0  # until when others are taken to write too
        self.met_others = False  # since the last look
        self._outcomes: dict[int, Outcome] = {}
        self.looking_back = asyncio.Lock()  # held by who folds it again up to an earlier row
        self._folding = asyncio.Lock()

    @classmethod
    async def load(
        cls,
        name: str,
        store: Store,
        *,
        cache: DecisionCache | None = None,
        check: Callable[[Config], object] = lambda config: None,
        tell: Callable[[int], object] = lambda seq: None,
    ) -> ServedRanker:
        """From the newest snapshot that can be trusted, and the rows after it; from the first row if there is none.

        Where this code has another version of the algorithm than the log, the ranker is read-only, from a snapshot.
        """
        try:
            fold, seq = await newest_fold(store, name, check)
            served = cls(name, fold, store)
            served.snapshot_seq, fold.recent = seq, RecentDecisions(cache)
            await asyncio.to_thread(warm_up, fold.config)
            await served.catch_up(tell)
        except OtherVersion as error:
            old = await old_fold(store, name)
            if old is None:
                raise
            served = cls(name, old, store)
            served.snapshot_seq, old.recent = old.applied, RecentDecisions(cache)
            served.read_only = f"{error}; run `rankloop upgrade` to go on from here"
        return served

    async def catch_up(
        self, tell: Callable[[int], object] = lambda seq: None, *, through: Head | None = None
    ) -> None:
        """Fold what is in the store and not here yet; through: the end of the log, as far as is known."""
        async with self._folding:
            if through == (self.fold.applied, self.fold.link):
                return  # somebody else did so meanwhile
            while new := await self.store.read(self.name, after=self.fold.applied, limit=_PAGE):
                reach("while-tailing")
                for first in range(0, len(new), _AT_ONCE):
                    part = new[first : first + _AT_ONCE]
                    for row in part:
                        check_row(row)
                    try:
                        await self._fold(part)
                    except OtherHistory as error:
                        raise Diverged(f"{error}, which this state had folded") from None
                    tell(self.fold.applied)
                    if len(new) > _AT_ONCE:
                        await asyncio.sleep(0)  # others are served meanwhile
                if len(new) < _PAGE:
                    return
            if self.store.shared:
                await self._check_end()

    async def _check_end(self) -> None:
        head = await self.store.head(self.name)
        if head.seq < self.fold.applied or (head.seq == self.fold.applied and head.link != self.fold.link):
            raise Diverged(
                f"the log of {self.name!r} ends at row {head.seq} and is not the one that this state had folded "
                f"up to row {self.fold.applied}"
            )

    async def take_in(self, new: list[Row], contents: dict[int, Any] | None = None) -> list[Outcome]:
        """Fold rows that were just written, and say what each came to.

        contents: by number of the row, what bodies were written from, as far as that is known.
        Where others wrote as well, or something went wrong in between, everything up to these rows is read from the
        store.
        """
        async with self._folding:
            is_next = self._is_next(new)  # only here: who waited for the lock before may have folded them
            if is_next:
                await self._fold(new, contents)
        if not is_next:
            # Written only now, and its number was folded already, as something else.
            if new[-1].seq == self.fold.applied and new[-1].link != self.fold.link:
                raise Diverged(f"row {new[-1].seq} of the log is another one than this state had folded")
            self.met_others |= new[0].seq > self.fold.applied + 1
            await self.catch_up()
        return [self._outcomes.get(row.seq, _ACCEPTED) for row in new]

    def _is_next(self, new: list[Row]) -> bool:
        """Whether these rows, and no others, come after what has been folded."""
        first = self.fold.applied + 1
        if [row.seq for row in new] != list(range(first, first + len(new))):
            return False
        return not self.store.shared or new[0].before == self.fold.link

    async def _fold(self, new: list[Row], contents: dict[int, Any] | None = None) -> None:
        outcomes = self._outcomes
        await fold_rows(self.fold, self.store, self.name, new, contents=contents, outcomes=outcomes)
        while len(outcomes) > _REMEMBERED:
            del outcomes[next(iter(outcomes))]

    async def decision_state(self, decision_id: str) -> DecisionState | None:
        return (await self.decision_states([decision_id]))[decision_id]

    async def decision_states(self, decision_ids: list[str]) -> dict[str, DecisionState | None]:
        """The states of several decisions. Those that are not at hand are read from the store together."""
        recent = self.fold.recent
        found = {one: recent.get(one) for one in decision_ids}
        if None in found.values():
            missing = [one for one, state in found.items() if state is None]
            for one, story in (await self.store.stories(self.name, missing)).items():
                # Through the end of the log: on a replica the decision may be written and not folded yet.
                found[one] = state_of(self.fold, story)
        return found

    async def crowded(self, *, now: int) -> bool:
        """Whether none of the feedback that waits for its list would be given up with the next row."""
        oldest = self.fold.oldest_parked()
        if oldest is None:
            return False
        passed = await self.store.time(self.name, at=now) - oldest
        return passed <= self.fold.config.policy.parking_seconds * 1000

    async def feedback_entries(
        self,
        requests: list[FeedbackRequest],
        catch_up: Callable[[ServedRanker], Awaitable[None]],
        limits: Limits,
    ) -> list[tuple[Entry, bool]]:
        """For each the entry, and whether there is a list that it is about; what one of them raises, all of them do.

        catch_up: called where another process drew one of the lists, or may have.
        """
        states = await self.decision_states([one.decision_id for one in requests])
        seqs = [one.seq for one in states.values() if one is not None]
        if self.store.shared and (len(seqs) < len(states) or max(seqs) > self.fold.applied):
            self.met_others |= bool(seqs) and max(seqs) > self.fold.applied
            await catch_up(self)  # whatever was known of the ranker there is to be known here too
        entries = []
        gathered: Counter[str] = Counter()
        for one in requests:
            state = states[one.decision_id]
            entry = self.feedback_entry(one, state)
            if state is not None and self._is_gathered(entry, state):
                gathered[one.decision_id] += 1
                full = state.n_heard + gathered[one.decision_id] > limits.gathered
                # Not for what is sent again.
                if full and await self.store.find(self.name, "feedback", entry.event_id) is None:
                    raise RequestError(
                        f"limit reached: {limits.gathered:,} answers to decision {one.decision_id!r}",
                        field="decision_id",
                    )
            entries.append((entry, state is not None))
        return entries

    def _is_gathered(self, entry: Entry, state: DecisionState) -> bool:
        """Whether this answer may be one of many to its list."""
        return bool(state.heard) or entry.content.form == "click" or self.fold.policies.at(state.seq).collects

    def feedback_entry(self, request: FeedbackRequest, state: DecisionState | None) -> Entry:
        """The entry for feedback, which is checked here as far as its decision is known, and nowhere else."""
        ranker = self.fold.ranker
        kind = ranker.feedback.kind
        single = request.item is not None
        given, other = request.relevance, request.clicks
        if kind == "clicks":
            given, other = other, given
        if single or request.clicked is not None:
            given = self._by_item(request, state)
        elif given is None or other is not None:
            wrong = kind if other is None else "clicks" if kind == "relevance" else "relevance"
            raise RequestError(
                f"{self.fold.config.algorithm} learns from {kind}: send that alone", field=wrong
            )
        # How long it must be is known with its list only; the fold finds out for feedback that comes before it.
        length = None if state is None else feedback_length(ranker, state.decision)
        values = checked_feedback(given, ranker, length, field=kind)
        packed = values.astype(_FLOAT, copy=False).tobytes()
        digest = digest_of(request.decision_id, "click" if single else kind, packed)
        event_id = request.event_id
        if event_id is None:
            try:
                seq = None if state is None else state.seq
                event_id = self.fold.policies.event_id(request.decision_id, digest, seq, single=single)
            except ValueError as error:
                raise RequestError(str(error), field="event_id") from None
        answer = records.Answer("click" if single else "clicks" if kind == "clicks" else "relevance", packed)
        return Entry(
            ranker=self.name,
            kind="feedback",
            event_id=event_id,
            body=records.encode(answer),
            digest=digest,
            decision=request.decision_id,
            content=answer,
        )

    def _by_item(self, request: FeedbackRequest, state: DecisionState | None) -> list[float]:
        """What clicks on items, by their names, are by position; a click is a relevance of 1."""
        names, field = ([request.item], "item") if request.clicked is None else (request.clicked, "clicked")
        if [request.relevance, request.clicks, request.clicked, request.item].count(None) < 3:
            raise RequestError("send one of item, clicked, clicks and relevance", field=field)
        if state is None:
            raise NotFound(f"there is no decision {request.decision_id!r}", field="decision_id")
        shown = self.fold.names(state.decision)
        for name in names:
            if name not in shown:
                raise RequestError(
                    f"{name!r:.80} is not among the items of decision {request.decision_id!r}", field=field
                )
        return [float(name in names) for name in shown[: feedback_length(self.fold.ranker, state.decision)]]

    def draw(
        self, request: RankRequest, decision_id: str, *, draws: Draws, limits: Limits
    ) -> tuple[Entry, Decision]:
        """A new decision, and the entry that makes it one. Changes nothing."""
        fold = self.fold
        asked = read_request(fold, request, limits)
        key = key_of(fold.config.seed, decision_id)
        rng = draws.generator(key)
        wanted = for_ranker(fold, asked)
        drawn = draw_for(fold, wanted, asked.free, asked.baseline, key, rng, asked.reach)
        weights = None
        if drawn.choice is None and drawn.ranking is not None:
            weights = weigh(fold.ranker, wanted, drawn.ranking, k=fold.estimates.k)
        decision = Decision(
            model_seq=fold.applied,
            generation=fold.generation,
            shown=drawn.shown.astype(_SHOWN).tobytes(),
            key=key,
            deadline=0,
            explored=drawn.explored,
            propensities=None if drawn.propensities is None else drawn.propensities.astype(_FLOAT).tobytes(),
            memo=tuple([records.pack(part) for part in written_memo(fold, drawn.memo)]),
            candidates=asked.names,
            features=None
            if asked.features is None or asked.stored is not None
            else records.pack(asked.features),
            context=request.context,
            weights=None if weights is None else weights.astype(_FLOAT).tobytes(),
            allowed=round(fold.config.policy.deadline_seconds * 1000),
            choice=drawn.choice,
            trial=drawn.trial,
            stored=asked.stored,
            rails=drawn.rails,
            unit=unit_key(request.unit),
            query=asked.query,
        )
        entry = Entry(
            ranker=self.name,
            kind="decision",
            event_id=decision_id,
            body=records.encode(decision),
            digest=asked.digest,
            drawn_from=(fold.applied, fold.link),
            content=decision,
        )
        return entry, decision


def check_digest(entry: Entry, row: Row) -> None:
    """`Conflict` where the row that is there under the same id says something else."""
    if entry.digest == row.digest:
        return
    if entry.kind == "config":
        raise Conflict(
            f"ranker {entry.event_id!r} is there already, and was created with something else: "
            "choose another name, or archive it first",
            field="name",
        )
    raise Conflict(
        f"{entry.kind} {entry.event_id!r} is there already and says something else (row {row.seq})",
        field="decision_id" if entry.kind == "decision" else "event_id",
    )
