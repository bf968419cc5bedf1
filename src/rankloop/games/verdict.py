"""The analyser's verdict, and a witness that can be checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from rankloop.games.inequalities import Mixture, Point
from rankloop.notebook import card

if TYPE_CHECKING:
    from rankloop.games.swaps import SwapWitness

Pair = tuple[int, int]

RATES = {"trivial": "0", "easy": "T^(1/2)", "hard": "T^(2/3)", "hopeless": "T"}
"""How the smallest possible worst-case regret grows with the number of rounds T, up to logarithms."""


@dataclass(frozen=True)
class Worlds:
    """Two distributions of outcomes that no action of the learner tells apart, and their cost.

    Parameters
    ----------
    outcomes : tuple of int or tuple of tuple of int
        The outcomes that happen: their numbers, or relevance vectors.
    chances : tuple of tuple of Fraction
        How likely each is, in the one world and in the other.
    best : tuple of int or tuple of int
        An action, by number or as an order, that does better in the one world, and one that does in the other;
        the best of all where the witness is about cells.
    forced : Fraction
        What every learner loses a round at least, on average over the two worlds.
    """

    outcomes: tuple[int, ...] | tuple[tuple[int, ...], ...]
    chances: tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
    best: tuple[int | tuple[int, ...], int | tuple[int, ...]]
    forced: Fraction


@dataclass(frozen=True)
class CellWitness:
    """A proof about the cells of a game. Distributions are given up to a factor, as whole numbers.

    Parameters
    ----------
    same : tuple of int
        For each action the first one with the same losses.
    points : dict of int to Point
        For each Pareto-optimal action a distribution in which it alone is best.
    mixtures : dict of int to Mixture
        For each other action weights on actions that together are never worse, and always better if it is
        dominated.
    touching : dict of int to Point
        For each degenerate action a distribution in which it is among the best.
    walls : dict of Pair to Point
        For each pair of neighbours a distribution in which the two tie and beat all others.
    apart : dict of Pair to Mixture
        For each other pair of Pareto-optimal actions weights that show that whenever the two tie for the best,
        a third action ties with them.
    estimates : dict of Pair to dict of Pair to Fraction, optional
        For each pair of neighbours coefficients of (action, symbol) that add up to the difference of losses.
    blind : tuple of (Pair, tuple of int), optional
        A pair of neighbours whose difference cannot be estimated, and a direction in the space of distributions
        that changes the difference and nothing that can be seen: by the neighbours (hard), or by any action
        (hopeless).
    worlds : Worlds, optional
        Two worlds made from that direction, where the game is hopeless.
    """

    same: tuple[int, ...]
    points: dict[int, Point]
    mixtures: dict[int, Mixture]
    touching: dict[int, Point]
    walls: dict[Pair, Point]
    apart: dict[Pair, Mixture]
    estimates: dict[Pair, dict[Pair, Fraction]] = field(default_factory=dict)
    blind: tuple[Pair, tuple[int, ...]] | None = None
    worlds: Worlds | None = None


@dataclass(frozen=True)
class Verdict:
    """The verdict on a game: its class, how regret grows, and why.

    measure, n_items, k, n_grades: of a ranking game.

    Parameters
    ----------
    class_ : str
        "trivial", "easy", "hard" or "hopeless".
    route : str
        "cells", from the losses and signals alone, or "structure", from what is known of ranking measures.
    witness : CellWitness or SwapWitness
        The proof, which `games.verify` checks.
    n_actions : int, optional
        How many actions the game has; None for rankings of more than 1,000 items.
    n_outcomes : int, optional
        How many outcomes it has; None for rankings of more than 1,000 items.
    pareto : tuple of int, optional
        Actions that are best for some distribution of outcomes, and alone in that.
    degenerate : tuple of int, optional
        Actions that are never best alone.
    dominated : tuple of int, optional
        Actions that are never best.
    neighbours : tuple of Pair, optional
        Pairs of Pareto-optimal actions whose cells share a border.
    measure : str, optional
        The measure of a ranking game.
    n_items : int, optional
        The number of items of a ranking game.
    k : int, optional
        How many top labels are seen in a ranking game; None where the feedback is of another kind.
    max_grade : int, optional
        The largest label of a ranking game.
    easier_k : dict of str to int, optional
        For each better class, the smallest k that reaches it (structure only).
    feedback : str, optional
        The feedback model of a ranking game, where it is not the top k labels.
    """

    class_: str
    route: str
    witness: CellWitness | SwapWitness
    n_actions: int | None
    n_outcomes: int | None
    pareto: tuple[int, ...] = ()
    degenerate: tuple[int, ...] = ()
    dominated: tuple[int, ...] = ()
    neighbours: tuple[Pair, ...] = ()
    measure: str | None = None
    n_items: int | None = None
    k: int | None = None
    max_grade: int = 1
    easier_k: dict[str, int] = field(default_factory=dict)
    feedback: str | None = None

    @property
    def rate(self) -> str:
        """How regret grows with the number of rounds, at best."""
        return RATES[self.class_]

    @property
    def worlds(self) -> Worlds | None:
        """The two worlds of a hopeless game."""
        return self.witness.worlds

    def __repr__(self) -> str:
        return f"<verdict: {self.class_}, regret of order {self.rate}>"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"regret grows as": self.rate}
        if self.measure is not None:
            revealed = self.feedback or f"the top {self.k} labels"
            facts["game"] = f"{self.measure} of {self.n_items} items, {revealed} revealed"
        if self.n_actions is not None:
            facts["size"] = f"{self.n_actions:,} actions, {self.n_outcomes:,} outcomes"
        facts["proof by"] = "cells" if self.route == "cells" else "the structure of the measure"
        facts["more"] = "games.explain(verdict), games.verify"
        return card(f"Verdict: {self.class_}", facts)
