"""Simulated users of a running service, with known preferences, so that there is something to watch.

Three applications: one asks about its first suggestion only, one counts clicks, one ranks what each request brings.
Feedback takes a while, and some never comes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.serving.admission import RequestError
from rankloop.serving.api import ActivateRequest, CreateRequest, FeedbackRequest, RankAnswer, RankRequest
from rankloop.serving.engine import Engine
from rankloop.serving.stores.sqlite import MemoryStore

Answer = dict[str, list[float]]

_UNWIND = {  # how many in a hundred would like it, worst first: there is something to learn
    "Watch the news": 12,
    "Tidy up": 20,
    "Play a game": 30,
    "Have a cup of tea": 42,
    "Call a friend": 55,
    "Listen to music": 64,
    "Meditate": 74,
    "Take a walk": 86,
}
_RECIPES = {
    "Boiled cabbage": 0.1,
    "Toast": 0.2,
    "Lentil soup": 0.4,
    "Pancakes": 0.5,
    "Dumplings": 0.6,
    "Mango curry": 0.8,
}
_LOOKED_AT = np.array([1.0, 0.7, 0.5, 0.35])  # the chance that a position is looked at
_TOPIC_WEIGHTS = np.array([1.6, 0.8, 0.0, -0.8])  # what readers care about, by feature
_SILENT = 0.12  # never answer
_ANSWERS_AFTER = 0.04  # seconds, for one half of the people; the others take longer, a few much longer


class Application(NamedTuple):
    """A ranker, what a request brings, what a person answers to a list, and how many come in a second."""

    ranker: CreateRequest
    request: Callable[[np.random.Generator], tuple[RankRequest, Any]]
    answer: Callable[[RankAnswer, Any, np.random.Generator], Answer]
    a_second: float


def applications() -> list[Application]:
    """The three."""
    policy = {"deadline_seconds": 60.0}
    settings: list[dict[str, Any]] = [
        {"name": "unwind", "algorithm": "TopFTRL", "items": list(_UNWIND)},
        {
            "name": "recipes",
            "algorithm": "FTRLPBM",
            "items": list(_RECIPES),
            "parameters": {"n_positions": 4},
        },
        {
            "name": "articles",
            "algorithm": "RTopKF",
            "parameters": {
                "n_features": 4,
                "surrogate": "squared",
                "max_grade": 1,
                "learning_rate": [0.3, 0.5],
                "exploration": [1.0, 1 / 3],
            },
        },
    ]
    made = [msgspec.convert(one | {"policy": policy, "seed": 7}, CreateRequest) for one in settings]
    return [
        Application(made[0], _plain, _likes, 30.0),
        Application(made[1], _plain, _clicks, 15.0),
        Application(made[2], _with_articles, _reads, 15.0),
    ]


def _plain(rng: np.random.Generator) -> tuple[RankRequest, None]:
    return RankRequest(), None


def _likes(shown: RankAnswer, brought: None, rng: np.random.Generator) -> Answer:
    return {"relevance": [float(rng.random() * 100 < _UNWIND.get(shown.items[0], 50))]}


def _clicks(shown: RankAnswer, brought: None, rng: np.random.Generator) -> Answer:
    liked = np.array([_RECIPES.get(item, 0.3) for item in shown.items])
    looked_at = np.resize(_LOOKED_AT, len(liked))
    return {"clicks": (rng.random(len(liked)) < liked * looked_at).astype(float).tolist()}


def _with_articles(rng: np.random.Generator) -> tuple[RankRequest, dict[str, float]]:
    numbers = rng.choice(1_000, size=8, replace=False)
    features: NDArray[np.float64] = rng.normal(size=(8, 4)) / 2
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))
    names = [f"Article {number}" for number in numbers]
    liked = 1 / (1 + np.exp(-2 * features @ _TOPIC_WEIGHTS))
    return RankRequest(items=names, features=features.tolist()), dict(zip(names, liked.tolist(), strict=True))


def _reads(shown: RankAnswer, brought: dict[str, float], rng: np.random.Generator) -> Answer:
    return {"relevance": [float(rng.random() < brought[shown.items[0]])]}


async def come_and_go(engine: Engine, *, seed: int = 1) -> None:
    """Simulate users until cancelled."""
    async with asyncio.TaskGroup() as group:
        for number, application in enumerate(applications()):
            await engine.create(application.ranker)
            rng = np.random.default_rng([seed, number, engine.now()])
            group.create_task(_visit(engine, application, rng))


async def rehearse() -> None:
    """A few visits to each on a store in memory: what no library has is compiled before anybody waits for an answer."""
    engine, rng = Engine(MemoryStore()), np.random.default_rng(1)
    await engine.open()
    for application in applications():
        await engine.create(application.ranker)
        for _ in range(3):
            await _use(engine, application, rng)
    await engine.close()


async def _visit(engine: Engine, application: Application, rng: np.random.Generator) -> None:
    people: set[asyncio.Task[None]] = set()
    try:
        while True:
            person = asyncio.create_task(_quietly(_use(engine, application, rng)))
            people.add(person)
            person.add_done_callback(people.discard)
            await asyncio.sleep(rng.exponential(1 / application.a_second))
    finally:
        for person in people:
            person.cancel()


async def _quietly(story: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(RequestError):  # the service is busy, or stops: this one goes away
        await story


async def _use(engine: Engine, application: Application, rng: np.random.Generator) -> None:
    name = application.ranker.name
    request, brought = application.request(rng)
    shown = await engine.rank(name, request)
    answer = application.answer(shown, brought, rng)
    silent, delay = rng.random() < _SILENT, _ANSWERS_AFTER * rng.lognormal(0.0, 1.4)
    await engine.activate(name, ActivateRequest(shown.decision_id))
    if not silent:
        await asyncio.sleep(delay)
        feedback = FeedbackRequest(
            shown.decision_id, relevance=answer.get("relevance"), clicks=answer.get("clicks")
        )
        await engine.feedback(name, [feedback])
