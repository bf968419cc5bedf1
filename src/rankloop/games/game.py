"""A finite partial-monitoring game as data: the loss of each action in each outcome, and what it reveals."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.games.near_ties import warn_of_near_ties
from rankloop.games.observations import Observations
from rankloop.games.rationals import Whole, fraction, whole_numbers


class Game:
    """A game of a learner, who picks an action, against a world, which picks an outcome; neither sees the other's pick.

    The learner suffers `loss[action, outcome]`, which is not revealed, and observes `signal[action, outcome]`.

    Parameters
    ----------
    loss : object
        Actions x outcomes. Whole numbers, fractions, text such as "1/3" or floats; a float counts as the
        simplest fraction that rounds to it, a float32 as the shortest decimal. A `NearTieWarning` says where two
        floats are almost equal. Negate gains.
    signal : object
        Actions x outcomes, any symbols but NaN: only whether two are the same within a row matters. A dict of symbols
        and chances stands for a signal that is drawn: {"click": "4/5", "none": "1/5"}.

    Examples
    --------
    >>> game = Game([[0, 1], [1, 0]], [["good", "bad"], ["?", "?"]])
    >>> game.n_actions, game.n_outcomes, game.signals.tolist()
    (2, 2, [[0, 1], [0, 0]])
    """

    def __init__(self, loss: Any, signal: Any) -> None:
        rows = _table("loss", loss)
        seen = _table("signal", signal)
        if (len(rows), len(rows[0])) != (len(seen), len(seen[0])):
            raise ValueError(
                f"loss and signal must have the same shape, got {len(rows)} x {len(rows[0])} "
                f"and {len(seen)} x {len(seen[0])}"
            )
        exact: list[list[Fraction]] = []
        for a, row in enumerate(rows):
            exact.append([])
            for x, value in enumerate(row):
                try:
                    exact[-1].append(fraction(value))
                except ValueError as problem:
                    raise ValueError(f"loss[{a}, {x}]: {problem}") from None
        warn_of_near_ties(rows, exact)
        self._given = matrices(exact, seen)

    @cached_property
    def _matrices(self) -> tuple[Whole, Fraction, Observations]:
        return self._given

    @property
    def whole(self) -> Whole:
        """The losses as whole numbers; times `unit`, they are the losses."""
        return self._matrices[0]

    @property
    def unit(self) -> Fraction:
        """The unit of the losses."""
        return self._matrices[1]

    @property
    def signals(self) -> NDArray[np.int64]:
        """What is seen: symbols, numbered within each row in order of appearance; ValueError where they are drawn."""
        return self._matrices[2].codes

    @property
    def observations(self) -> Observations:
        """The symbols of each action, and their chances in each outcome."""
        return self._matrices[2]

    @property
    def n_actions(self) -> int:
        """How many rows."""
        return int(self.whole.shape[0])

    @property
    def n_outcomes(self) -> int:
        """How many columns."""
        return int(self.whole.shape[1])

    @cached_property
    def loss(self) -> NDArray[np.float64]:
        """The losses, rounded, for reading."""
        return np.array([[float(self.unit * int(value)) for value in row] for row in self.whole])

    def difference(self, i: int, j: int) -> Whole:
        """loss[i] - loss[j], in units.

        Parameters
        ----------
        i : int
            One action.
        j : int
            The other action.

        Returns
        -------
        ndarray of int
            The difference, a number for each outcome.
        """
        return np.asarray(self.whole[i] - self.whole[j])

    def signal_rows(self, actions: Any) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
        """The signal matrices of some actions (2015, Definition 2), one above the other; (action, symbol) of each row.

        Of actions that reveal the same, only the first counts. Rows are times `observations.scale`, which is 1 where
        signals are not drawn.

        Parameters
        ----------
        actions : iterable of int
            The actions.

        Returns
        -------
        tuple of (ndarray of int, list of tuple)
            The rows, and the (action, symbol) of each.
        """
        parts, owners = [], []
        known = set()
        for a in actions:
            if self.observations.keys[a] in known:
                continue
            known.add(self.observations.keys[a])
            parts.append(self.observations.matrix(a))
            owners += [(int(a), symbol) for symbol in range(len(parts[-1]))]
        return np.concatenate(parts), owners

    def __repr__(self) -> str:
        return f"<game of {self.n_actions} actions and {self.n_outcomes} outcomes>"


def matrices(exact: list[list[Fraction]], seen: list[list[Any]]) -> tuple[Whole, Fraction, Observations]:
    """Losses in units, the unit, and what is seen."""
    losses, unit = whole_numbers(exact)
    return losses, unit, Observations(seen)


def _table(name: str, values: Any) -> list[list[Any]]:
    try:
        rows = [list(row) if not isinstance(row, str) else [row] for row in values]
    except TypeError:
        raise ValueError(f"{name} must be rows of entries, one row for each action, got {values!r}") from None
    if not rows or not rows[0]:
        raise ValueError(f"{name} must have at least one action and one outcome")
    for a, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"{name} row {a} has {len(row)} entries, row 0 has {len(rows[0])}")
    return [[_plain(value) for value in row] for row in rows]


def _plain(value: Any) -> Any:
    # A short float as a Python float would show digits that it does not have.
    if isinstance(value, np.generic) and not isinstance(value, np.floating):
        return value.item()
    return value
