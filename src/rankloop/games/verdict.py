"""The verdict on a game, the proofs that it may carry, and both as JSON.

A proof about swaps: let x stand just above y, and all else be as it is. For relevance 0 and 1 every measure of the
package then differs by  c * (r_x - r_y) * h(t, u),  where t and u count the relevant items above and below the two. As
a polynomial in the relevance of the others, h has the same coefficient for all sets of a items above and b items
below: the mixed difference of h, a times in t and b times in u (Moebius inversion).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from rankloop.extras import card
from rankloop.games.exact import Mixture, Point

Pair = tuple[int, int]
Blind = tuple[
    Pair, tuple[int, ...]
]  # neighbours, and a direction that changes their difference and nothing seen
Step = tuple[int, int]
Runs = tuple[tuple[int, int], ...]

_FORMAT = 2  # of the JSON

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
    blind: Blind | None = None
    worlds: Worlds | None = None


class Undecided(ValueError):
    """More digits would be needed to distinguish a number from zero."""


@dataclass(frozen=True)
class Term:
    """Labels that matter together: of the upper of two swapped items, x, and of some others.

    Parameters
    ----------
    rank : int
        The swap exchanges the items of this rank, x, and of the next, y.
    above, below : int
        How many items above the two, and below them, are in the term.
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


@dataclass(frozen=True)
class Verdict:
    """The verdict on a game: its class, how regret grows, and why.

    Parameters
    ----------
    class_ : str
        "trivial", "easy", "hard" or "hopeless".
    route : str
        "cells", from the losses and signals alone, or "structure", from what is known of ranking measures.
    witness : CellWitness or SwapWitness
        The proof, which `games.verify` checks.
    n_actions, n_outcomes : int, optional
        How many actions and outcomes the game has; None for rankings of more than 1,000 items.
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


def save(verdict: Verdict, path: Path | str) -> None:
    """Write the verdict with its whole witness."""
    Path(path).write_text(json.dumps(as_plain(verdict), indent=1) + "\n")


def load(path: Path | str) -> Verdict:
    """The verdict that `save` wrote; a ValueError says where the file is something else."""
    try:
        return from_plain(json.loads(Path(path).read_text()))
    except OSError as problem:
        raise ValueError(f"{path}: {problem.strerror or problem}") from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as problem:
        raise ValueError(f"{path} is not a saved verdict: {problem}") from None


def as_plain(verdict: Verdict) -> dict[str, Any]:
    """The verdict as numbers, text, lists and tables of them."""
    plain = _plain(verdict)
    return {"format": _FORMAT, "class": plain.pop("class_"), "rate": verdict.rate, **plain}


def from_plain(plain: dict[str, Any]) -> Verdict:
    """The verdict that `as_plain` gave."""
    if plain["format"] != _FORMAT:
        raise ValueError(f"format {plain['format']!r} is not known")
    witness = plain["witness"]
    worlds = _worlds(witness["worlds"])
    read_witness = _cell_witness if plain["route"] == "cells" else _swap_witness
    # The feedback was always the top k labels before there was a choice.
    parts = {"feedback": None, **plain, "witness": read_witness(witness, worlds), "class_": plain["class"]}
    for name in ("pareto", "degenerate", "dominated"):
        parts[name] = tuple(parts[name])
    parts["neighbours"] = tuple(map(tuple, parts["neighbours"]))
    return Verdict(**{each.name: parts[each.name] for each in fields(Verdict)})


def _cell_witness(plain: dict[str, Any], worlds: Worlds | None) -> CellWitness:
    return CellWitness(
        same=tuple(plain["same"]),
        points={int(i): tuple(p) for i, p in plain["points"].items()},
        mixtures={int(i): _mixture(mixture) for i, mixture in plain["mixtures"].items()},
        touching={int(i): tuple(p) for i, p in plain["touching"].items()},
        walls={_pair(pair): tuple(p) for pair, p in plain["walls"].items()},
        apart={_pair(pair): _mixture(mixture) for pair, mixture in plain["apart"].items()},
        estimates={
            _pair(pair): {_pair(signal): Fraction(value) for signal, value in terms.items()}
            for pair, terms in plain["estimates"].items()
        },
        blind=None if plain["blind"] is None else (tuple(plain["blind"][0]), tuple(plain["blind"][1])),
        worlds=worlds,
    )


def _swap_witness(plain: dict[str, Any], worlds: Worlds | None) -> SwapWitness:
    blocks = tuple((count, size) for count, size in plain["blocks"])
    return SwapWitness(blocks, _term(plain["unseen"]), worlds)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mixture):
        return {"weights": _plain(value.weights), "s": str(value.s)}
    if isinstance(value, Verdict | CellWitness | SwapWitness | Worlds | Term):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        keys = [",".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in value]
        return dict(zip(keys, map(_plain, value.values()), strict=True))
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _pair(text: str) -> tuple[int, int]:
    first, second = text.split(",")
    return int(first), int(second)


def _term(plain: dict[str, Any] | None) -> Term | None:
    if plain is None:
        return None
    steps = plain["steps"]
    return Term(**{**plain, "steps": None if steps is None else tuple(map(tuple, steps))})


def _mixture(plain: dict[str, Any]) -> Mixture:
    return Mixture({int(i): Fraction(w) for i, w in plain["weights"].items()}, Fraction(plain["s"]))


def _worlds(plain: dict[str, Any] | None) -> Worlds | None:
    if plain is None:
        return None
    p, q = (tuple(map(Fraction, side)) for side in plain["chances"])
    first, second = map(_listed, plain["best"])
    return Worlds(tuple(map(_listed, plain["outcomes"])), (p, q), (first, second), Fraction(plain["forced"]))


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
