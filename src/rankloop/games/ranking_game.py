"""Ranking as a game: actions are orders, outcomes are relevance vectors, the signal is what users reveal."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np

from rankloop import measures
from rankloop.arguments import whole
from rankloop.games import signal_models
from rankloop.games.exact import Whole, exact_value, recovered
from rankloop.games.game import Game, Observations, matrices
from rankloop.games.signal_models import SignalModel
from rankloop.kernels import discounts
from rankloop.measures import Measure

_NEAR = 1e-9  # of the largest weight: nearer than that, two weights may be meant to be equal
_LARGEST = 1 << 21
_COUNTED = 1_000
Revealing = str | SignalModel | Callable[[tuple[int, ...], tuple[int, ...]], Any]
Scoring = Callable[[tuple[int, ...], tuple[int, ...]], Any]


class RankingGame(Game):
    """The game behind a measure and a feedback model, by default the top k labels. Its matrices are built on first use.

    Parameters
    ----------
    measure, n_items, k, grades, feedback : object
        As of `ranking_game`.
    """

    def __init__(
        self,
        *,
        measure: str | Measure | Scoring,
        n_items: int,
        k: int | None = None,
        grades: int | Sequence[int] = 2,
        feedback: Revealing | None = None,
    ) -> None:
        self.n_items = whole("n_items", n_items, at_least=1)
        if feedback is None:
            self.k = whole("k", 1 if k is None else k, at_least=1, at_most=self.n_items)
        elif k is not None:
            raise ValueError(f"k={k} and feedback={feedback!r} exclude each other: give one of them")
        else:
            self.k = signal_models.read(feedback).k
        self.model = signal_models.top(self.k) if self.k else signal_models.read(feedback)
        if self.model.positions > self.n_items:
            raise ValueError(
                f"feedback {self.model.name!r} needs {self.model.positions} positions, got n_items={n_items}"
            )
        self.feedback = None if self.k else self.model.name
        self.grades = _grades(grades)
        self.max_grade = self.grades[-1]
        self.scored: Measure | None = None  # the package's
        self.scoring: Scoring | None = None  # one's own
        self.levels: tuple[float, ...] | None = None
        if isinstance(measure, str | Measure):
            found = measures.get(measure)
            if found.cutoffs == "required" and found.cutoff is None:
                raise ValueError(f"{found.family} needs a cut-off: write {found.family}@k")
            if found.binary and self.max_grade > 1:
                raise ValueError(
                    f"measure {found.name!r} takes relevance 0 or 1, got grades={list(self.grades)}"
                )
            self.measure = found.name
            if is_packaged(found):
                self.scored = found
            else:
                self.scoring, self.levels = _Valued(found), _levels(found, self.n_items)
        else:
            self.scoring = measure
            self.measure = getattr(measure, "__name__", "measure")
        if self.scored is None and _is_name(self.measure):
            self.measure += " (own)"

    @property
    def is_known(self) -> bool:
        """Whether the structure of the measure is known, the top labels are seen, and grades are 0, 1, 2, ...

        The structure of the package's measures is, and that of weights that fall with the rank, times a gain.
        """
        plain = self.grades == tuple(range(len(self.grades)))
        return (self.scored is not None or self.levels is not None) and plain and self.k > 0

    @property
    def family(self) -> str:
        """The name of the measure without its cut-off; of a function, nothing."""
        return self.scored.family if self.scored is not None else ""

    @property
    def cutoff(self) -> int:
        """How many ranks from the top count: those of the measure's cut-off, or all."""
        return min((self.scored and self.scored.cutoff) or self.n_items, self.n_items)

    @property
    def n_actions(self) -> int:
        return math.factorial(self.n_items)

    @property
    def n_outcomes(self) -> int:
        return int(len(self.grades) ** self.n_items)

    @property
    def size(self) -> tuple[int | None, int | None]:
        """How many actions and outcomes there are; None beyond 1,000 items, where nobody would read the numbers."""
        return (self.n_actions, self.n_outcomes) if self.n_items <= _COUNTED else (None, None)

    @cached_property
    def orders(self) -> list[tuple[int, ...]]:
        """The actions, items by position: the inverses of 123, 132, 213, ... of Table 1 of the 2015 paper."""
        self._refuse_if_large()
        return [tuple(np.argsort(ranks).tolist()) for ranks in permutations(range(self.n_items))]

    @cached_property
    def outcomes(self) -> list[tuple[int, ...]]:
        """Relevance vectors, item 0 first."""
        self._refuse_if_large()
        return list(product(self.grades, repeat=self.n_items))

    @cached_property
    def _matrices(self) -> tuple[Whole, Fraction, Observations]:
        losses = [[self.value(order, r) for r in self.outcomes] for order in self.orders]
        return matrices(losses, [[self.model(order, r) for r in self.outcomes] for order in self.orders])

    def value(self, order: Sequence[int], relevance: Sequence[int]) -> Fraction:
        """The loss of an `order`, items by position, with this `relevance` of each item, exactly."""
        if self.scoring is not None:
            try:
                return recovered(self.scoring(tuple(order), tuple(relevance)))
            except ValueError as problem:
                raise ValueError(f"measure {self.measure!r}: {problem}") from None
        assert self.scored is not None
        highest = max(1, self.max_grade, self.scored.max_grade or 1)
        worth = exact_value(self.scored, order, relevance, max_grade=highest)
        return worth if self.scored.is_loss else -worth

    def described(self) -> dict[str, Any]:
        """What a verdict says of the game that it is about."""
        about = {"measure": self.measure, "n_items": self.n_items, "k": self.k or None}
        return about | {"max_grade": self.max_grade, "feedback": self.feedback}

    def _refuse_if_large(self) -> None:
        if self.n_items > _COUNTED:
            raise ValueError(f"n_items={self.n_items} makes too many orders and relevance vectors to list")
        if self.n_actions * self.n_outcomes > _LARGEST:
            raise ValueError(
                f"n_items={self.n_items} makes {self.n_actions:,} orders and {self.n_outcomes:,} relevance vectors: "
                f"too many to list"
            )

    def __repr__(self) -> str:
        return f"<game of {self.measure}, {self.n_items} items, {self.model.name}>"


