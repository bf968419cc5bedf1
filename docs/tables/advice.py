"""What `rankloop advise` goes by: every candidate in every world that it can be asked about, and the answers.

Writes the numbers to `src/rankloop/advice/measured.json`; the table has the answers to the usual questions.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from cells import markdown, regrets

import rankloop
from rankloop import data, environments, rankers, simulation
from rankloop.advice import CANDIDATES, Candidate, Question, World, worlds
from rankloop.base import Environment, Ranker

ROUNDS, PHASE, SEEDS, FEW_SEEDS = 100_000, 20_000, range(1, 11), range(1, 4)
QUERY_ROUNDS = 20_000
FILE = Path(__file__).parents[2] / "src" / "rankloop" / "advice" / "measured.json"
FALLING, MANY = np.linspace(0.9, 0.1, 10), np.linspace(0.9, 0.1, 100)
STILL, YANDEX = environments.named("gap-0.03"), environments.named("yandex")
SLOW = {"PMED"}  # few runs


@dataclass(frozen=True)
class Setting:
    """A world, and the question that its users would ask."""

    question: Question
    make: Callable[[], Environment]


def _relevant(users: environments.users.Independent, measure: str = "dcg") -> Callable[[], Environment]:
    return lambda: environments.FixedItems(users, measure=measure)


def _top(who: str, n_items: int = 10, feedback: str = "top", measure: str = "dcg") -> Question:
    return Question(feedback=feedback, n_items=n_items, users=who, measure=measure)


def _clicks(who: str, world: environments.PositionBased) -> Question:
    examination = tuple(float(value) for value in world.examination)
    n = world.attraction.shape[-1]
    return Question(
        feedback="clicks", n_items=n, n_positions=len(examination), users=who, examination=examination
    )


def _large() -> environments.PositionBased:
    return environments.PositionBased(attraction=np.linspace(0.9, 0.1, 100), examination=1 / np.arange(1, 11))


SWITCHING = environments.users.switching([FALLING, FALLING[::-1]], period=PHASE)
SETTINGS: dict[str, Setting] = {
    "noisy halves of ten items": Setting(
        _top("stay"), _relevant(environments.users.noisy_halves(n_items=10))
    ),
    "ten items, chances 0.9 to 0.1": Setting(_top("stay"), _relevant(environments.users.bernoulli(FALLING))),
    "ten items, chances 0.6 to 0.4": Setting(
        _top("stay"), _relevant(environments.users.bernoulli(np.linspace(0.6, 0.4, 10)))
    ),
    "ten items, order reversed every 20,000": Setting(_top("change"), _relevant(SWITCHING)),
    "a hundred items, chances 0.9 to 0.1": Setting(
        _top("stay", 100), _relevant(environments.users.bernoulli(MANY))
    ),
    "ten items, chances 0.9 to 0.1, precision@5": Setting(
        _top("stay", measure="precision@5"), _relevant(environments.users.bernoulli(FALLING), "precision@5")
    ),
    "ten items, order reversed every 20,000, precision@5": Setting(
        _top("change", measure="precision@5"), _relevant(SWITCHING, "precision@5")
    ),
    "ten items, all labels": Setting(
        _top("stay", feedback="labels"), _relevant(environments.users.bernoulli(FALLING))
    ),
    "ten items, all labels, reversed every 20,000": Setting(
        _top("change", feedback="labels"), _relevant(SWITCHING)
    ),
    "ten items on five positions, gap 0.03": Setting(_clicks("stay", STILL), lambda: STILL.clone()),
    "ten items on five positions, Yandex": Setting(_clicks("stay", YANDEX), lambda: YANDEX.clone()),
    "ten items on five positions, items exchanged every 20,000": Setting(
        _clicks("change", STILL), lambda: environments.Periodic.exchanging(STILL, phase=PHASE)
    ),
    "ten items on five positions, items and positions reversed every 20,000": Setting(
        _clicks("change", STILL), lambda: environments.Periodic.reversing(STILL, phase=PHASE)
    ),
    "a hundred items on ten positions": Setting(_clicks("stay", _large()), _large),
}
DOCUMENTS = "synthetic queries with 20 features"
CLICKS = ("perfect", "navigational", "informational", "near-random")


def measure(name: str) -> World:
    """One world: every candidate that takes its feedback, and a random order."""
    asked, make = SETTINGS[name].question, SETTINGS[name].make
    size = {"n_items": asked.n_items} | ({"n_positions": asked.n_positions} if asked.n_positions else {})
    players: dict[str, Callable[[], Ranker]] = {"Uniform": lambda: rankers.Uniform(**size)}
    for one in CANDIDATES:
        if (one.feedback, one.features) == (asked.feedback, False) and not one.unfit(asked):
            players[one.label] = lambda one=one: _build(one, asked)
    results = {}
    for label, player in players.items():
        seeds = FEW_SEEDS if label in SLOW else SEEDS
        results[label] = _mean(regrets(lambda player=player: (player(), make()), rounds=ROUNDS, seeds=seeds))
        print(name, label, results[label], flush=True)
    return World(
        name,
        asked.feedback,
        False,
        asked.users,
        asked.measure,
        asked.n_items,
        ROUNDS,
        len(SEEDS),
        "less",
        "regret",
        results,
    )


def measure_documents(feedback: str, k: int, clicks: str | None = None, *, repeats: bool = False) -> World:
    """Documents with features: NDCG@10 while learning, from labels or from the clicks of such users."""
    name = DOCUMENTS if clicks is None else f"{DOCUMENTS}, {clicks} clicks"
    name += ", query i in proportion to 1 / i" * repeats
    asked = Question(feedback=feedback, features=True, users="stay", measure="ndcg@10", k=k, repeats=repeats)
    players: dict[str, Callable[[], Ranker]] = {"Uniform": rankers.Uniform}
    for one in CANDIDATES:
        if (one.feedback, one.features) == (feedback, True) and not one.unfit(asked):
            players[one.label] = lambda one=one: _build(one, asked)
    results = {}
    for label, player in players.items():
        values = []
        for seed in SEEDS:
            queries = data.synthetic_letor(n_queries=500, n_features=asked.n_features, seed=seed)
            ranker = player()
            stream = (
                environments.QueryStream(queries, measure="ndcg@10")
                if clicks is None
                else environments.ClickedQueries(
                    queries,
                    clicks=clicks,
                    frequency="zipf" if repeats else None,
                    named=ranker.takes_queries,
                )
            )
            values.append(
                simulation.play(ranker, stream, rounds=QUERY_ROUNDS, seed=seed, points=10).mean_value
            )
        results[label] = _mean(values)
        print(name, label, results[label], flush=True)
    return World(
        name,
        feedback,
        True,
        "stay",
        asked.measure,
        asked.n_items,
        QUERY_ROUNDS,
        len(SEEDS),
        "more",
        "NDCG@10",
        results,
        repeats,
    )


def _build(candidate: Candidate, asked: Question) -> Ranker:
    # A horizon that is asked for is the number of rounds that are played.
    arguments = candidate.arguments(asked)
    if "horizon" in arguments:
        arguments["horizon"] = ROUNDS
    made: Ranker = getattr(rankers, candidate.ranker)(**arguments)
    return made


def _mean(values: list[float]) -> tuple[float, float]:
    return float(f"{np.mean(values):.4g}"), float(f"{np.std(values, ddof=1) / len(values) ** 0.5:.2g}")


def table() -> str:
    """Measure everything, write it down, and print the answers."""
    found = [measure(name) for name in SETTINGS]
    found += [measure_documents("top", 1), measure_documents("labels", 1)]
    found += [measure_documents("clicks", 1, kind) for kind in CLICKS]
    found.append(measure_documents("clicks", 1, "navigational", repeats=True))
    FILE.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    worlds.cache_clear()
    return answers()


def answers() -> str:
    """The answers to the usual questions, from what is written down."""
    usual = [
        *(Question(feedback="top", users=users) for users in ("stay", "change", "unknown")),
        Question(feedback="top", users="unknown", measure="precision@5"),
        Question(feedback="labels"),
        *(Question(feedback="clicks", users=users) for users in ("stay", "change", "unknown")),
        Question(feedback="clicks", users="stay", n_items=100, n_positions=10),
        Question(feedback="top", features=True),
        Question(feedback="clicks", features=True),
        Question(feedback="clicks", features=True, repeats=True),
        Question(feedback="labels", features=True),
    ]
    rows = []
    for asked in usual:
        told = rankloop.advise(**asdict(asked))
        next_best = (
            "" if told.runner_up is None else f"[{told.runner_up.ranker}](rankers/{told.runner_up.ranker}.md)"
        )
        rows.append(
            [
                f"{asked.feedback}{', features' * asked.features}{', queries repeat' * asked.repeats}",
                asked.users,
                "" if asked.features else f"{asked.n_items}",
                "" if asked.feedback == "clicks" or asked.features else f"`{asked.measure}`",
                f"[{told.ranker}](rankers/{told.ranker}.md)",
                f"{told.share:.1%}",
                next_best,
            ]
        )
    head = ["feedback", "users", "items", "measure", "take", "loses, of a random order's", "next best"]
    return markdown(head, rows)
