"""The ranker to take, by what was measured on the nearest of our worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from rankloop import games, measures, rankers
from rankloop.advice.candidates import CANDIDATES, Candidate
from rankloop.advice.measured import World, worlds
from rankloop.advice.question import FEEDBACK, USERS, Question
from rankloop.base import Ranker


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
        told = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"rankers.{self.ranker}({told})"

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
        return "\n".join([*lines, *self.notes])

    def _because(self) -> str:
        asked = self.question
        brings = " on documents with features" if asked.features else ""
        return f"you observe {FEEDBACK[asked.feedback]}{brings}, and users {USERS[asked.users]}"

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
) -> Advice:
    """Choose a ranker by what is known.

    Where users stay, the ranker with the least regret in the nearest world of that kind is taken; where they change
    or nobody knows, the one whose worst world is the best, among those with a guarantee whatever users do.

    Parameters
    ----------
    feedback : str
        "top" (the relevance of the first k items shown), "clicks", or "labels" (the relevance of every item).
    n_items : int, optional
        The number of items.
    n_positions : int, optional
        The number of positions that are shown, for clicks.
    k : int, optional
        How many items, from the top, reveal their relevance.
    features : bool, optional
        Whether each request brings its own documents with features.
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

    Returns
    -------
    Advice
        The ranker, its arguments, its guarantee, its measured regret and the next best; `str` of it is in words.

    Raises
    ------
    ValueError
        If an answer is none, or no ranker learns from this.

    Examples
    --------
    >>> import rankloop
    >>> told = rankloop.advise("clicks", n_items=20, n_positions=5, users="stay")
    >>> told.ranker
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
    safe = [one for one in order if one.anybody or users == "stay"]
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
    return same and not candidate.unfit(question)


def _worlds(question: Question) -> list[World]:
    """The worlds to judge by, the nearest first."""
    same = [
        world
        for world in worlds()
        if (world.feedback, world.features) == (question.feedback, question.features)
        and (question.users == "unknown" or world.users == question.users or question.features)
        and (question.features or _is_precision(world.measure) == _is_precision(question.measure))
    ]

    def far(world: World) -> float:
        return abs(math.log(world.n_items / question.n_items)) if not question.features else 0.0

    nearest = min((far(world) for world in same), default=0.0)
    return [world for world in same if far(world) == nearest]


def _is_precision(measure: str) -> bool:
    return measures.get(measure).family == "precision"


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
