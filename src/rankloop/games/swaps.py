"""What a proof about swaps is made of: which ranks count alike, and a term that feedback does not show.

Let x stand just above y, and all else be as it is. For relevance 0 and 1 every measure of the package then differs
by  c * (r_x - r_y) * h(t, u),  where t and u count the relevant items above and below the two. As a polynomial in the
relevance of the others, h has the same coefficient for all sets of a items above and b items below: the mixed
difference of h, a times in t and b times in u (Moebius inversion).
"""

from __future__ import annotations

from dataclasses import dataclass

from rankloop.games.verdict import Worlds

Step = tuple[int, int]
Runs = tuple[tuple[int, int], ...]


class Undecided(ValueError):
    """More digits would be needed to distinguish a number from zero."""


@dataclass(frozen=True)
class Term:
    """Labels that matter together: of the upper of two swapped items, x, and of some others.

    Parameters
    ----------
    rank : int
        The swap exchanges the items of this rank, x, and of the next, y.
    above : int
        How many items above the two are in the term.
    below : int
        How many items below the two are in it.
    relevant : int, optional
        How many further items, below the two, are relevant to everybody; all the rest are irrelevant.
    steps : tuple of Step, optional
        With three grades or more: between which labels x, y and the others vary. The label of y is then in the
        term too. None where x and the others vary between 0 and 1, and y is irrelevant.
    """

    rank: int
    above: int
    below: int
    relevant: int = 0
    steps: tuple[Step, Step, Step] | None = None

    @property
    def size(self) -> int:
        """How many labels it has."""
        return self.above + self.below + (1 if self.steps is None else 2)


@dataclass(frozen=True)
class SwapWitness:
    """A proof by swaps. What follows from the definition of the measure is not in it: `games.verify` knows that.

    Parameters
    ----------
    blocks : tuple of (int, int)
        Ranks in a row that count alike form a block: how many blocks in a row have what size, from the top.
    unseen : Term, optional
        A term that no top k holds, neither of any order (hopeless) nor of the orders that differ by the swap (hard).
    worlds : Worlds, optional
        Two worlds made from such a term, where they are few enough to list.
    """

    blocks: Runs
    unseen: Term | None = None
    worlds: Worlds | None = None
