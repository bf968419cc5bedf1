"""Checks two worlds of a ranking game: that feedback is alike in them, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, pairwise

from rankloop.games.ranking_game import RankingGame
from rankloop.games.twin_worlds import expected, mean_gains
from rankloop.games.verdict import Worlds
from rankloop.games.verify_cells import demand


def check_worlds(game: RankingGame, worlds: Worlds) -> None:
    """Whether any k labels are distributed alike in the two worlds, and every learner loses what is said."""
    m = game.n_items
    vectors = [tuple(vector) for vector in worlds.outcomes if isinstance(vector, tuple)]
    demand(len(vectors) == len(worlds.outcomes), "the outcomes must be relevance vectors")
    demand(len(set(vectors)) == len(vectors), "an outcome is listed twice")
    demand(
        all(len(vector) == m and set(vector) <= set(game.grades) for vector in vectors),
        f"a relevance vector must have {m} of the grades {list(game.grades)}",
    )
    demand(len(worlds.chances) == 2, "there must be two worlds")
    p, q = worlds.chances
    for side in (p, q):
        demand(all(isinstance(chance, Fraction | int) for chance in side), "chances must be fractions")
        demand(
            len(side) == len(vectors) and min(side) >= 0 and sum(side) == 1, "a world must be a distribution"
        )
    ever = [item for item in range(m) if any(vector[item] for vector in vectors)]
    short = [tuple(vector[item] for item in ever) for vector in vectors]
    moves = [(vector, one - other) for vector, one, other in zip(short, p, q, strict=True) if one != other]
    for seen in combinations(range(len(ever)), min(game.k, len(ever))):
        moved: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for vector, change in moves:
            moved[tuple(vector[at] for at in seen)] += change
        demand(
            not any(moved.values()), f"the labels of items {[ever[at] for at in seen]} tell the worlds apart"
        )
    demand(all(one or other for one, other in zip(p, q, strict=True)), "an outcome never happens")
    orders = worlds.best
    demand(
        len(orders) == 2
        and all(isinstance(order, tuple) and sorted(order) == list(range(m)) for order in orders),
        "the best actions must be orders",
    )
    middle = [(one + other) / 2 for one, other in zip(p, q, strict=True)]
    won = [expected(game, order, vectors, side) for order, side in zip(orders, (p, q), strict=True)]  # type: ignore[arg-type]
    forced = _at_best(game, vectors, middle, ever) - sum(won) / 2
    demand(isinstance(worlds.forced, Fraction) and worlds.forced > 0, "the worlds must cost something")
    demand(forced == worlds.forced, f"the worlds force a loss of {forced}, not of {worlds.forced}")


def _at_best(
    game: RankingGame, vectors: list[tuple[int, ...]], middle: list[Fraction], ever: list[int]
) -> Fraction:
    # The smallest loss of any order on average over the two worlds.
    assert game.scored is not None
    m = game.n_items
    if _symmetric(vectors, middle, ever):
        # Every order with the items that matter first is as good as any other.
        some = set(ever)
        return expected(game, [*ever, *(item for item in range(m) if item not in some)], vectors, middle)
    demand(game.scored.kind >= 0 and game.max_grade == 1, "what is best on average cannot be checked")
    mean = mean_gains(game.scored, vectors, middle)
    return expected(game, sorted(range(m), key=lambda item: -mean[item]), vectors, middle)


def _symmetric(vectors: list[tuple[int, ...]], chances: list[Fraction], items: list[int]) -> bool:
    weight = dict(zip(vectors, chances, strict=True))
    for x, y in pairwise(items):
        for vector, chance in weight.items():
            other = list(vector)
            other[x], other[y] = other[y], other[x]
            if weight.get(tuple(other), Fraction(0)) != chance:
                return False
    return True
