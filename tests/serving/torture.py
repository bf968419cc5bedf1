"""Kill the service, again and again, at named places and anywhere, under load; then count what was lost.

`make torture` runs this and every kind of fault in `faults/kinds.py`, and prints a table; the tests run a selection.
Clients remember everything that was acknowledged and repeat, under the same ids, everything that was not.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import random
import signal
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankloop.serving.client import Client, RankloopError
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import Store
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.faults import kinds
from tests.serving.faults.outcome import Outcome
from tests.serving.postgresql import Server, start
from tests.serving.process import Service

SQLITE_PLACES = (
    "after-decode",
    "after-enqueue",
    "before-commit",
    "mid-batch",
    "after-commit",
    "after-learn",
    "during-snapshot",
    "after-snapshot",
    "anywhere",
)
POSTGRESQL_PLACES = (
    "after-decode",
    "after-enqueue",
    "before-commit",
    "after-commit",
    "after-learn",
    "while-tailing",
    "during-snapshot",
    "after-snapshot",
    "lease-held",
    "anywhere",
)
ITEMS = [f"item-{i}" for i in range(12)]
# What a list is asked from, by its ID, so that a retry asks the same.
ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"exclude": ITEMS[:1], "pinned": {4: ITEMS[3]}},
    {"items": ITEMS[:6], "baseline": ITEMS[:6]},
)
NAME = "tortured"
_COMMON = {"during-snapshot", "after-snapshot"}  # these come round rarely: the first one kills


@dataclass
class Ledger:
    """What the clients know: what was acknowledged, and what must be asked again."""

    lists: dict[str, list[str]] = field(default_factory=dict)
    events: dict[tuple[str, str], int] = field(default_factory=dict)
    open: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def rank(self, client: Client, decision_id: str) -> None:
        shown = client.rank(
            NAME, decision_id=decision_id, **ASKED[zlib.crc32(decision_id.encode()) % len(ASKED)]
        )
        with self.lock:
            if self.lists.setdefault(decision_id, shown.items) != shown.items:
                self.problems.append(f"{decision_id} was drawn twice, and differently")

    def event(self, client: Client, kind: str, body: dict[str, Any]) -> None:
        call = client.activate if kind == "activate" else client.feedback
        told = call(NAME, **body)
        with self.lock:
            event = (kind, body.get("event_id", body["decision_id"]))
            if self.events.setdefault(event, told.seq) != told.seq:
                self.problems.append(f"{event} is acknowledged as two rows")

    def do(self, client: Client, kind: str, body: dict[str, Any]) -> bool:
        """Whether it was acknowledged; if not, it is kept, to be asked again."""
        try:
            if kind == "rank":
                self.rank(client, body["decision_id"])
            else:
                self.event(client, kind, body)
        except RankloopError as error:
            if error.status not in (0, 429, 500, 503):
                self.problems.append(f"{kind} {body}: {error}")
                return True
            with self.lock:
                self.open.append((kind, body))
            return False
        return True

    def again(self, client: Client) -> None:
        """Repeat, under the same ids, what was not acknowledged."""
        waiting, self.open = self.open, []
        for kind, body in waiting:
            self.do(client, kind, body)


def load(ledger: Ledger, urls: list[str], stop: threading.Event, seed: int, ids: Any) -> None:
    """One client: lists, some activated, most answered, some answers sent twice, to whichever replica."""
    rng = random.Random(seed)
    clients = [Client(url, timeout=10.0, retries=0) for url in urls]
    while not stop.is_set():
        decision = f"d{next(ids)}-{seed}"
        if not ledger.do(rng.choice(clients), "rank", {"decision_id": decision}):
            time.sleep(0.01)
            if len(clients) == 1:
                break
            continue
        if rng.random() < 0.3:
            ledger.do(rng.choice(clients), "activate", {"decision_id": decision})
        if rng.random() < 0.8:
            body = {
                "decision_id": decision,
                "relevance": [float(rng.random() < 0.5)],
                "event_id": f"{decision}-e",
            }
            for client in rng.sample(clients, len(clients)) if rng.random() < 0.3 else [rng.choice(clients)]:
                ledger.do(client, "feedback", body)
    for client in clients:
        client.close()


def under_load(ledger: Ledger, urls: list[str], seconds: float, until: Any, ids: Any, n: int = 4) -> None:
    """Load until the victim is gone, or for so many seconds."""
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(ledger, urls, stop, next(ids), ids)) for _ in range(n)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until():
        time.sleep(0.005)
    stop.set()
    for thread in threads:
        thread.join()


def check(store: Store, ledger: Ledger, hashes: list[str]) -> list[str]:
    """What is wrong, after everything: lost, twice, gaps, or states that differ."""

    async def look() -> list[str]:
        await store.open()
        try:
            problems = list(ledger.problems)
            log, after = [], 0
            while page := await store.read(NAME, after=after, limit=2_000):
                log += page
                after = page[-1].seq
            there = Counter((row.kind, row.event_id) for row in log)
            seqs = {(row.kind, row.event_id): row.seq for row in log}
            problems += [f"{event} is in the log {n} times" for event, n in there.items() if n > 1]
            problems += [
                f"{event} was acknowledged and is lost"
                for event, seq in ledger.events.items()
                if seqs.get(event) != seq
            ]
            problems += [
                f"decision {decision} was acknowledged and is lost"
                for decision in ledger.lists
                if ("decision", decision) not in there
            ]
            if [row.seq for row in log] != list(range(1, len(log) + 1)):
                problems.append("there are gaps")
            verdict = await verify(store, NAME)
            problems += verdict.problems
            problems += [
                f"a live state was {one}, the replay {verdict.state_hash}"
                for one in hashes
                if one != verdict.state_hash
            ]
            answered = {row.decision for row in log if row.kind == "feedback"}
            if verdict.learnt != len(answered):
                problems.append(f"{len(answered)} lists were answered, {verdict.learnt} learnt from")
            return problems
        finally:
            await store.close()

    return asyncio.run(look())


class Killed:
    """How often what was killed where."""

    def __init__(self) -> None:
        self.kills: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()


def torture_sqlite(
    folder: Path, plan: list[str], *, seed: int = 1, check_every: int = 10
) -> tuple[Killed, Ledger, list[str]]:
    """Follow the plan; every kill is followed by a restart that repeats what was open."""
    rng, ids, ledger, killed = random.Random(seed), itertools.count(), Ledger(), Killed()
    problems: list[str] = []
    settings = ["--data", str(folder), "--snapshot-every", "40"]
    with Service(*settings) as service:
        service.client(retries=3).create(NAME, algorithm="RTop1F", items=ITEMS)
        service.stop()
    for number, place in enumerate(plan, 1):
        crash = None if place == "anywhere" else f"{place}:{1 if place in _COMMON else rng.randint(1, 60)}"
        with Service(*settings, crash=crash) as service:
            if service.url:  # otherwise it came to that place while it started
                ledger.again(service.client(retries=2))
            delay = rng.uniform(0.02, 0.5) if place == "anywhere" else 15.0
            if service.url:
                under_load(ledger, [service.url], delay, lambda s=service: s.process.poll() is not None, ids)
            if place == "anywhere":
                service.kill()
            died = service.wait_dead(5.0)
            killed.kills[place] += died and service.process.returncode == -signal.SIGKILL
            killed.missed[place] += not died
            if not died:
                service.stop()
        if number % check_every == 0 or number == len(plan):
            with Service(*settings) as service:
                client = service.client(retries=5)
                while ledger.open:
                    ledger.again(client)
                state = client.ranker(NAME).state_hash
                service.stop()
            problems = check(SQLiteStore(folder), ledger, [state])
            if problems:
                break
    return killed, ledger, problems


def torture_postgresql(
    server: Server, schema: str, plan: list[str], *, seed: int = 1
) -> tuple[Killed, Ledger, list[str]]:
    """Two replicas under load; one of them is killed, or stopped past its lease, and started again."""
    rng, ids, ledger, killed = random.Random(seed), itertools.count(), Ledger(), Killed()
    settings = ["--database", server.url, "--schema", schema, "--snapshot-every", "40"]
    steady = Service(*settings)
    victim = steady
    try:
        steady.client(retries=3).create(NAME, algorithm="RTop1F", items=ITEMS)
        for place in plan:
            times = 1 if place in _COMMON else rng.randint(1, 4 if place == "while-tailing" else 30)
            crash = None if place == "anywhere" else f"{place}:{times}"
            victim = Service(*settings, crash=crash)
            holder = place in ("during-snapshot", "after-snapshot", "lease-held")
            if holder:  # the other one has stopped, and finds its lease run out when it goes on
                steady.process.send_signal(signal.SIGSTOP)
                time.sleep(6.0)
            urls = [one.url for one in ([victim] if holder else [steady, victim]) if one.url]
            delay = rng.uniform(0.05, 0.8) if place == "anywhere" else 15.0
            under_load(ledger, urls, delay, lambda one=victim: one.process.poll() is not None, ids)
            if holder:
                steady.process.send_signal(signal.SIGCONT)  # it wakes up with a lease that is over
            if place == "anywhere":
                victim.kill()
            died = victim.wait_dead(5.0)
            killed.kills[place] += died and victim.process.returncode == -signal.SIGKILL
            killed.missed[place] += not died
            if not died:
                victim.stop()
            ledger.again(steady.client(retries=5))
        victim = Service(*settings)
        while ledger.open:
            ledger.again(victim.client(retries=5))
        hashes = [_settled(one.client(retries=5), steady.client(retries=5)) for one in (steady, victim)]
    finally:
        for one in (steady, victim):
            if one.process.poll() is None:
                one.stop()
    return killed, ledger, check(PostgresStore(server.url, schema=schema), ledger, hashes)


def _settled(client: Client, other: Client) -> str:
    """The state of a replica that has folded all that is there."""
    last = other.ranker(NAME).last_seq
    for _ in range(200):
        told = client.ranker(NAME)
        if told.model_seq >= last:
            return told.state_hash
        time.sleep(0.05)
    return "behind"


def counted(kind: str, killed: Killed, ledger: Ledger, problems: list[str]) -> Outcome:
    """The row of the table for kills."""
    lost = sum("is lost" in one for one in problems)
    twice = sum("times" in one or "learnt from" in one for one in problems)
    places = ", ".join(f"{place} {n}" for place, n in sorted(killed.kills.items()))
    told = f"{len(ledger.lists):,} lists and {len(ledger.events):,} other events were acknowledged; killed: {places}"
    rest = len(problems) - lost - twice
    return Outcome(kind, sum(killed.kills.values()), lost, twice, rest, 0, [*problems[:20], told])


def faults(n_sqlite: int, n_postgresql: int, n_others: int, seed: int) -> Iterator[Outcome]:
    """All kinds, one after the other."""
    share = max(1, n_others // 34)  # the flips are most of the others
    if n_sqlite:
        plan = list(itertools.islice(itertools.cycle(SQLITE_PLACES), n_sqlite))
        with tempfile.TemporaryDirectory(prefix="rankloop-torture-") as folder:
            yield counted("SIGKILL under load, SQLite", *torture_sqlite(Path(folder), plan, seed=seed))
    if n_postgresql:
        plan = list(itertools.islice(itertools.cycle(POSTGRESQL_PLACES), n_postgresql))
        with tempfile.TemporaryDirectory(prefix="rankloop-torture-") as folder:
            server = start(Path(folder))
            done = torture_postgresql(server, "torture", plan, seed=seed)
            server.stop()
            yield counted("SIGKILL, two PostgreSQL replicas", *done)
    if n_others:
        yield kinds.power_losses(3 * share, seed=seed)
        yield kinds.failing_writes(3 * share, error="full", seed=seed)
        yield kinds.failing_writes(3 * share, error="broken", seed=seed)
        yield kinds.locks(2 * share, seed=seed)
        yield kinds.hanging_disks(3 * share, seed=seed)
        yield kinds.slow_disks(share, seed=seed)
        yield kinds.clock_jumps(5 * share, seed=seed)
        yield kinds.hostile_requests(3 * share, seed=seed)
        yield kinds.cut_ends(2 * share, seed=seed)
        yield kinds.flipped_bits(9 * share, seed=seed)
        yield kinds.failovers(max(1, share // 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sqlite", type=int, default=150, help="kills on SQLite")
    parser.add_argument("--postgresql", type=int, default=40, help="kills on PostgreSQL with two replicas")
    parser.add_argument("--others", type=int, default=340, help="faults of all other kinds together")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)  # a service that is tortured has much to say
    began, all_of_them = time.monotonic(), []
    print(
        f"{'':<34}" + "".join(f"{name:>12}" for name in ("tried", "lost", "doubled", "undetected", "refused"))
    )
    for outcome in faults(asked.sqlite, asked.postgresql, asked.others, asked.seed):
        print(outcome.line(), flush=True)
        for note in outcome.notes:
            print(f"  {note}")
        all_of_them.append(outcome)
    print(f"{sum(one.tried for one in all_of_them)} faults in {time.monotonic() - began:.0f} s")
    # What a standby had not received is gone: that it is noticed is what counts there.
    bad = [
        one
        for one in all_of_them
        if one.doubled or one.undetected or (one.lost and "standby" not in one.kind)
    ]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