class _Valued:
    """The loss that a measure of one's own gives: a float, which is no more than that."""

    def __init__(self, measure: Measure) -> None:
        self.measure, self.sign = measure, 1.0 if measure.is_loss else -1.0

    def __call__(self, order: tuple[int, ...], relevance: tuple[int, ...]) -> float:
        return self.sign * float(self.measure(order, relevance))


def is_packaged(measure: Measure) -> bool:
    """Whether `measure` is one of the package, with any cut-off it may have; not one that only bears its name."""
    if not _is_name(measure.family) or type(measure) is not Measure:
        return False
    known = measures.get(measure.family)
    if measure.cutoff is not None and known.cutoffs == "none":
        return False
    return dataclasses.replace(measure, cutoff=None, max_grade=known.max_grade) == known


def _is_name(name: str) -> bool:
    try:
        measures.get(name)
    except ValueError:
        return False
    return True


def _levels(measure: Measure, m: int) -> tuple[float, ...] | None:
    # The weights by rank where the value is their sum times a gain of each item alone, and a lower rank never counts
    # more: then only which weights are equal matters. Otherwise None.
    plain = {field.name: field.default for field in dataclasses.fields(Measure)}
    computed = type(measure) is Measure and measure.score is plain["score"]
    if not computed or measure.kind not in (discounts.IDENTITY, discounts.EXP2):
        return None
    weights = [float(weight) for weight in measure.discount(m)]
    falling = [-weight for weight in weights] if measure.is_loss else weights
    if not all(math.isfinite(weight) for weight in weights) or sorted(falling, reverse=True) != falling:
        return None
    near = _NEAR * max(map(abs, weights))
    for rank, (one, other) in enumerate(pairwise(weights), 1):
        if 0.0 < abs(one - other) <= near:
            raise ValueError(
                f"measure {measure.name!r} weighs ranks {rank} and {rank + 1} with {one!r} and {other!r}, and the "
                "class of a game depends on which weights are equal: make them equal, or clearly different"
            )
    return tuple(weights)


def ranking_game(
    *,
    measure: str | Measure | Scoring,
    n_items: int,
    k: int | None = None,
    grades: int | Sequence[int] = 2,
    feedback: Revealing | None = None,
) -> RankingGame:
    """The game of ranking `n_items` items by `measure` when the relevance of the first `k` shown is revealed.

    Parameters
    ----------
    measure : str, Measure or Scoring
        A measure of the package, one of your own, or a function of an order and a relevance vector that gives a
        loss. Yours is classified by what it computes, whatever its name. Give fractions: of floats, those are taken
        for fractions that can only be these, and others are refused.
    n_items : int
        How many items there are, m. There are m! actions.
    k : int, optional
        How many of the shown items, from the top, reveal their relevance; 1 by default.
    grades : int or sequence of int, optional
        How many grades there are (2: relevance 0 and 1), or the grades themselves.
    feedback : str, SignalModel or callable, optional
        What is revealed instead: "first click", "position 2", "preference 1 2", "noisy clicks 1 4/5 1/5", a model of
        `games.signal_models`, or a function of an order and a relevance vector that gives a signal, or a dict of
        signals and their chances.

    Examples
    --------
    >>> game = ranking_game(measure="sum_loss", n_items=3, k=1)
    >>> game.loss[0].astype(int).tolist()  # Table 1 of the 2015 paper, first row
    [0, 3, 2, 5, 1, 4, 3, 6]
    >>> ranking_game(measure="precision@1", n_items=3, feedback="first click")
    <game of precision@1, 3 items, first click>
    """
    return RankingGame(measure=measure, n_items=n_items, k=k, grades=grades, feedback=feedback)


def expected_loss(
    game: RankingGame, order: Sequence[int], vectors: Sequence[Sequence[int]], chances: Sequence[Fraction]
) -> Fraction:
    """The loss of an order where relevance vectors have these chances, exactly."""
    return sum((w * game.value(order, v) for w, v in zip(chances, vectors, strict=True) if w), Fraction(0))


def _grades(grades: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(grades, int | np.integer):
        return tuple(range(whole("grades", grades, at_least=2)))
    try:
        listed = tuple(whole("grades", grade, at_least=0) for grade in grades)
    except TypeError:
        listed = ()
    if len(listed) < 2 or list(listed) != sorted(set(listed)):
        raise ValueError(
            f"grades must be a number of at least 2, or two or more rising grades, got {grades!r}"
        )
    return listed
