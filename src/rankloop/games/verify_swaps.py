"""Checks a witness about swaps: by evaluating the measure itself, and by placing items in orders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from rankloop.games.classify_ranking import ADDITIVE
from rankloop.games.ranking_game import RankingGame
from rankloop.games.swaps import SwapWitness
from rankloop.games.twin_worlds import expected, gain_of
from rankloop.games.verdict import Verdict, Worlds
from rankloop.games.verify_cells import demand

_NEAR = 1e-8


def verify_swaps(game: RankingGame, verdict: Verdict) -> None:
    """Whether the witness proves the class; `Refused` names the first thing that is wrong."""
    witness = verdict.witness
    demand(isinstance(witness, SwapWitness), "the witness is not about swaps")
    assert isinstance(witness, SwapWitness)
    assert game.scored is not None
    m = game.n_items
    demand(sum(witness.blocks) == m and min(witness.blocks) > 0, f"the blocks must hold {m} ranks")
    demand(
        (verdict.class_ == "trivial") == (len(witness.blocks) == 1), "one block means trivial, more mean not"
    )
    if verdict.class_ == "trivial":
        orders = np.array([range(m), range(m - 1, -1, -1)])
        demand(
            np.ptp(_values(game, orders, _random_labels(game)), axis=0).max() < _NEAR,
            "orders do not have the same value",
        )
        return
    ends = [sum(witness.blocks[:i]) for i in range(1, len(witness.blocks))]
    demand(
        [boundary.rank for boundary in witness.boundaries] == ends, "boundaries must lie between the blocks"
    )
    additive = game.scored.family in ADDITIVE
    if game.max_grade > 1 and not additive and game.scored.family != "err":
        _check_graded(game, verdict, witness)
        return
    if game.k == m:
        demand(verdict.class_ == "easy", "with every label revealed the game is easy")
        return
    _check_terms(game, witness)
    sizes = [
        (boundary.rank, a, b)
        for boundary in witness.boundaries
        for a, b, value in witness.terms.within(boundary.rank - 1, m - boundary.rank - 1)
        if value
    ]
    if verdict.class_ == "hopeless":
        demand(witness.unseen in sizes, "the unseen term is none of the terms")
        assert witness.unseen is not None
        demand(1 + witness.unseen[1] + witness.unseen[2] > game.k, "the unseen term can be seen")
        if witness.worlds is not None:
            check_worlds(game, witness.worlds)
        return
    demand(all(1 + a + b <= game.k for _, a, b in sizes), "a term has more items than can be seen at once")
    if verdict.class_ == "hard":
        demand(witness.unseen in sizes, "the unseen term is none of the terms")
        assert witness.unseen is not None
        demand(
            _lowest(witness.blocks, *witness.unseen) > game.k, "the unseen term can be seen by the neighbours"
        )
        return
    demand(verdict.class_ == "easy", f"unknown class {verdict.class_!r}")
    for term in sizes:
        demand(_lowest(witness.blocks, *term) <= game.k, f"the neighbours do not see the term {term}")


def _check_terms(game: RankingGame, witness: SwapWitness) -> None:
    # Every number of relevant items above and below, at random places: the swap is worth scale * h, and minus that if
    # x and y change their labels.
    assert game.scored is not None
    m = game.n_items
    rng = np.random.default_rng(0)
    h = [[float(value) for value in row] for row in witness.terms.table(m - 2)]
    for boundary in witness.boundaries:
        x, y = boundary.rank - 1, boundary.rank
        labels, wanted = [], []
        for t in range(x + 1):
            for u in range(m - y):
                for r_x, r_y in ((1, 0), (0, 1), (1, 1)):
                    vector = np.zeros(m, dtype=np.int64)
                    vector[rng.permutation(x)[:t]] = 1
                    vector[y + 1 + rng.permutation(m - y - 1)[:u]] = 1
                    vector[x], vector[y] = r_x, r_y
                    labels.append(vector)
                    wanted.append((r_x - r_y) * float(boundary.scale) * h[t][u])
        swapped = np.arange(m)
        swapped[[x, y]] = y, x
        found = _values(game, np.array([np.arange(m), swapped]), np.array(labels))
        demand(
            np.abs(found[0] - found[1] - wanted).max() < _NEAR,
            f"the terms do not give the swap of ranks {x + 1} and {y + 1}",
        )


def _values(game: RankingGame, orders: np.ndarray, labels: np.ndarray) -> np.ndarray:
    assert game.scored is not None
    measure = game.scored.graded(max(1, game.max_grade)) if game.scored.family == "err" else game.scored
    return np.asarray(measure(orders[:, None, :], labels[None, :, :]))


def _random_labels(game: RankingGame) -> np.ndarray:
    return np.random.default_rng(0).choice(game.grades, (200, game.n_items))


def _lowest(blocks: Sequence[int], rank: int, a: int, b: int) -> int:
    # Show x, and the a lowest items above it and b lowest below y, as high as their blocks allow: who comes last?
    m = sum(blocks)
    x = rank - 1
    wanted = {x, *range(x - a, x), *range(m - b, m)}
    order: list[int] = []
    start = 0
    for size in blocks:
        order += sorted(range(start, start + size), key=lambda item: (item not in wanted, item))
        start += size
    return 1 + max(order.index(item) for item in wanted)


def _check_graded(game: RankingGame, verdict: Verdict, witness: SwapWitness) -> None:
    if game.k == game.n_items:
        demand(verdict.class_ == "easy", "with every label revealed the game is easy")
    elif verdict.class_ == "hopeless":
        if witness.worlds is not None:
            check_worlds(game, witness.worlds)
    else:
        # The sign of r_y - r_x: two labels at once, so two are enough, and the last one is not seen.
        assert game.scored is not None
        demand(
            game.scored.family == "pairwise_loss",
            f"{game.measure} with grades is hopeless below k = {game.n_items}",
        )
        demand(verdict.class_ == "hard" and game.k >= 2, "the two labels of a swap must be seen together")


def check_worlds(game: RankingGame, worlds: Worlds) -> None:
    """Whether any k labels are distributed alike in the two worlds, and every learner loses what is said."""
    m = game.n_items
    vectors = [tuple(vector) for vector in worlds.outcomes if isinstance(vector, tuple)]
    demand(len(vectors) == len(worlds.outcomes), "the outcomes must be relevance vectors")
    demand(
        all(len(vector) == m and set(vector) <= set(game.grades) for vector in vectors),
        f"a relevance vector must have {m} of the grades {list(game.grades)}",
    )
    p, q = worlds.chances
    for side in (p, q):
        demand(
            len(side) == len(vectors) and min(side) >= 0 and sum(side) == 1, "a world must be a distribution"
        )
    ever = [item for item in range(m) if any(vector[item] for vector in vectors)]
    for seen in combinations(ever, min(game.k, len(ever))):
        moved: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for vector, one, other in zip(vectors, p, q, strict=True):
            moved[tuple(vector[item] for item in seen)] += one - other
        demand(not any(moved.values()), f"the labels of items {list(seen)} tells the worlds apart")
    middle = [(one + other) / 2 for one, other in zip(p, q, strict=True)]
    assert game.scored is not None
    demand(worlds.forced > 0, "the worlds must cost something")
    first, second = worlds.best
    demand(isinstance(first, tuple) and isinstance(second, tuple), "the best actions must be orders")
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    won = (expected(game, first, vectors, p), expected(game, second, vectors, q))
    if _symmetric(vectors, middle, ever):
        # Every order with the items that matter first is as good as any other on average.
        at_best = expected(game, [*ever, *(item for item in range(m) if item not in ever)], vectors, middle)
    else:
        demand(game.scored.kind >= 0 and game.max_grade == 1, "what is best on average cannot be checked")
        gains = [gain_of(game.scored, vector) for vector in vectors]
        mean = [sum((w * g[i] for w, g in zip(middle, gains, strict=True)), Fraction(0)) for i in range(m)]
        at_best = expected(game, sorted(range(m), key=lambda item: -mean[item]), vectors, middle)
    demand(
        at_best - sum(won) / 2 >= worlds.forced,
        f"the worlds do not force a loss of {float(worlds.forced):.3g}",
    )


def _symmetric(vectors: list[tuple[int, ...]], chances: list[Fraction], items: list[int]) -> bool:
    weight: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for vector, chance in zip(vectors, chances, strict=True):
        weight[vector] += chance
    for x, y in pairwise(items):
        for vector, chance in weight.items():
            other = list(vector)
            other[x], other[y] = other[y], other[x]
            if weight.get(tuple(other), Fraction(0)) != chance:
                return False
    return True
