"""What rankers show and end in, as hashes: run as a program, it writes them as JSON.

Two processes on two kinds of processor must write the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rankloop import data, environments, games, rankers, simulation
from rankloop.base import Environment, Ranker
from rankloop.serving.registry import has_items, served
from rankloop.serving.stores.contract import Store
from tests import examples
from tests.golden.test_transcripts import CLASSES, transcript
from tests.serving.service import INSTEAD, ITEMS, answer, create, rank, running

ROUNDS = 2_000
SERVED_ROUNDS = 100
# Six rankers that together use every kernel that rankers share; all of them with RANKLOOP_PORTABILITY=all.
FEW = ("FTRLPBM", "LinTSPBM", "MW", "PBMTS", "PDGD", "RTopKF", "TopFTRL")
ALL = os.environ.get("RANKLOOP_PORTABILITY") == "all"
TOLD = CLASSES if ALL else {name: CLASSES[name] for name in FEW}
# Each surrogate is compiled by itself: one for each of the two algorithms tells of what they share.
FEWER: dict[str, tuple[int, ...]] = {} if ALL else {"RTopKF": (0, 6)}


def digest(*parts: Any) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).tobytes())
    return total.hexdigest()[:16]


def told(name: str) -> list[Ranker]:
    """The examples of a ranker whose stories are told."""
    every = list(examples.of_ranker(name))
    return [every[i] for i in FEWER.get(name, range(len(every)))]


def world_of(ranker: Ranker) -> Environment | None:
    """Users that this ranker can play for."""
    if ranker.n_items is None:
        if ranker.feedback.kind == "nothing":
            return None
        queries = data.synthetic_letor(n_queries=40, n_features=ranker.n_features or 3, seed=1)
        if ranker.feedback.kind == "clicks":
            shown = ranker.feedback.length(queries.n_documents)
            named = ranker.takes_queries
            return environments.ClickedQueries(
                queries, clicks="informational", n_positions=shown, named=named
            )
        return environments.QueryStream(queries, measure="ndcg@10")
    n, m = ranker.n_items, ranker.n_positions or ranker.n_items
    if ranker.feedback.kind == "clicks":
        chances = np.linspace(0.9, 0.1, n)
        return environments.PositionBased(attraction=chances, examination=np.linspace(1.0, 0.4, m))
    if n != m:
        return None
    return environments.FixedItems(environments.users.bernoulli(np.linspace(0.8, 0.3, n)), measure="dcg")


def played() -> Iterator[tuple[str, str]]:
    """The state after many rounds of the compiled loop, of the first example that some users suit.

    Of a ranker that takes a catalogue or lists of requests, the first example of each.
    """
    for name in TOLD:
        labels = set()
        for ranker in told(name):
            label = f"played {name}" if ranker.n_items is not None else f"played on requests {name}"
            world = None if label in labels else world_of(ranker)
            if world is None:
                continue
            trace = simulation.play(ranker, world, rounds=ROUNDS, seed=1)
            labels.add(label)
            yield label, digest(*ranker.state, np.asarray(trace.value))


def played_in_bulk() -> Iterator[tuple[str, str]]:
    """So many items that most of them are not followed one by one."""
    ranker = rankers.FTRLPBM(n_items=120, n_positions=3)
    world = world_of(ranker)
    assert world is not None
    trace = simulation.play(ranker, world, rounds=ROUNDS, seed=1)
    yield "played in bulk FTRLPBM", digest(*ranker.state, np.asarray(trace.value))


def played_models() -> Iterator[tuple[str, str]]:
    """What users of click models do, and the regret against their best list."""
    for world in ("user-browsing", "click-chain-periodic"):
        ranker = rankers.CascadeKLUCB(n_items=10, n_positions=5)
        trace = simulation.play(ranker, environments.named(world), rounds=ROUNDS, seed=1)
        results = np.asarray(trace.value), np.asarray(trace.regret)
        yield f"in {world}, CascadeKLUCB", digest(*ranker.state, *results)


def played_games() -> Iterator[tuple[str, str]]:
    """The same for players of finite games, each against outcomes that are all equally likely."""
    for number, player in enumerate(games.Player.examples()):
        even = np.full(player.game.n_outcomes, 1 / player.game.n_outcomes)
        trace = simulation.play(player, games.GameWorld(player.game, chances=even), rounds=500, seed=1)
        yield f"played game {number}", digest(*player.state, np.asarray(trace.value))


async def served_story(algorithm: str, store: Store | None = None) -> str:
    """The state hash of a service's fold."""
    rng = np.random.default_rng(1)
    own = has_items(algorithm)
    async with running(store) as engine:
        catalogue: dict[str, Any] = {"items": ITEMS} if own else {}
        parameters = INSTEAD.get(algorithm, {} if own else {"n_features": 3})
        await create(engine, algorithm, algorithm=algorithm, parameters=parameters, **catalogue)
        fold = engine.rankers[algorithm].fold
        shown_items = []
        for i in range(SERVED_ROUNDS):
            features = None if own else (rng.random((6, 3)) / 3).tolist()
            shown = await rank(engine, f"d{i}", algorithm, features=features)
            shown_items.append(",".join(shown.items))
            n = fold.ranker.feedback.length(len(shown.items))
            values = rng.integers(0, 2, n).astype(float).tolist()
            feedback = {"relevance": None, fold.ranker.feedback.kind: values}
            await answer(engine, f"d{i}", name=algorithm, **feedback)
        return digest(fold.state_hash(), *shown_items)


def stories() -> dict[str, str]:
    """Each ranker, told three times: step by step, in the compiled loop, and served."""
    hashes = {f"transcript {name}": digest(transcript(iter(told(name)))) for name in TOLD}
    hashes |= dict(played())
    hashes |= dict(played_in_bulk())
    if ALL:
        hashes |= dict(played_models())
        hashes |= dict(played_games())
    hashes |= {f"served {name}": asyncio.run(served_story(name)) for name in sorted(served()) if name in TOLD}
    return hashes


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(stories(), indent=1))
