"""Tests and intervals of comparisons that may be looked at at any time, however often.

What comes in is which of two rankings each list prefers: 1, -1, or 0 where it prefers neither.

- The sign test with a mixture (Robbins 1970): of the lists that prefer one of them, half prefer each where there is no
  difference; otherwise the share is beta distributed. The likelihood ratio of the two is a nonnegative martingale, and
  ever exceeds 1 / error with a probability of at most `error` (Ville). For lists that are alike over time.
- An empirical Bernstein bound (Howard et al. 2021; Waudby-Smith and Ramdas 2024), a mixture over the inequality of Fan,
  Grama and Liu (2015): of the mean preference of all lists, whatever changes meanwhile. It takes more lists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, numbers, one_of, whole

__all__ = ["Bounds", "Pair", "Tally", "sign_evidence", "winning_share"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ERROR = 0.05
PRIOR = 10.0  # of the beta distribution: as if so many lists had preferred each
TESTS = ("sign", "bernstein")
_LAMBDAS = np.exp2(-np.arange(1.0, 31.0))


class Bounds(NamedTuple):
    """A mean, and bounds that hold at all times.

    Parameters
    ----------
    mean, low, high : float
        The mean, and the bounds.
    """

    mean: float
    low: float
    high: float


def sign_evidence(wins: int, losses: int, *, prior: float = PRIOR) -> float:
    """The logarithm of the evidence that one of two rankings is preferred: above log(1 / error), one is.

    Parameters
    ----------
    wins, losses : int
        How many lists preferred the one, and the other.
    prior : float, optional
        Of the symmetric beta distribution that the winner's share has otherwise: the larger, the smaller the
        differences that it is made for.

    Examples
    --------
    >>> sign_evidence(10, 10) < 0 < sign_evidence(20, 5) < math.log(20) < sign_evidence(60, 25)
    True
    """
    won, lost = whole("wins", wins, at_least=0), whole("losses", losses, at_least=0)
    return _mixture(won, lost, number("prior", prior, above=0)) + (won + lost) * math.log(2.0)


def _mixture(wins: float, losses: float, prior: float) -> float:
    return _log_beta(prior + wins, prior + losses) - _log_beta(prior, prior)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def winning_share(wins: int, losses: int, *, error: float = ERROR, prior: float = PRIOR) -> Bounds | None:
    """The share of the lists that prefer one of two rankings that prefer the first; None where none prefers one.

    Parameters
    ----------
    wins, losses : int
        How many lists preferred the first, and the other.
    error : float, optional
        The probability with which the bounds ever leave the true share out.
    prior : float, optional
        As for `sign_evidence`, which exceeds log(1 / error) where the bounds leave out 1/2.

    Examples
    --------
    >>> [round(x, 3) for x in winning_share(60, 25)]
    [0.706, 0.534, 0.845]
    """
    won, lost = whole("wins", wins, at_least=0), whole("losses", losses, at_least=0)
    error = number("error", error, above=0, below=1)
    if not won + lost:
        return None
    share, wanted = won / (won + lost), _mixture(won, lost, number("prior", prior, above=0)) + math.log(error)

    def bound(inside: float, outside: float) -> float:
        """Where the likelihood of a share falls to what is wanted, between one that is inside and one that is not."""
        for _ in range(60):
            middle = (inside + outside) / 2.0
            likelihood = won * math.log(middle) + lost * math.log1p(-middle)
            inside, outside = (inside, middle) if likelihood <= wanted else (middle, outside)
        return inside

    return Bounds(share, bound(share, 0.0) if won else 0.0, bound(share, 1.0) if lost else 1.0)


def reach(spread: Mapping[int, Floats | float], error: float) -> Floats:
    """How far a sum may be above that of its means; spread: sums of squares by the power of two that is their scale.

    >>> round(float(reach({0: 1250.0}, 0.025)))  # 5,000 coins; 110 would do for one look at a time known beforehand
    138
    """
    fits = np.ones(len(_LAMBDAS), np.bool_)
    cost: Floats | float = 0.0
    for scale, squares in spread.items():
        x = _LAMBDAS * 2.0**scale
        fits &= x < 1.0
        x = np.minimum(x, 0.5)
        cost = cost + np.multiply.outer((-np.log1p(-x) - x) / 4.0**scale, squares)
    if not spread or not fits.any():
        return np.array(math.inf)
    cost = np.asarray(cost)[fits]
    lambdas = _LAMBDAS[fits].reshape(-1, *[1] * (cost.ndim - 1))
    wanted = math.log(len(_LAMBDAS) / error)
    found: Floats = ((wanted + cost) / lambdas).min(axis=0)
    for _ in range(3):  # Newton's steps on a convex function, from above: each is a bound, too
        terms = lambdas * found - cost
        most = terms.max(axis=0)
        shares = np.exp(terms - most)
        total = shares.sum(axis=0)
        found = found - (most + np.log(total) - wanted) * total / (shares * lambdas).sum(axis=0)
    return found


class Pair(NamedTuple):
    """How two rankings compare.

    Parameters
    ----------
    one, other : int
        Their numbers.
    wins, losses : int
        How many lists prefer the one, and the other.
    share : Bounds or None
        The share of `wins` among these; None where there are none.
    margin : Bounds or None
        The mean preference of all lists, from -1 to 1, whatever changes over time; None where there are none.
    winner : int or None
        The ranking that wins by the test that was chosen; None where the two are not told apart.
    """

    one: int
    other: int
    wins: int
    losses: int
    share: Bounds | None
    margin: Bounds | None
    winner: int | None


class Tally:
    """Counts which rankings lists prefer, and says at any time which one wins.

    Parameters
    ----------
    n_rankings : int
        How many rankings are compared, at least two.
    error : float, optional
        The probability that any verdict is ever wrong. It is divided by the number of pairs.
    test : {"sign", "bernstein"}, optional
        What a verdict rests on: "sign", for users who stay alike, or "bernstein", which holds whatever changes, and
        needs more lists: in two cases that were measured, 1.3 and 1.7 times as many.

    Examples
    --------
    >>> from rankloop.feedback.interleaving import TeamDraft
    >>> rng, tally = np.random.default_rng(1), Tally(2)
    >>> while tally.winner() is None:  # look as often as you like
    ...     shown = TeamDraft().show([[0, 1, 2], [2, 1, 0]], rng=rng)
    ...     tally.add(shown.preferences(rng.random(3) < np.where(shown.items == 2, 0.6, 0.3)))
    >>> tally.winner()
    1
    """

    def __init__(
        self, n_rankings: int, *, error: float = ERROR, test: Literal["sign", "bernstein"] = "sign"
    ) -> None:
        self.n_rankings = whole("n_rankings", n_rankings, at_least=2)
        self.error = number("error", error, above=0, below=1)
        self.test = one_of("test", test, TESTS)
        self.lists = np.zeros(1, np.int64)
        self.wins = np.zeros((self.n_rankings, self.n_rankings), np.int64)
        # Of the preferences less their means so far.
        self.squares = np.zeros((self.n_rankings, self.n_rankings))

    def add(self, preferences: ArrayLike) -> None:
        """Count one list: `preferences` as from `Multileaved.preferences`, 1 in row i, column j where i beats j."""
        signs = numbers("preferences", preferences)
        square = signs.shape == self.wins.shape and np.isin(signs, (-1.0, 0.0, 1.0)).all()
        if not square or (signs != -signs.T).any():
            raise ValueError(
                f"preferences must be a table of -1, 0 and 1 for {self.n_rankings} rankings, got {preferences!r}"
            )
        self.squares += (signs - (self.wins - self.wins.T) / max(1, self.lists[0])) ** 2
        self.wins += signs > 0
        self.lists += 1

    def pairs(self) -> list[Pair]:
        """How each two rankings compare."""
        n = self.n_rankings
        return [self._pair(i, j, self.error / (n * (n - 1) / 2)) for i in range(n) for j in range(i + 1, n)]

    def _pair(self, one: int, other: int, error: float) -> Pair:
        wins, losses, lists = int(self.wins[one, other]), int(self.wins[other, one]), int(self.lists[0])
        share = winning_share(wins, losses, error=error)
        margin = None
        if lists:
            mean = (wins - losses) / lists
            # A preference is at least its mean so far less 2, and at most that and 2.
            off = float(reach({1: float(self.squares[one, other])}, error / 2.0)) / lists
            margin = Bounds(mean, max(mean - off, -1.0), min(mean + off, 1.0))
        low, high, nothing = (0.0, 0.0, 0.0)
        if self.test == "sign" and share is not None:
            low, high, nothing = share.low, share.high, 0.5
        elif self.test == "bernstein" and margin is not None:
            low, high = margin.low, margin.high
        winner = one if low > nothing else other if high < nothing else None
        return Pair(one, other, wins, losses, share, margin, winner)

    def winner(self) -> int | None:
        """The ranking that wins against every other one; None as long as there is none."""
        won = [pair.winner for pair in self.pairs()]
        found = [i for i in range(self.n_rankings) if won.count(i) == self.n_rankings - 1]
        return found[0] if found else None
