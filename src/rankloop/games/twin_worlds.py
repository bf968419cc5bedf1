"""Two worlds of users whose labels look alike, k at a time, although different orders are best in them.

Take the items of a term with more than k labels, and let every other item be irrelevant to all users. Weight the label
vectors evenly, and move weight from those with an even number of relevant items among the term's to those with an odd
number: a learner that sees fewer labels than the term has cannot notice, and the value of the swap moves with the
coefficient of the term. Since all orders of the chosen items have the same value on average over the two worlds, no
learner can do well in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import comb

from rankloop import measures
from rankloop.games.exact_measures import discounts, exact_value
from rankloop.games.ranking_game import RankingGame
from rankloop.games.verdict import Worlds
from rankloop.measures import Measure

_MOST_ITEMS = 10
_MOST_LABELS = 1 << 17


def twin_worlds(game: RankingGame, above: int) -> Worlds | None:
    """The worlds for a term of k + 1 labels with so many above the swap; None where they would fill pages."""
    n = game.k + 2  # items that are ever relevant: some above, x, y, the others below
    if n > _MOST_ITEMS or 2**n * game.n_items > _MOST_LABELS:
        return None
    x, y = (
        above,
        above + 1,
    )  # the chosen items stand first, so that the swap is that of ranks `above` + 1 and + 2
    term = [item for item in range(n) if item != y]
    vectors = [(*chosen, *(0,) * (game.n_items - n)) for chosen in product((0, 1), repeat=n)]
    # Among the vectors with r_x = r_y the swap changes nothing: leave them out where x and y still come out alike.
    apart = [vector for vector in vectors if vector[x] != vector[y]]
    best: Worlds | None = None
    for used in (vectors, apart):
        if used is apart and game.scored is not None and game.scored.kind < 0:
            continue
        chances = (
            [_share(vector, term, 1, len(used)) for vector in used],
            [_share(vector, term, 0, len(used)) for vector in used],
        )
        worlds = _judged(game, used, chances, x, y)
        if worlds is not None and (best is None or worlds.forced > best.forced):
            best = worlds
    return best


def _share(vector: tuple[int, ...], term: list[int], odd: int, size: int) -> Fraction:
    return Fraction(2, size) if sum(vector[item] for item in term) % 2 == odd else Fraction(0)


def _judged(
    game: RankingGame,
    vectors: Sequence[tuple[int, ...]],
    chances: tuple[list[Fraction], list[Fraction]],
    x: int,
    y: int,
) -> Worlds | None:
    keep = [i for i in range(len(vectors)) if chances[0][i] or chances[1][i]]
    p, q = (tuple(side[i] for i in keep) for side in chances)
    kept = tuple(vectors[i] for i in keep)
    assert game.scored is not None
    if game.scored.kind >= 0:
        # Offsets that no order changes cancel, since the middle is the mean of the two.
        sign = 1 if game.scored.is_loss else -1
        orders, values = [], []
        middle = tuple((one + other) / 2 for one, other in zip(p, q, strict=True))
        for world in (p, q, middle):
            mean = mean_gains(game.scored, kept, world)
            orders.append(tuple(sorted(range(game.n_items), key=lambda item: (-mean[item], item))))
            gains = [mean[item] for item in orders[-1] if mean[item]]
            f = discounts(game.scored, len(gains))
            values.append(
                sign * sum((weight * gain for weight, gain in zip(f, gains, strict=True)), Fraction(0))
            )
        forced = values[2] - (values[0] + values[1]) / 2
        return Worlds(kept, (p, q), (orders[0], orders[1]), forced) if forced > 0 else None
    return _from_swap(game, kept, (p, q), x, y)


def _from_swap(
    game: RankingGame,
    vectors: tuple[tuple[int, ...], ...],
    chances: tuple[tuple[Fraction, ...], tuple[Fraction, ...]],
    x: int,
    y: int,
) -> Worlds | None:
    # All orders of the chosen items tie on average, so each side of the swap wins half of the gap in its own world.
    plain = tuple(range(game.n_items))
    swapped = tuple({x: y, y: x}.get(item, item) for item in plain)
    losses = [[expected(game, order, vectors, world) for world in chances] for order in (plain, swapped)]
    gap = (losses[0][0] - losses[1][0]) - (losses[0][1] - losses[1][1])
    best = (plain, swapped) if losses[0][0] < losses[1][0] else (swapped, plain)
    return Worlds(vectors, chances, best, abs(gap) / 4) if gap else None


def expected(
    game: RankingGame, order: Sequence[int], vectors: Sequence[tuple[int, ...]], chances: Sequence[Fraction]
) -> Fraction:
    """The expected loss of an order."""
    return sum((w * game.value(order, v) for w, v in zip(chances, vectors, strict=True) if w), Fraction(0))


def mean_gains(
    measure: Measure, vectors: Sequence[Sequence[int]], chances: Sequence[Fraction]
) -> list[Fraction]:
    """E[g(relevance)] of a separable measure, binary: r over what depends on the number of relevant items alone."""
    m = len(vectors[0])
    mean = [Fraction(0)] * m
    by_count: dict[int, dict[int, Fraction]] = {}
    for vector, chance in zip(vectors, chances, strict=True):
        of_item = by_count.setdefault(sum(vector), {})
        for item, r in enumerate(vector):
            if r:
                of_item[item] = of_item.get(item, Fraction(0)) + chance
    for s, of_item in by_count.items():
        unit = _divisor(measure, s, m)
        for item, chance in of_item.items():
            mean[item] += chance / unit
    return mean


def _divisor(measure: Measure, s: int, m: int) -> Fraction:
    # What r is divided by where s items are relevant; with all of them relevant, no order of auc matters.
    if measure.family == "ndcg" and s:
        return exact_value(_unnormalised(measure), range(s), [1] * s)
    if measure.family == "auc":
        return Fraction(s * (m - s)) or Fraction(1)
    return Fraction(1)


def _unnormalised(measure: Measure) -> Measure:
    return measures.dcg if measure.cutoff is None else measures.dcg.at(measure.cutoff)


Steps = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


def mixing_steps(measure: Measure, n_items: int, max_grade: int) -> Steps | None:
    """Steps of the labels of x, y and all others, along which the swap of ranks 1 and 2 mixes all labels; or None."""
    steps = [(low, high) for low in range(max_grade) for high in range(low + 1, max_grade + 1)]
    for chosen in product(steps, repeat=3 if n_items > 2 else 2):
        found: Steps = (chosen[0], chosen[1], chosen[-1])
        if _mixed_difference(measure, n_items, max_grade, found):
            return found
    return None


def _mixed_difference(measure: Measure, m: int, max_grade: int, steps: Steps) -> Fraction:
    total = Fraction(0)
    swapped = [1, 0, *range(2, m)]
    for up_x, up_y in product((0, 1), repeat=2):
        for ups in range(m - 1):
            low, high = steps[2]
            vector = [steps[0][up_x], steps[1][up_y]] + [high] * ups + [low] * (m - 2 - ups)
            change = exact_value(measure, range(m), vector, max_grade=max_grade) - exact_value(
                measure, swapped, vector, max_grade=max_grade
            )
            total += (-1) ** (m - up_x - up_y - ups) * comb(m - 2, ups) * change
    return total


def graded_twin_worlds(game: RankingGame) -> Worlds | None:
    """The worlds for three grades or more: k + 1 items, all their labels evenly, moved along a mixed difference."""
    assert game.scored is not None
    n, grades = game.k + 1, game.max_grade + 1
    if n > _MOST_ITEMS or grades**n > 2**_MOST_ITEMS or grades**n * game.n_items > _MOST_LABELS:
        return None
    steps = mixing_steps(game.scored, n, game.max_grade)
    if steps is None:
        return None
    along = [steps[0], steps[1]] + [steps[2]] * (n - 2)
    vectors = tuple((*chosen, *(0,) * (game.n_items - n)) for chosen in product(range(grades), repeat=n))
    sides: tuple[list[Fraction], list[Fraction]] = ([], [])
    for vector in vectors:
        moved = 1
        for step, r in zip(along, vector, strict=False):
            moved *= {step[0]: -1, step[1]: 1}.get(r, 0)
        for side, sign in zip(sides, (1, -1), strict=True):
            side.append(Fraction(1 + sign * moved, grades**n))
    return _from_swap(game, vectors, (tuple(sides[0]), tuple(sides[1])), 0, 1)
