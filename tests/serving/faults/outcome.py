"""What became of the faults of one kind, and users who remember what they were told."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankloop.serving.admission import RequestError
from rankloop.serving.engine import Engine
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import Store, StoreError
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.service import answer, rank, running


@dataclass
class Outcome:
    """One row of the table of `make torture`.

    lost: acknowledged events that are not there. doubled: learnt from twice. undetected: a state or a log that is
    wrong without a word. refused: requests or starts that were refused in words.
    """

    kind: str
    tried: int = 0
    lost: int = 0
    doubled: int = 0
    undetected: int = 0
    refused: int = 0
    notes: list[str] = field(default_factory=list)

    def line(self) -> str:
        numbers = (self.tried, self.lost, self.doubled, self.undetected, self.refused)
        return f"{self.kind:<34}" + "".join(f"{number:>12,}" for number in numbers)


@dataclass
class Users:
    """Lists that were acknowledged, and the rows of answers that were."""

    decisions: set[str] = field(default_factory=set)
    answers: dict[str, int] = field(default_factory=dict)
    refused: int = 0

    async def ask(self, engine: Engine, decision: str, *, forget: bool = False) -> None:
        """Ask for a list and answer it, as far as the service lets them.

        forget: the service keeps no list at hand, so that it must read the list to take in the answer.
        """
        try:
            await rank(engine, decision)
            self.decisions.add(decision)
            if forget:
                engine.rankers["unwind"].fold.recent.clear()
            self.answers[decision] = (await answer(engine, decision, float(len(decision) % 2))).seq
        except (RequestError, StoreError):
            self.refused += 1

    async def count(self, store: Store, outcome: Outcome, name: str = "unwind") -> None:
        """Compare with the log of an open store."""
        rows: list[Any] = []
        while page := await store.read(name, after=rows[-1].seq if rows else 0, limit=2_000):
            rows += page
        drawn = {row.event_id for row in rows if row.kind == "decision"}
        answered = {row.decision: row.seq for row in rows if row.kind == "feedback"}
        outcome.lost += len(self.decisions - drawn)
        outcome.lost += sum(answered.get(decision) != seq for decision, seq in self.answers.items())
        verdict = await verify(store, name)
        outcome.undetected += not verdict.holds
        outcome.notes += verdict.problems
        outcome.doubled += max(0, verdict.learnt - len(answered))
        outcome.refused += self.refused


async def count_on_disk(folder: Path, users: Users, outcome: Outcome) -> None:
    """Start again on what is there, compare, and see that it goes on."""
    async with running(SQLiteStore(folder)) as engine:
        await users.count(engine.store, outcome)
        await rank(engine, "and it goes on")


def play(story: Any) -> None:
    """Run a coroutine function."""
    asyncio.run(story())
