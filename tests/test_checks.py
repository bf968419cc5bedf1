"""The package's own classes keep the contracts, and each classic fault is caught."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop import checks, environments, rankers
from rankloop.base import Array, Ranker, Ranking
from rankloop.feedback import TopK
from tests import examples

RANKERS = dict(examples.every_ranker())
ENVIRONMENTS = dict(examples.every_environment())


def _pairs() -> Iterator[Any]:
    """Each ranker's kernels with one environment's, and each environment's with at least two rankers', if so many fit.

    The loop over rounds has one text, and compiling it for a pair takes seconds: a kernel that does not do in it what
    it does step by step shows it with any partner. RANKLOOP_PAIRS=all plays each with each.
    """
    fitting = list(_fitting_pairs())
    chosen, met = [], Counter[Any]()
    for ranker in dict.fromkeys(ranker for ranker, *_ in fitting):
        pair = min((pair for pair in fitting if pair[0] == ranker), key=lambda pair: met[pair[1]])
        chosen.append(pair)
        met[pair[1]] += 1
    for pair in fitting:
        if pair not in chosen and (met[pair[1]] < 2 or os.environ.get("RANKLOOP_PAIRS") == "all"):
            chosen.append(pair)
            met[pair[1]] += 1
    for _, _, ranker_name, environment_name in chosen:
        name = f"{ranker_name}+{environment_name}"
        yield pytest.param(RANKERS[ranker_name], ENVIRONMENTS[environment_name], id=name)


def _fitting_pairs() -> Iterator[tuple[Any, Any, str, str]]:
    """The kernels of a ranker and of an environment of its length, and the first examples that have them."""
    seen = set()
    worlds = {name: make() for name, make in ENVIRONMENTS.items()}
    for ranker_name, make_ranker in RANKERS.items():
        ranker = make_ranker()
        for environment_name, environment in worlds.items():
            combination = (
                (type(ranker), getattr(ranker, "kernels", None)),
                (type(environment), getattr(environment, "kernels", None)),
            )
            fits = ranker.feedback.kind in (environment.reveals, "nothing")
            fits = fits and ranker.n_items in (environment.n_items, None)
            fits = fits and ranker.n_positions == (
                environment.n_positions if environment.n_features is None else None
            )
            fits = fits and ranker.n_features in (environment.n_features, None)
            fits = fits and ranker.takes_queries == environment.names_queries
            fits = fits and (ranker.max_grade is None or ranker.max_grade >= environment.max_grade)
            if fits and combination not in seen:
                seen.add(combination)
                yield *combination, ranker_name, environment_name


@pytest.mark.parametrize(("make_ranker", "make_environment"), list(_pairs()))
def test_both_loops_tell_the_same_story(make_ranker: Any, make_environment: Any) -> None:
    checks.check_same_story(make_ranker, make_environment)


def test_every_class_has_an_example() -> None:
    assert set(examples.RANKERS) == set(rankers.__all__)
    classes = {name for name in environments.__all__ if inspect.isclass(getattr(environments, name))}
    assert set(examples.ENVIRONMENTS) == classes


def test_a_small_one_of_every_ranker_can_be_made() -> None:
    assert [name for name, make in checks.every_ranker() if type(make()).__name__ == name] == rankers.__all__
    assert [name for name, _ in checks.every_environment()] == list(environments.names())


class _Mean(NamedTuple):
    total: NDArray[np.float64]
    t: NDArray[np.int64]


class Sound(Ranker):
    """A small ranker, made without kernels, that keeps all the rules: greedy on summed relevance, at random first."""

    def __init__(self) -> None:
        self.n_positions = 4
        self.feedback = TopK(1)
        self.state = _Mean(np.zeros(4), np.zeros(1, np.int64))

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        return Ranking(np.argsort(-(self.state.total + rng.random(4)), kind="stable"))

    def current(self, context: Any = None) -> NDArray[np.int64]:
        return np.argsort(-self.state.total, kind="stable")

    def learn(self, ranking: Ranking, feedback: Array) -> None:
        relevance = self.feedback.check(feedback, self.n_positions)
        self.state.total[ranking.items[0]] += relevance[0]
        self.state.t[0] += 1


class RemembersItsLastRanking(Sound):
    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        self.last = super().rank(context, rng=rng)
        return self.last

    def learn(self, ranking: Ranking, feedback: Array) -> None:
        super().learn(self.last, feedback)


class CountsInRank(Sound):
    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        self.state.t[0] += 1
        return super().rank(context, rng=rng)


class KeepsStateElsewhere(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.bonus = np.zeros(4)

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        return Ranking(np.argsort(-(self.bonus + rng.random(4)), kind="stable"))

    def learn(self, ranking: Ranking, feedback: Array) -> None:
        super().learn(ranking, feedback)
        self.bonus[ranking.items[0]] += 1.0


class DrawsFromTheGlobalGenerator(Sound):
    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        return Ranking(np.argsort(-(self.state.total + np.random.random(4)), kind="stable"))  # noqa: NPY002


class RepeatsItems(Sound):
    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        return Ranking(rng.integers(0, 4, 4))


class TakesAnythingAsFeedback(Sound):
    def learn(self, ranking: Ranking, feedback: Array) -> None:
        self.state.total[ranking.items[0]] += np.sum(feedback)


class TurnsTiesAround(Sound):
    def current(self, context: Any = None) -> NDArray[np.int64]:
        return super().current(context)[::-1]


class HasItsOwnSignature(Sound):
    def rank(self, rng: np.random.Generator) -> Ranking:  # type: ignore[override]
        return super().rank(rng=rng)


def test_a_sound_ranker_passes() -> None:
    checks.check_ranker(Sound)


@pytest.mark.parametrize(
    ("faulty", "check"),
    [
        (RemembersItsLastRanking, checks.check_rank_changes_nothing),
        (RemembersItsLastRanking, checks.check_tickets_travel),
        (CountsInRank, checks.check_rank_changes_nothing),
        (KeepsStateElsewhere, checks.check_state_is_everything),
        (DrawsFromTheGlobalGenerator, checks.check_randomness_is_given),
        (RepeatsItems, checks.check_rankings_are_valid),
        (TakesAnythingAsFeedback, checks.check_bad_feedback_changes_nothing),
        (HasItsOwnSignature, checks.check_signature),
        (TurnsTiesAround, checks.check_ties_keep_the_order),
    ],
)
def test_each_classic_fault_is_caught(faulty: type[Sound], check: Any) -> None:
    with pytest.raises(checks.Broken):
        check(faulty)
    with pytest.raises(checks.Broken):
        checks.check_ranker(faulty)
