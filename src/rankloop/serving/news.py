"""What happens to a ranker, row after row of its log, as events for others: what was learnt, and what was changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.serving.log import records
from rankloop.serving.log.decision_state import DecisionState, Outcome, replay_decision
from rankloop.serving.log.digests import check_row
from rankloop.serving.log.export import follow_names
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.policies import at_deadline, read_history
from rankloop.serving.log.records import Row
from rankloop.serving.log.starting_point import config_fold
from rankloop.serving.stores.contract import Store

Event = dict[str, Any]
_PAGE = 500
_ABOUT_LISTS = ("decision", "feedback", "expire")

_CHANGES: dict[str, Callable[[Any], Event]] = {
    "config": lambda body: {"algorithm": body.algorithm, "parameters": body.parameters},
    "reset": lambda body: {"algorithm": body.algorithm, "parameters": body.parameters},
    "items": lambda body: {"add": body.add, "retire": body.retire},
    "freeze": lambda body: {"frozen": body.frozen},
    "promote": lambda body: {"share": body.share},
    "rollback": lambda body: {"to_seq": body.to_seq},
    "policy": lambda body: {"policy": msgspec.to_builtins(body.policy)},
    "import": lambda body: {"source": body.source, "part": body.part, "last": body.last},
    "upgrade": lambda body: {"version": body.version},
}


class RankerNews:
    """Reads the log of one ranker from a row on. Make one with `begin`."""

    def __init__(self, store: Store, ranker: str, fold: Fold) -> None:
        self._store = store
        self._ranker = ranker
        self._fold = fold
        self._frozen = False
        self.seq = 0
        self.link = b""

    @classmethod
    async def begin(cls, store: Store, ranker: str, *, seq: int = 0, link: bytes = b"") -> RankerNews:
        """What comes after row `seq`, whose link is `link`; from the first row on where the log is another one."""
        fold = await config_fold(store, ranker)
        fold.policies = await read_history(store, ranker, fold.config.policy)
        news = cls(store, ranker, fold)
        there = await store.read(ranker, after=seq - 1, limit=1) if seq else []
        if there and (there[0].seq, there[0].link) == (seq, link):
            while news.seq < seq:  # to know the names of items, and whether it was frozen
                page = await store.read(ranker, after=news.seq, limit=_PAGE)
                for row in (row for row in page if row.seq <= seq):
                    news._follow(row)
        return news

    def _follow(self, row: Row) -> None:
        follow_names(self._fold, row)
        if row.kind in ("freeze", "reset"):
            self._frozen = row.kind == "freeze" and records.read_body(row).frozen
        self.seq, self.link = row.seq, row.link

    async def is_current(self) -> bool:
        """Whether the log is still the one that was read: a ranker may be put away, and its name used again."""
        head = await self._store.head(self._ranker)
        return head.seq > self.seq or (head.seq, head.link) == (self.seq, self.link)

    async def next_page(self) -> list[Event]:
        """The events of the next rows; none where nothing was written since, or nothing that others are told."""
        page = await self._store.read(self._ranker, after=self.seq, limit=_PAGE)
        if page and self.seq and page[0].before != self.link:
            raise ValueError(f"row {page[0].seq} does not follow the row that was read before it")
        about = {
            row.event_id if row.kind == "decision" else row.decision or ""
            for row in page
            if row.kind in _ABOUT_LISTS
        }
        stories = await self._store.stories(self._ranker, sorted(about)) if about else {}
        events = []
        for row in page:
            check_row(row)
            if row.kind == "policy" and all(seq != row.seq for seq, *_ in self._fold.policies.changes):
                self._fold.policies.change(row.seq, records.read_body(row))
            if row.kind in _ABOUT_LISTS:
                decision = row.event_id if row.kind == "decision" else row.decision or ""
                if not self._frozen:
                    events += self._learnt(row, stories.get(decision, []))
            elif row.kind in _CHANGES:
                events.append(self._event(row, row.kind) | _CHANGES[row.kind](records.read_body(row)))
            self._follow(row)
        return events

    def _event(self, row: Row, kind: str) -> Event:
        return {
            "id": f"{self._ranker}/{row.seq}",
            "ranker": self._ranker,
            "seq": row.seq,
            "at": row.at,
            "kind": kind,
        }

    def _learnt(self, row: Row, story: list[Row]) -> list[Event]:
        """What this row made the ranker learn: feedback, a deadline, or a list whose feedback had come before it."""
        told: dict[int, Outcome] = {}
        fold = self._fold
        state = replay_decision(
            story, through=row.seq, policy=fold.policies, silence_counts=fold.silence_counts, told=told
        )
        if state is None:
            return []
        counted = [
            one
            for one in story
            if one.seq in told
            and told[one.seq].learns
            and (one.seq == row.seq or (row.kind == "decision" and one.seq < row.seq))
        ]
        events = []
        for one in counted:
            values = self._values(one, state)
            if values is not None:
                events.append(
                    self._event(row, "learnt")
                    | {
                        "decision_id": row.event_id if row.kind == "decision" else row.decision,
                        "items": fold.names(state.decision),
                        fold.ranker.feedback.kind: values.tolist(),
                        "propensities": _propensities(state),
                        "explored": state.decision.explored,
                    }
                )
        return events

    def _values(self, row: Row, state: DecisionState) -> NDArray[np.float64] | None:
        if row.kind == "expire":
            return at_deadline(state, self._fold.policies.at(state.seq), self._fold.ranker)
        return np.frombuffer(records.read_body(row).values, "<f8")


def _propensities(state: DecisionState) -> list[float] | None:
    chances = state.decision.propensities
    return None if chances is None else np.frombuffer(chances, "<f8").tolist()
