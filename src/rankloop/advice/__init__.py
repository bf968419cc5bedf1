"""Which ranker to take: an answer to what is known, by what was measured on the nearest of our worlds."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from rankloop import games, measures, rankers
from rankloop.arguments import one_of, shares, whole
from rankloop.base import Ranker

__all__ = ["Advice", "Question", "World", "advise"]

FEEDBACK = {
    "top": "the relevance of the top items",
    "clicks": "clicks",
    "labels": "the relevance of every item",
}
USERS = {"stay": "come from one population", "change": "change", "unknown": "may or may not change"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is known.

    Parameters
    ----------
    feedback : str
        "top" (the relevance of the first k items shown), "clicks", or "labels" (the relevance of every item).
    n_items : int, optional
        The number of items.
    n_positions : int, optional
        The number of positions that are shown, for clicks; half of the items, up to ten, where it is left out.
    k : int, optional
        How many items, from the top, reveal their relevance.
    features : bool, optional
        Whether each request brings its own documents with features, as a search engine does.
    n_features : int, optional
        How many features a document has.
    users : str, optional
        "stay" (one population), "change" or "unknown".
    measure : str, optional
        The measure that matters.
    per_day : int, optional
        How many users come a day.
    examination : tuple of float, optional
        The probability that each position is looked at, where it is known.
    replicas : bool, optional
        Whether several processes serve the same ranker.
    late : bool, optional
        Whether many lists are shown before the feedback on one comes.
    arrivals : bool, optional
        Whether items come and go.
    repeats : bool, optional
        Whether the same queries come again and again, as in a search engine.
    """

    feedback: str
    n_items: int = 10
    n_positions: int | None = None
    k: int = 1
    features: bool = False
    n_features: int = 20
    users: str = "unknown"
    measure: str = "dcg"
    per_day: int | None = None
    examination: tuple[float, ...] | None = None
    replicas: bool = False
    late: bool = False
    arrivals: bool = False
    repeats: bool = False

    def __post_init__(self) -> None:
        one_of("feedback", self.feedback, FEEDBACK)
        one_of("users", self.users, USERS)
        for name in ("n_items", "n_features"):
            whole(name, getattr(self, name), at_least=1)
        whole("k", self.k, at_least=1, at_most=None if self.features else self.n_items)
        if self.per_day is not None:
            whole("per_day", self.per_day, at_least=1)
        if self.n_positions is not None:
            whole("n_positions", self.n_positions, at_least=1, at_most=self.n_items)
        if self.examination is not None and len(self.examination) != self.positions:
            raise ValueError(
                f"examination must have {self.positions} probabilities, one for each position, "
                f"got {len(self.examination)}"
            )
        if self.examination is not None:
            shares("examination", self.examination)
        measures.get(self.measure)
        if self.repeats and not (self.features and self.feedback == "clicks"):
            raise ValueError(
                "repeats is for clicks on documents: it needs features=True and feedback='clicks'"
            )

    @property
    def positions(self) -> int:
        """The number of positions that are shown."""
        return self.n_positions or max(1, min(10, self.n_items // 2))


@dataclass(frozen=True, slots=True)
class World:
    """Users that every candidate was played with.

    Parameters
    ----------
    name : str
        A few words.
    feedback : str
        The feedback that they give.
    features : bool
        Whether they bring documents with features.
    users : str
        "stay" or "change".
    measure : str
        The measure that they are served by.
    n_items : int
        The number of items.
    rounds : int
        How many of them came.
    runs : int
        How many runs the means are taken over.
    better : str
        "less" where the number is regret, "more" where it is a value.
    unit : str
        What the number is.
    results : dict
        By the label of a candidate: the mean and its standard error.
    repeats : bool, optional
        Whether some of their queries are frequent.
    """

    name: str
    feedback: str
    features: bool
    users: str
    measure: str
    n_items: int
    rounds: int
    runs: int
    better: str
    unit: str
    results: dict[str, tuple[float, float]]
    repeats: bool = False

    def share(self, label: str) -> float:
        """What the candidate `label` loses, as a share of what a random order loses; infinite if it was not played."""
        if label not in self.results:
            return float("inf")
        mean, random = self.results[label][0], self.results["Uniform"][0]
        return mean / random if self.better == "less" else (1.0 - mean) / (1.0 - random)


@functools.cache
def worlds() -> tuple[World, ...]:
    """All of them, from the file that `docs/tables/make.py advice` writes."""
    entries = json.loads(resources.files("rankloop.advice").joinpath("measured.json").read_text())
    for entry in entries:
        entry["results"] = {label: tuple(pair) for label, pair in entry["results"].items()}
    return tuple(World(**entry) for entry in entries)


_MOST_PLANNED_ITEMS = 20
Arguments = Callable[[Question], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ranker that can be advised: for whom, with which arguments, and with what guarantee."""

    label: str  # in the table of what was measured: the ranker, and words that tell its settings apart
    feedback: str
    guarantee: str
    # Whether it can be advised where users change, nobody knows, or items come and go: by a guarantee, or as measured.
    anybody: bool
    arguments: Arguments
    features: bool = False
    unfit: Callable[[Question], str] = lambda _: ""  # why it cannot be taken; empty if it can
    waits: bool = False  # whether it shows the same list again until feedback comes

    @property
    def ranker(self) -> str:
        """The class in `rankloop.rankers`."""
        return self.label.partition(" ")[0]


def _items(question: Question) -> dict[str, Any]:
    return {"n_items": question.n_items, "measure": question.measure}


def _top(question: Question) -> dict[str, Any]:
    return _items(question) | ({"k": question.k} if question.k > 1 else {})


def _clicked(**more: Any) -> Arguments:
    return lambda question: {"n_items": question.n_items, "n_positions": question.positions} | more


def _documents(**more: Any) -> Arguments:
    return lambda question: {"n_features": question.n_features} | more


def _clicked_documents(question: Question) -> dict[str, Any]:
    return {"n_features": question.n_features, "n_positions": question.n_positions or 10}


def _a_year(question: Question) -> int:
    # Of users; a thousand a day, if nobody said.
    return 365 * (question.per_day or 1_000)


def _not_additive(question: Question) -> str:
    if measures.get(question.measure).family in ("sum_loss", "pairwise_loss", "dcg", "precision"):
        return ""
    return f"it does not learn {question.measure}"


def _only_precision(question: Question) -> str:
    return "" if measures.get(question.measure).family == "precision" else "it learns precision@n only"


def _needs_examination(question: Question) -> str:
    return "" if question.examination is not None else "it needs to know how often each position is looked at"


def _no_plans(question: Question) -> str:
    if question.n_items > _MOST_PLANNED_ITEMS:
        return f"its plans take too long with more than {_MOST_PLANNED_ITEMS} items"
    return "its plans may differ between machines" if question.replicas else ""


_ANYBODY = "regret of order sqrt(T), whatever users do"
_ANYBODY_SLOWLY = "regret of order T^(2/3), whatever users do"
_BEST_OF_BOTH = (
    "regret of order sqrt(T) whatever users do, and of order log(T) where they come from one population"
)
_MEASURED_ONLY = "none; measured only"

CANDIDATES = (
    Candidate("TopFTRL", "top", _ANYBODY_SLOWLY, True, _top, unfit=_not_additive),
    Candidate("RTop1F", "top", _ANYBODY_SLOWLY, True, _top, unfit=_not_additive),
    Candidate(
        "PEGE",
        "top",
        "regret of order log(T)^2 where users come from one population, none where they change",
        False,
        _top,
        unfit=_not_additive,
    ),
    Candidate("PrecisionFTRL", "top", _ANYBODY, True, _top, unfit=_only_precision),
    Candidate("FTPL", "labels", _ANYBODY, True, _items),
    Candidate("FTRLPBM", "clicks", _BEST_OF_BOTH, True, _clicked()),
    Candidate(
        "FTRLPBM mean",
        "clicks",
        "none with this estimator; measured only",
        False,
        _clicked(estimator="mean"),
    ),
    Candidate(
        "FTRLPBM hybrid", "clicks", _BEST_OF_BOTH, True, _clicked(regulariser="hybrid", estimator="mean")
    ),
    Candidate(
        "ClickMix",
        "clicks",
        "none on regret; within 1.5 times or one point of the best ranker in 45 of 52 worlds",
        True,
        _clicked(),
    ),
    Candidate("PBMTS", "clicks", _MEASURED_ONLY, False, _clicked()),
    Candidate(
        "GRAB",
        "clicks",
        "regret of order log(T) where users come from one population",
        False,
        _clicked(),
        waits=True,
    ),
    Candidate(
        "PBMPIE",
        "clicks",
        "the least regret that is possible, as T grows, where users come from one population",
        False,
        lambda question: _clicked(examination=question.examination, horizon=_a_year(question))(question),
        unfit=_needs_examination,
        waits=True,
    ),
    Candidate(
        "PMED",
        "clicks",
        "the least regret that is possible, as T grows, is proved for a relative of it",
        False,
        _clicked(growth=1.5, tolerance=0.05),
        unfit=_no_plans,
    ),
    Candidate(
        "RTopKF",
        "top",
        "regret of its surrogate of order T^(2/3), whatever users do, with the schedules of the paper",
        True,
        lambda question: {"n_features": question.n_features, "k": question.k},
        features=True,
    ),
    Candidate(
        "PDGD",
        "clicks",
        "none on the regret; the expected step has the right sign for every pair (measured with the fixed step 0.1)",
        False,
        _clicked_documents,
        features=True,
    ),
    Candidate(
        "QueryMemory",
        "clicks",
        _MEASURED_ONLY,
        False,
        _clicked_documents,
        features=True,
        unfit=lambda question: "" if question.repeats else "it is for queries that come again",
    ),
    Candidate("MGD", "clicks", _MEASURED_ONLY, False, _clicked_documents, features=True),
    Candidate(
        "DBGD",
        "clicks",
        "none for interleaved lists; measured only",
        False,
        _clicked_documents,
        features=True,
    ),
    Candidate(
        "RTopKF from clicks",
        "clicks",
        "regret of its surrogate of order T^(2/3), for the click on the first document as its label",
        False,
        _documents(examination=1.0),
        features=True,
    ),
    Candidate(
        "ListNet",
        "labels",
        "regret of its surrogate of order sqrt(T), whatever users do",
        True,
        _documents(),
        features=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Advice:
    """A ranker to take, and why.

    Parameters
    ----------
    question : Question
        What was known.
    ranker : str
        The class in `rankloop.rankers`.
    arguments : dict
        The arguments of its constructor.
    guarantee : str
        What is proved of it, in words.
    world : World
        The world, of those where it was compared, that is nearest to what is known.
    result : tuple of float
        What was measured there: the mean and its standard error.
    share : float
        What it loses there as a share of what a random order loses.
    notes : tuple of str, optional
        What else should be known.
    runner_up : Advice, optional
        The next one.
    """

    question: Question
    ranker: str
    arguments: dict[str, Any]
    guarantee: str
    world: World
    result: tuple[float, float]
    share: float
    notes: tuple[str, ...] = ()
    runner_up: Advice | None = field(default=None)

    @property
    def call(self) -> str:
        """The call that makes it, as Python."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"rankers.{self.ranker}({arguments})"

    def build(self) -> Ranker:
        """Make the ranker."""
        made: Ranker = getattr(rankers, self.ranker)(**self.arguments)
        return made

    def __str__(self) -> str:
        lines = [f"Take {self.call}.", f"Because {self._because()}.", f"Guarantee: {self.guarantee}."]
        lines.append(f"Measured: {self._measured()}.")
        if self.question.per_day is not None:
            days = self.world.rounds / self.question.per_day
            lines.append(f"With {self.question.per_day:,} users a day, that many come in {_days(days)}.")
        if self.runner_up is not None:
            other = self.runner_up
            lines.append(f"Next best: {other.call}: {other._measured()}; guarantee: {other.guarantee}.")
        return "\n".join([*lines, *_two_ways(self.question), *self.notes])

    def _because(self) -> str:
        asked = self.question
        brings = " on documents with features" if asked.features else ""
        more = f"{', late' * asked.late}{', items come and go' * asked.arrivals}"
        more += ", of queries that repeat" * asked.repeats
        return f"you observe {FEEDBACK[asked.feedback]}{brings}{more}, and users {USERS[asked.users]}"

    def _measured(self) -> str:
        mean, error = self.result
        number = f"{mean:,.0f} ± {error:,.0f}" if self.world.better == "less" else f"{mean:.3f} ± {error:.3f}"
        lost = "" if self.world.better == "more" else f", {self.share:.1%} of a random order's"
        return (
            f"{self.world.unit} {number} after {self.world.rounds:,} users{lost} "
            f"(world: {self.world.name}; mean and standard error of {self.world.runs} runs)"
        )


def advise(
    feedback: str,
    *,
    n_items: int = 10,
    n_positions: int | None = None,
    k: int = 1,
    features: bool = False,
    n_features: int = 20,
    users: str = "unknown",
    measure: str = "dcg",
    per_day: int | None = None,
    examination: tuple[float, ...] | None = None,
    replicas: bool = False,
    late: bool = False,
    arrivals: bool = False,
    repeats: bool = False,
) -> Advice:
    """Choose a ranker by what is known.

    Where users stay, the ranker with the least regret in the nearest world of that kind is taken; where they change,
    nobody knows, or items come and go, the one whose worst world is the best, among those with a guarantee whatever
    users do and, of clicks, ClickMix, which was measured for such users. Where feedback is late, rankers that show the
    same list until it comes are left out.

    Parameters as of `Question`. ValueError if one of them is no answer, or no ranker learns from this.

    Examples
    --------
    >>> import rankloop
    >>> advice = rankloop.advise("clicks", n_items=20, n_positions=5, users="stay")
    >>> advice.ranker
    'PBMTS'
    """
    question = Question(
        feedback=feedback,
        n_items=n_items,
        n_positions=n_positions,
        k=k,
        features=features,
        n_features=n_features,
        users=users,
        measure=measure,
        per_day=per_day,
        examination=examination,
        replicas=replicas,
        late=late,
        arrivals=arrivals,
        repeats=repeats,
    )
    question, notes = _learnable(question)
    played = _worlds(question)
    order = sorted(
        (one for one in CANDIDATES if _fits(one, question)),
        key=lambda one: max(world.share(one.label) for world in played),
    )
    order = [one for one in order if all(one.label in world.results for world in played)]
    if not order:
        brings = " with features" if features else ""
        raise ValueError(f"no ranker here learns {measure} from {FEEDBACK[feedback]}{brings}")
    safe = [one for one in order if one.anybody or (users == "stay" and not arrivals)]
    first = (safe or order)[0]
    second = next((one for one in order if one.ranker != first.ranker), None)
    runner_up = None if second is None else _advice(second, question, played)
    return _advice(first, question, played, notes=notes, runner_up=runner_up)


def _learnable(question: Question) -> tuple[Question, tuple[str, ...]]:
    """The question with a measure that can be learnt, and a note if it had to be another."""
    if question.feedback != "top" or question.features:
        return question, ()
    k = min(question.k, question.n_items)
    verdict = games.classify(games.ranking_game(measure=question.measure, n_items=question.n_items, k=k))
    if verdict.class_ != "hopeless":
        return question, ()
    family = measures.get(question.measure).family
    instead = {"auc": "pairwise_loss", "average_precision": "dcg"}.get(family, "dcg")
    note = (
        f"Nobody can learn {question.measure} from this feedback (`rankloop classify --measure {question.measure} "
        f"--items {question.n_items} --top {k}` says why): learn {instead} instead, and watch {question.measure}."
    )
    return replace(question, measure=instead), (note,)


def _fits(candidate: Candidate, question: Question) -> bool:
    same = candidate.feedback == question.feedback and candidate.features == question.features
    return same and not candidate.unfit(question) and not (question.late and candidate.waits)


def _worlds(question: Question) -> list[World]:
    """The worlds to judge by, the nearest first."""
    same = [
        world
        for world in worlds()
        if (world.feedback, world.features, world.repeats)
        == (question.feedback, question.features, question.repeats)
        and (question.users == "unknown" or world.users == question.users or question.features)
        and (question.features or _is_precision(world.measure) == _is_precision(question.measure))
    ]

    def far(world: World) -> float:
        return abs(math.log(world.n_items / question.n_items)) if not question.features else 0.0

    nearest = min((far(world) for world in same), default=0.0)
    return [world for world in same if far(world) == nearest]


def _is_precision(measure: str) -> bool:
    return measures.get(measure).family == "precision"


def _two_ways(question: Question) -> list[str]:
    """The safest ranker and the one that usually does best, each with what it loses where users stay and change."""
    stays, changes = (_worlds(replace(question, users=users)) for users in ("stay", "change"))
    if question.features or not (stays and changes):
        return []
    usable = [
        one
        for one in CANDIDATES
        if _fits(one, question) and all(one.label in world.results for world in (*stays, *changes))
    ]

    def loses(one: Candidate, played: list[World]) -> float:
        return max(world.share(one.label) for world in played)

    proved = [one for one in usable if one.anybody and not one.guarantee.startswith("none")]
    chosen = {
        "Safest": min(proved, key=lambda one: loses(one, [*stays, *changes]), default=None),
        "Usually best": min(usable, key=lambda one: loses(one, stays), default=None),
    }
    return [
        f"{words}: {one.label}, which loses {loses(one, stays):.1%} of what a random order loses where users stay, "
        f"{loses(one, changes):.1%} where they change."
        for words, one in chosen.items()
        if one is not None
    ]


def _advice(candidate: Candidate, question: Question, played: list[World], **more: Any) -> Advice:
    # In words, the world where it does worst of those it was chosen by.
    world = max(played, key=lambda one: one.share(candidate.label))
    return Advice(
        question=question,
        ranker=candidate.ranker,
        arguments=candidate.arguments(question),
        guarantee=candidate.guarantee,
        world=world,
        result=world.results[candidate.label],
        share=world.share(candidate.label),
        **more,
    )


def _days(days: float) -> str:
    if days < 1.5:
        return "about a day"
    return f"about {days:,.0f} days" if days < 730 else f"about {days / 365:.0f} years"
