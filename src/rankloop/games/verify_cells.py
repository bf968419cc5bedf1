"""Checks a witness by multiplying and comparing, in whole numbers and fractions: nothing is searched for or solved."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from rankloop.games.game import Game
from rankloop.games.inequalities import Mixture, Point
from rankloop.games.rationals import Whole
from rankloop.games.verdict import CellWitness, Pair, Verdict, Worlds


class Refused(ValueError):
    """A witness does not show what its verdict says."""


def demand(holds: Any, complaint: str) -> None:
    """Refuse unless `holds`."""
    if not holds:
        raise Refused(complaint)


def verify_cells(game: Game, verdict: Verdict) -> None:
    """Whether the witness proves the class; `Refused` names the first thing that is wrong."""
    witness = verdict.witness
    demand(isinstance(witness, CellWitness), "the witness is not about cells")
    assert isinstance(witness, CellWitness)
    L = game.whole
    demand((verdict.n_actions, verdict.n_outcomes) == L.shape, "the game has another size")
    demand(not verdict.easier_k, "a proof about cells says nothing of other feedback")
    demand(verdict.class_ in ("trivial", "easy", "hard", "hopeless"), f"unknown class {verdict.class_!r}")
    _check_numbers(witness)
    _check_parts(verdict.class_, witness)
    _check_actions(L, verdict, witness)
    _check_pairs(L, verdict, witness)
    walls = set(witness.walls)
    if verdict.class_ == "trivial":
        demand(len(witness.points) == 1, "more than one action is best somewhere: not trivial")
        return
    demand(walls, "only one action is ever best: the game is trivial")
    if verdict.class_ == "hopeless":
        pair, direction = _blind(witness, walls)
        _check_unseen(game, range(game.n_actions), pair, direction)
        demand(witness.worlds is not None, "a hopeless game needs two worlds")
        assert witness.worlds is not None
        _check_worlds(game, witness.worlds)
        return
    demand(set(witness.estimates) == walls, "every pair of neighbours needs one estimate")
    for (i, j), terms in witness.estimates.items():
        for action, symbol in terms:
            demand(0 <= action < game.n_actions, f"the game has no action {action}")
            known = game.observations.symbols[action]
            demand(0 <= symbol < len(known), f"action {action} has no signal {symbol}")
        if verdict.class_ == "easy":
            for action, _ in terms:
                demand(between(L, i, j, action), f"action {action} is not a neighbour of {i} and {j}")
        shared = math.lcm(*(coefficient.denominator for coefficient in terms.values()), game.unit.denominator)
        total: Any = np.zeros(game.n_outcomes, dtype=object)
        for (action, symbol), coefficient in terms.items():
            total += int(coefficient * shared) * game.observations.matrix(action)[symbol].astype(object)
        demand(
            (total == game.observations.scale * int(game.unit * shared) * (L[i] - L[j])).all(),
            f"the estimate of {i} against {j} is off",
        )
    if verdict.class_ == "hard":
        (i, j), direction = _blind(witness, walls)
        near = [c for c in range(game.n_actions) if between(L, i, j, c)]
        _check_unseen(game, near, (i, j), direction)


def _check_numbers(witness: CellWitness) -> None:
    # Numbers that are rounded prove nothing.
    whole = [witness.same, *witness.points.values(), *witness.touching.values(), *witness.walls.values()]
    whole += [witness.blind[1]] if witness.blind is not None else []
    demand(all(type(x) is int for each in whole for x in each), "points and directions must be whole numbers")
    mixtures = [*witness.mixtures.values(), *witness.apart.values()]
    parts = [x for mixture in mixtures for x in (*mixture.weights.values(), mixture.s)]
    parts += [x for terms in witness.estimates.values() for x in terms.values()]
    if witness.worlds is not None:
        parts += [witness.worlds.forced, *(chance for side in witness.worlds.chances for chance in side)]
    demand(all(isinstance(x, Fraction | int) for x in parts), "weights and chances must be fractions")


def _check_parts(class_: str, witness: CellWitness) -> None:
    # What the class does not need is not checked, so it must not be there.
    demand(class_ in ("easy", "hard") or not witness.estimates, f"a {class_} game needs no estimates")
    demand(
        class_ in ("hard", "hopeless") or witness.blind is None,
        f"a game of class {class_} has no offending pair",
    )
    demand(class_ == "hopeless" or witness.worlds is None, f"a game of class {class_} has no such worlds")
    demand(
        set(witness.touching) <= set(witness.mixtures),
        "only degenerate actions are among the best without a cell",
    )


def _check_actions(L: Whole, verdict: Verdict, witness: CellWitness) -> None:
    same = witness.same
    demand(len(same) == len(L), "`same` must name one action for each")
    for i, first in enumerate(same):
        demand(
            0 <= first <= i and (L[first] == L[i]).all(),
            f"actions {first} and {i} do not have the same losses",
        )
    distinct = sorted(set(same))
    demand(
        len({tuple(L[i]) for i in distinct}) == len(distinct),
        "two actions with the same losses are told apart",
    )
    demand(
        sorted([*witness.points, *witness.mixtures]) == distinct,
        "each action must be Pareto-optimal or not, and have a proof of it",
    )
    dominated = set(witness.mixtures) - set(witness.touching)
    demand(
        (set(verdict.pareto), set(verdict.degenerate), set(verdict.dominated))
        == (set(witness.points), set(witness.touching), dominated),
        "the verdict names other actions than the witness",
    )
    for i, p in witness.points.items():
        _check_point(p, L, f"point of action {i}")
        for j in distinct:
            demand(j == i or _dot(L[j] - L[i], p) > 0, f"action {j} is as good as {i} at the point of {i}")
    for i, mixture in witness.mixtures.items():
        total = _mixed(L, i, mixture, {j for j in distinct if j != i})
        worse = (total < 0) if i in dominated else (total <= 0)
        demand(worse.all(), f"the mixture against action {i} is worse somewhere")
    for i, p in witness.touching.items():
        demand(len(p) == L.shape[1] and min(p) >= 0 and any(p), f"point of action {i} is not a distribution")
        for j in distinct:
            demand(_dot(L[j] - L[i], p) >= 0, f"action {j} is better than {i} where {i} should be best")


def _check_pairs(L: Whole, verdict: Verdict, witness: CellWitness) -> None:
    pareto = sorted(witness.points)
    pairs = set(combinations(pareto, 2))
    demand(
        set(witness.walls) | set(witness.apart) == pairs,
        "each pair must be neighbours or not, and have a proof of it",
    )
    demand(not set(witness.walls) & set(witness.apart), "a pair is neighbours and not")
    demand(
        set(verdict.neighbours) == set(witness.walls), "the verdict names other neighbours than the witness"
    )
    for (i, j), p in witness.walls.items():
        _check_point(p, L, f"point of neighbours {i} and {j}")
        demand(_dot(L[i] - L[j], p) == 0, f"actions {i} and {j} do not tie at their point")
        values = _values(L, pareto, p)
        demand(
            all(values[c] > values[i] for c in pareto if c not in (i, j)),
            f"another action is as good where {i} and {j} tie",
        )
    for (i, j), mixture in witness.apart.items():
        total = _mixed(L, i, mixture, {c for c in pareto if c not in (i, j)})
        demand(
            (total <= mixture.s * (L[j] - L[i])).all(),
            f"the proof that {i} and {j} are not neighbours is wrong",
        )


def _values(L: Whole, actions: list[int], p: Point) -> dict[int, int]:
    return dict(zip(actions, L[actions] @ np.array(p, dtype=object), strict=True))


def _check_point(p: Point, L: Whole, what: str) -> None:
    demand(len(p) == L.shape[1] and min(p) > 0, f"{what} must give every outcome a chance")


def _mixed(L: Whole, i: int, mixture: Mixture, allowed: set[int]) -> Any:
    weights = mixture.weights
    demand(weights and set(weights) <= allowed, f"the mixture of action {i} names other actions than it may")
    demand(
        min(weights.values()) >= 0 and any(weights.values()),
        f"the mixture of action {i} has a negative weight",
    )
    total: Any = np.zeros(L.shape[1], dtype=object)
    for j, weight in weights.items():
        total = total + weight * (L[j] - L[i])
    return total


def _blind(witness: CellWitness, walls: set[Pair]) -> tuple[Pair, tuple[int, ...]]:
    demand(witness.blind is not None and witness.blind[0] in walls, "the offending pair must be neighbours")
    assert witness.blind is not None
    return witness.blind


def _check_unseen(game: Game, actions: Iterable[int], pair: Pair, direction: tuple[int, ...]) -> None:
    w = np.array(direction, dtype=object)
    demand(w.shape == (game.n_outcomes,), "the direction must have one entry for each outcome")
    for action in actions:
        matrix = game.observations.matrix(action).astype(object)
        demand(not (matrix @ w).any(), f"action {action} sees the direction")
    demand(
        _dot(game.difference(*pair), direction) != 0,
        f"the direction does not change {pair[0]} against {pair[1]}",
    )


def between(L: Whole, i: int, j: int, c: int) -> bool:
    """Whether the losses of c lie on the segment from those of i to those of j."""
    step, ahead = L[j] - L[i], L[c] - L[i]
    at = next(x for x in range(len(step)) if step[x])
    part = Fraction(int(ahead[at]), int(step[at]))
    return 0 <= part <= 1 and bool((ahead == part * step).all())


def _check_worlds(game: Game, worlds: Worlds) -> None:
    p, q = spread(game, worlds)
    for chances in (p, q):
        demand(min(chances) >= 0 and sum(chances) == 1, "a world must be a distribution")
    moved = np.array(p, dtype=object) - np.array(q, dtype=object)
    for action in range(game.n_actions):
        matrix = game.observations.matrix(action).astype(object)
        demand(not (matrix @ moved).any(), f"action {action} tells the worlds apart")
    in_p, in_q = (game.whole @ np.array(world, dtype=object) for world in (p, q))
    first, second = (_number(game, action) for action in worlds.best)
    demand(
        in_p[first] == min(in_p) and in_q[second] == min(in_q), "the named actions are not best in the worlds"
    )
    forced = game.unit * Fraction(min(in_p + in_q) - min(in_p) - min(in_q)) / 2
    demand(
        forced == worlds.forced and forced > 0, f"the worlds force a loss of {forced}, not of {worlds.forced}"
    )


def spread(game: Game, worlds: Worlds) -> tuple[list[Fraction], list[Fraction]]:
    """The chances of all outcomes of the game in the two worlds."""
    number = {vector: x for x, vector in enumerate(getattr(game, "outcomes", range(game.n_outcomes)))}
    out = ([Fraction(0)] * game.n_outcomes, [Fraction(0)] * game.n_outcomes)
    for which, chances in enumerate(worlds.chances):
        demand(len(chances) == len(worlds.outcomes), "a world must give each of its outcomes a chance")
        for outcome, chance in zip(worlds.outcomes, chances, strict=True):
            demand(outcome in number, f"the game has no outcome {outcome}")
            out[which][number[outcome]] += chance
    return out


def _number(game: Game, action: Any) -> int:
    if isinstance(action, tuple):
        orders = list(getattr(game, "orders", []))
        demand(action in orders, f"the game has no action {action}")
        return orders.index(action)
    demand(0 <= action < game.n_actions, f"the game has no action {action}")
    return int(action)


def _dot(row: Whole, p: Iterable[int]) -> int:
    return sum(int(a) * x for a, x in zip(row, p, strict=True) if a)
