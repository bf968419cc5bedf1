"""The contracts: rankings, rankers, environments, and the five rules they keep.

1. `rank` changes nothing but `rng`; many rankings may be open at once.
2. `learn` works from a ticket that was saved and loaded in another process; late and out of order is normal.
3. All mutable state is in `state`; parameters are not state; `load` goes into a ranker built with the same arguments.
4. Randomness is an argument; the same seed gives the same run, on any machine.
5. One signature for all; `context=None` where there is none.

`rankloop.checks` tests each rule on any class that follows these contracts.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import state_file
from rankloop.arguments import numbers, one_of, whole
from rankloop.calls import with_sentences
from rankloop.constructor import Constructed
from rankloop.ranges import Range
from rankloop.ranking import Array, Memo, Ranking, draw_key
from rankloop.servable import Servable

__all__ = [
    "Array",
    "Environment",
    "Feedback",
    "Memo",
    "Ranker",
    "Ranking",
    "draw_key",
    "numbers",
    "one_of",
    "whole",
]


class Feedback(abc.ABC):
    """What a user reveals of a shown list. Concrete kinds live in `rankloop.feedback`."""

    kind: ClassVar[str]  # "clicks" are 0 or 1

    @abc.abstractmethod
    def length(self, n_positions: int) -> int:
        """How many positions, from the top, are revealed of a list with `n_positions`.

        Parameters
        ----------
        n_positions : int
            The length of the list.
        """

    def check(self, revealed: ArrayLike, n_positions: int) -> NDArray[np.float64]:
        """`revealed` as numbers, one for each revealed position; ValueError if it is anything else.

        Parameters
        ----------
        revealed : array_like
            What came back, by position.
        n_positions : int
            The length of the list.
        """
        given = numbers("feedback", revealed)
        expected = self.length(n_positions)
        if given.shape != (expected,):
            raise ValueError(
                f"feedback has shape {given.shape}, {self} of {n_positions} positions needs ({expected},)"
            )
        if not np.isfinite(given).all() or (given < 0).any():
            raise ValueError(f"feedback must be finite and not negative, got {given}")
        if self.kind == "clicks" and not ((given == 0.0) | (given == 1.0)).all():
            raise ValueError(f"feedback must be 0 (no click) or 1 (click), got {given}")
        return given


class Ranker(Constructed, Servable, abc.ABC):
    """Shows rankings and learns from feedback."""

    feedback: Feedback
    state: Any  # a NamedTuple of arrays
    n_positions: int | None  # None where each request brings a list of its own, with features
    n_items: int | None = None  # to choose from for those positions; None where each request brings its own
    n_features: int | None = None  # of an item in such a list, where it must be known
    takes_sparse: ClassVar[bool] = (
        False  # whether the features of a request may be sparse, `features.SparseRows`
    )
    max_grade: int | None = None  # the largest relevance that it was built for, where that matters
    informed: bool = False  # whether its arguments give the order to begin with; otherwise as numbered
    portable: ClassVar[bool] = True  # whether its state has the same bytes on every machine

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        with_sentences(cls)

    @abc.abstractmethod
    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        """A ranking for one request. Reads state; its only effect is to advance `rng`.

        Parameters
        ----------
        context : object, optional
            The request: a row of features for each candidate, or None where items are the same for everybody.
        rng : numpy.random.Generator
            Where the randomness comes from.

        Returns
        -------
        Ranking
            The items to show, and what `learn` will need to know about them.
        """

    @abc.abstractmethod
    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        """Update state with the feedback on `ranking`.

        Parameters
        ----------
        ranking : Ranking
            The ranking that was shown, perhaps saved and loaded in between.
        feedback : array_like
            What came back, by position: as many numbers as `self.feedback` reveals.
        """

    @abc.abstractmethod
    def current(self, context: Any = None) -> NDArray[np.int64]:
        """The order that it estimates to be best now, without exploration or perturbation.

        Of items that it estimates to be equally good, the one with the smaller number comes first.

        Parameters
        ----------
        context : object, optional
            The request, as for `rank`.

        Returns
        -------
        ndarray of int
            Items by position, best first.
        """

    def state_arrays(self) -> dict[str, Array]:
        """A copy of every mutable thing, as named arrays.

        Returns
        -------
        dict of str to numpy.ndarray
            An array for each field of `state`.
        """
        return {name: np.array(value) for name, value in self.state._asdict().items()}

    @overload
    def save(self) -> dict[str, Array]: ...

    @overload
    def save(self, path: str | os.PathLike[str]) -> None: ...

    def save(self, path: str | os.PathLike[str] | None = None) -> dict[str, Array] | None:
        """Save state, class and arguments: to a file, or as named arrays that are ready for `np.savez`.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file, in NumPy's npz format. It is written whole or not at all; `rankloop.load(path)` reads it.

        Returns
        -------
        dict of str to numpy.ndarray or None
            The arrays where no path is given.
        """
        saved = self.state_arrays() | {state_file.ORIGIN: state_file.origin(self)}
        if path is None:
            return saved
        state_file.write(path, saved)
        return None

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        """Take over the state that a ranker built with the same arguments saved.

        Parameters
        ----------
        saved : mapping of str to numpy.ndarray, str or os.PathLike
            What `save` of a ranker built with the same arguments gave.

        Raises
        ------
        ValueError
            Where it was saved by another class or with other arguments, or holds no state of this ranker. Nothing
            changes then.
        """
        if isinstance(saved, str | os.PathLike):
            saved = state_file.read(saved)
        state_file.check_origin(saved, self)
        fields = self.state._asdict()
        if set(saved) - {state_file.ORIGIN} != set(fields):
            raise ValueError(f"saved state has {sorted(saved)}, {type(self).__name__} needs {sorted(fields)}")
        for name, value in fields.items():
            if np.shape(saved[name]) != value.shape or np.asarray(saved[name]).dtype != value.dtype:
                raise ValueError(
                    f"saved state {name!r} is {np.asarray(saved[name]).dtype}{np.shape(saved[name])}, "
                    f"this {type(self).__name__} holds {value.dtype}{value.shape}: built with other arguments?"
                )
            if not np.isfinite(saved[name]).all():
                raise ValueError(f"saved state {name!r} must be finite, got {saved[name]}")
        self.check_state(saved)
        for name, value in fields.items():
            value[...] = saved[name]

    def check_state(self, saved: Mapping[str, Array]) -> None:
        """ValueError where arrays of the right shape hold values that no state of this ranker can have.

        Parameters
        ----------
        saved : mapping of str to array_like
            The arrays, of the right names and shapes.
        """
        return

    def tunable(self) -> Mapping[str, Range]:
        """The arguments that `simulation.tune` may search, each with its range.

        Returns
        -------
        mapping of str to Range
            Ranges that suit the other arguments, such as the horizon. Empty by default.
        """
        return {}

    def counters(self) -> dict[str, int]:
        """Counters for the trace, such as how often a solver fell back."""
        return {}

    def _facts(self) -> dict[str, object]:
        if self.n_positions is None:
            ranks = "lists that requests bring, by their features"
        else:
            ranks = f"{self.n_positions:,} of {self.n_items or self.n_positions:,} items"
        return super()._facts() | {"ranks": ranks, "learns from": self.feedback}

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> Iterator[Self]:
        """A few small rankers of this class, fresh, for the checks."""

    def example_context(self, rng: np.random.Generator) -> Any:
        """A request such as this ranker takes, for the checks.

        Parameters
        ----------
        rng : numpy.random.Generator
            Where the randomness comes from.
        """
        return None


class Environment(Constructed, abc.ABC):
    """Users with known preferences."""

    reveals: ClassVar[str]  # the kind of feedback that `respond` gives
    measure: str
    is_loss: bool
    n_positions: int  # of the longest list
    n_items: int | None = (
        None  # to choose from for those positions; None where requests bring lists of their own
    )
    n_features: int | None = None  # of an item, where requests bring lists of their own
    sparse: bool = False  # whether those features come as `features.SparseRows`
    n_shown: int | None = None  # how many positions of such a list users see; None for all
    max_grade: int  # the largest relevance that `respond` gives
    reacts: ClassVar[bool] = False  # whether `respond` remembers what was shown; else only `arrive` moves on

    @property
    def remaining(self) -> int | None:
        """How many users are still to come; None where they never end."""
        return None

    @abc.abstractmethod
    def arrive(self, *, rng: np.random.Generator) -> Any:
        """The next request: its context, or None.

        Parameters
        ----------
        rng : numpy.random.Generator
            Where the randomness comes from.

        Returns
        -------
        object
            What `rank` gets.
        """

    @abc.abstractmethod
    def respond(self, ranking: Ranking, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """All that this user could reveal of the shown list, by position; the feedback model cuts it.

        Parameters
        ----------
        ranking : Ranking
            The ranking that was shown.
        rng : numpy.random.Generator
            Where the randomness comes from.

        Returns
        -------
        ndarray of float
            One number for each position.
        """

    @abc.abstractmethod
    def value(self, ranking: Ranking) -> float:
        """The true value of this ranking for this user, never revealed to the ranker.

        Parameters
        ----------
        ranking : Ranking
            A ranking for the present user.

        Returns
        -------
        float
            What it is worth.
        """

    @abc.abstractmethod
    def best(self, context: Any = None) -> Ranking:
        """An optimal ranking.

        Parameters
        ----------
        context : object, optional
            The request, where it matters.

        Returns
        -------
        Ranking
            A ranking that no other beats.
        """

    @abc.abstractmethod
    def hindsight(self) -> float:
        """Total value of the best fixed ranking since `start_counting`; NaN where it cannot be computed."""

    @abc.abstractmethod
    def start_counting(self) -> None:
        """Start counting for `hindsight` here. The users to come do not change."""

    @abc.abstractmethod
    def restart(self) -> None:
        """Start again with the first user."""

    def _facts(self) -> dict[str, object]:
        shown = f"{self.n_positions:,} positions" + (
            "" if self.n_items is None else f", {self.n_items:,} items"
        )
        measured = f"{self.measure}, {'smaller' if self.is_loss else 'larger'} is better"
        return super()._facts() | {"shows": shown, "reveals": self.reveals, "measured by": measured}

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> Iterator[Self]:
        """A few small environments of this class, fresh, for the checks."""
