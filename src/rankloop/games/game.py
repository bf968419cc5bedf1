"""A finite partial-monitoring game as data: the loss of each action in each outcome, and what it reveals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.games.exact import Whole, fraction, whole_numbers

_DOUBLE, _SHORTER = Fraction(1, 10**9), Fraction(1, 10**5)  # of the largest loss
_COMPUTED_DIGITS = 15  # nobody writes so many by hand
_LARGEST_MEANT = 10**6  # denominator of a fraction that a float may stand for
_LARGEST_SCALE = 1 << 31  # whole numbers of signal matrices are kept in 64 bits


class NearTieWarning(UserWarning):
    """A loss looks computed with rounding: nearly, but not, equal to another one, or to no short fraction."""


def warn_of_near_ties(losses: Sequence[Sequence[Any]], exact: Sequence[Sequence[Fraction]]) -> None:
    """Warn where a rounded loss is almost, but not exactly, another loss or zero; a class depends on exact ties."""
    doubts: dict[Fraction, Fraction] = {}
    places: dict[Fraction, tuple[int, int]] = {}
    for a, row in enumerate(exact):
        for x, value in enumerate(row):
            places.setdefault(value, (a, x))
            doubts[value] = max(doubts.get(value, Fraction(0)), _doubt(losses[a][x]))
    doubts.setdefault(Fraction(0), Fraction(0))
    if not any(doubts.values()):
        return
    scale = max(map(abs, doubts))
    for low, high in pairwise(sorted(doubts)):
        if high - low <= scale * max(doubts[low], doubts[high]):
            low_name, high_name = (
                f"loss[{places[value][0]}, {places[value][1]}] = {float(value)!r}" if value in places else "0"
                for value in (low, high)
            )
            warnings.warn(
                f"{low_name} and {high_name} differ by {float(high - low):.2g}, and the class of a game depends on "
                'exact ties: if the two should be equal, give fractions, or text such as "3/10"',
                NearTieWarning,
                stacklevel=3,
            )
            return


def warn_of_rounding(losses: Sequence[Sequence[Any]], exact: Sequence[Sequence[Fraction]]) -> None:
    """Warn where a float looks computed: what adds up to nothing in fractions need not do so in rounded numbers."""
    for a, row in enumerate(exact):
        for x, value in enumerate(row):
            if isinstance(losses[a][x], float) and _is_long(losses[a][x], value):
                warnings.warn(
                    f"loss[{a}, {x}] = {losses[a][x]!r} is no short fraction, and the class of a game depends on exact "
                    'sums, which rounding loses: give fractions, or text such as "3/10"',
                    NearTieWarning,
                    stacklevel=3,
                )
                return


def _is_long(value: float, exact: Fraction) -> bool:
    # Neither a short fraction nor a short decimal rounds to it, so it was computed.
    digits = "".join(c for c in repr(value).partition("e")[0] if c.isdigit()).strip("0")
    return exact.denominator > _LARGEST_MEANT and len(digits) >= _COMPUTED_DIGITS


def _doubt(value: Any) -> Fraction:
    # How far a loss may be from what was meant, relative to the largest one.
    if isinstance(value, float):
        return _DOUBLE
    if isinstance(value, np.floating):
        return _SHORTER
    if isinstance(value, str) and "/" not in value:
        digits = [c for c in value.lower().partition("e")[0] if c.isdigit()]
        return _DOUBLE if len("".join(digits).strip("0")) >= _COMPUTED_DIGITS else Fraction(0)
    return Fraction(0)


class Observations:
    """The symbols of each action, numbered in order of appearance, and their chances in each outcome.

    >>> noisy = Observations([["?", "?"], [{"yes": "3/4", "no": "1/4"}, "no"]])
    >>> noisy.symbols, noisy.scale, noisy.matrix(1).tolist()
    ([['?'], ['yes', 'no']], 4, [[3, 0], [1, 4]])
    """

    def __init__(self, seen: list[list[Any]]) -> None:
        self.symbols: list[list[Any]] = []
        self._chances: list[list[dict[int, Fraction]]] = []
        self.certain = True
        for a, row in enumerate(seen):
            codes: dict[Any, int] = {}
            self._chances.append([])
            for x, entry in enumerate(row):
                where = f"signal[{a}, {x}]"
                drawn = isinstance(entry, Mapping)
                chances = _distribution(where, entry) if drawn else [(entry, Fraction(1))]
                self.certain &= not drawn
                self._chances[-1].append({_code(where, symbol, codes): p for symbol, p in chances})
            self.symbols.append(list(codes))
        every = (p for row in self._chances for chances in row for p in chances.values())
        self.scale = 1 if self.certain else math.lcm(*(p.denominator for p in every))
        if self.scale > _LARGEST_SCALE:
            raise ValueError(f"signal has chances with a common denominator of {self.scale}: too large")

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The number of the symbol for each action and outcome; ValueError where symbols are drawn."""
        if not self.certain:
            raise ValueError("the signals of this game are distributions: use signal_rows")
        return np.array([[next(iter(chances)) for chances in row] for row in self._chances], dtype=np.int64)

    def matrix(self, action: int) -> NDArray[np.int64]:
        """`scale` times the chance of each symbol of `action` in each outcome: symbols x outcomes."""
        row = self._chances[action]
        matrix = np.zeros((len(self.symbols[action]), len(row)), dtype=np.int64)
        for x, chances in enumerate(row):
            for code, p in chances.items():
                matrix[code, x] = int(p * self.scale)
        return matrix

    @cached_property
    def keys(self) -> list[bytes]:
        """For each action bytes that are equal where two actions reveal the same."""
        if self.certain:
            return [row.tobytes() for row in self.codes]
        return [self.matrix(a).tobytes() for a in range(len(self.symbols))]


def _distribution(where: str, entry: Mapping[Any, Any]) -> list[tuple[Any, Fraction]]:
    try:
        chances = {symbol: fraction(p) for symbol, p in entry.items()}
    except ValueError as problem:
        raise ValueError(f"{where}: {problem}") from None
    if not chances or min(chances.values()) < 0 or sum(chances.values()) != 1:
        raise ValueError(f"{where} must hold chances that sum to 1, got {dict(entry)!r}")
    return [(symbol, p) for symbol, p in chances.items() if p]


def _code(where: str, symbol: Any, codes: dict[Any, int]) -> int:
    if _is_nan(symbol):
        # NaN equals nothing, not even itself: each would be a signal of its own, and reveal everything.
        raise ValueError(f"{where} must be a number or a word, got NaN")
    try:
        return codes.setdefault(symbol, len(codes))
    except TypeError:
        raise ValueError(f"{where} must be a number or a word, got {symbol!r}") from None


def _is_nan(symbol: Any) -> bool:
    if isinstance(symbol, tuple):
        return any(map(_is_nan, symbol))
    return bool(isinstance(symbol, float | complex | Decimal | np.generic) and symbol != symbol)


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
        warn_of_rounding(rows, exact)
        self._listed = matrices(exact, seen)

    @property
    def _matrices(self) -> tuple[Whole, Fraction, Observations]:
        return self._listed

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
        """What action `i` loses beyond action `j`, in units, a number for each outcome."""
        return np.asarray(self.whole[i] - self.whole[j])

    def signal_rows(self, actions: Any) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
        """Signal matrices of some `actions` (2015, Definition 2), one above the other; (action, symbol) of each row.

        Of actions that reveal the same, only the first counts. Rows are times `observations.scale`, which is 1 where
        signals are not drawn.
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
