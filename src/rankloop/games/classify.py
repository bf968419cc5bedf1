"""How hard a game is, with a proof: from its losses and signals alone, or from the structure of a ranking measure.

From losses and signals: Bartok et al. (2014), Lattimore and Szepesvari (2019). Of rankings, for any number of items,
the swaps of a measure are enough instead of its m! orders. Why, for relevance 0 and 1: where items are relevant
independently of each other, with different chances, the order of falling chances is the only best one, since every
swap of the package's measures has the sign of r_x - r_y: so all orders are Pareto-optimal, up to ties of ranks that
count alike. Let two chances be equal, and the two orders that differ by a swap of these two are the only best ones: so
they are neighbours, and only orders that count like them are between them. Functions of k of the labels are the
polynomials whose monomials lie within those k, so a term can be seen if and only if some order shows all of its items
among the first k.

- *Globally*, every difference is a sum of swaps: all can be estimated if and only if no term of a swap has more than
  k items.
- *Locally*, a term must be seen from the orders between the two. A swap that cannot be makes the game hard. If all
  swaps can be, the game is easy where there are no other neighbours, or where these see enough too: where f(order) .
  g(relevance) decides (the cells are those of sorting E[g]), where k = m, and where each order sees its own value up
  to something that no order changes (err).

Which terms there are is known in closed form, so that a million items take no longer than three.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, product
from math import comb

import numpy as np
from scipy.optimize import linprog

from rankloop import measures
from rankloop.arguments import one_of, whole
from rankloop.games.cells import find_cells, on_segment
from rankloop.games.exact import RowSpace, difference_is_nonzero, discounts, exact_value, mean_gains
from rankloop.games.game import Game
from rankloop.games.ranking_game import RankingGame, expected_loss, is_packaged, ranking_game
from rankloop.games.verdict import (
    Blind,
    CellWitness,
    Pair,
    Runs,
    SwapWitness,
    Term,
    Undecided,
    Verdict,
    Worlds,
)
from rankloop.measures import Measure

ADDITIVE = ("sum_loss", "dcg", "precision")
GRADED_STEPS = ((1, 2), (0, 2), (1, 2))
SIGN_STEPS = ((0, 1), (1, 2), (0, 1))
PAPER, LATER, OURS = "2015", "2023", "ours"
SOURCES = {
    PAPER: "Chaudhuri and Tewari 2015",
    LATER: "Zhang and Tewari 2023",
    OURS: "rankloop's own finding: computed, and proved only as far as the docs say",
}

Steps = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
Vectors = tuple[tuple[int, ...], ...]
Sides = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]  # chances in the one world and in the other

_CLASSES = ("trivial", "easy", "hard", "hopeless")
_GRID = 1 << 40
_TRIES = 24  # partners of an action among which the costliest pair of worlds is searched
_MOST_ITEMS, _MOST_LABELS = 10, 1 << 17  # of twin worlds: beyond, they would fill pages


def classify(game: Game, *, route: str = "auto", jobs: int | None = None) -> Verdict:
    """How hard `game` is: trivial, easy (T^(1/2)), hard (T^(2/3)) or hopeless (T), with a witness.

    Parameters
    ----------
    game : Game
        Matrices of your own, one of the zoo, or `ranking_game(...)`.
    route : str, optional
        "cells" goes through all actions and outcomes; "structure" knows ranking measures and takes any number
        of items; "auto" takes the second where it can.
    jobs : int, optional
        Processes to share the work of many pairs of actions; by default one for each core where it pays.

    Examples
    --------
    >>> classify(Game([[0, 1], [1, 0]], [["?", "?"], ["?", "?"]]))
    <verdict: hopeless, regret of order T>
    """
    one_of("route", route, ("auto", "cells", "structure"))
    if isinstance(game, RankingGame) and (route == "structure" or (route == "auto" and game.is_known)):
        return classify_ranking(game)
    if route == "structure":
        raise ValueError("route 'structure' needs a ranking game")
    return classify_cells(game, jobs=jobs)


def classify_cells(game: Game, *, jobs: int | None = None, cells: CellWitness | None = None) -> Verdict:
    """The verdict, through cells, neighbours, and local and global observability.

    Cells depend on the losses alone: games that differ in their signals may share them.
    """
    cells = cells or find_cells(game, jobs=jobs)
    everybody = Observer(game, range(game.n_actions), base=next(iter(cells.points)))
    estimates: dict[Pair, dict[Pair, Fraction]] = {}
    blind: Blind | None = None
    observers: dict[frozenset[bytes], Observer] = {}
    for i, j in cells.walls:
        among = on_segment(game.whole, i, j)
        keys = game.observations.keys
        owner = {keys[c]: c for c in among}
        seen_by = frozenset(owner)
        if seen_by not in observers:
            observers[seen_by] = Observer(game, among)
        estimate = observers[seen_by].estimate(i, j)
        if estimate is not None:
            # The observer may have been made for other actions that see the same.
            estimates[i, j] = {(owner[keys[c]], symbol): value for (c, symbol), value in estimate.items()}
            continue
        blind = blind or ((i, j), tuple(observers[seen_by].space.unseen(game.difference(i, j))))
        estimate = everybody.estimate(i, j)
        if estimate is None:
            blind = ((i, j), tuple(everybody.space.unseen(game.difference(i, j))))
            worlds = find_worlds(game, cells, blind, everybody.space)
            return _verdict(game, "hopeless", replace(cells, blind=blind, worlds=worlds))
        estimates[i, j] = estimate
    proof = replace(cells, estimates=estimates, blind=blind)
    return _verdict(game, "hard" if blind else "easy" if cells.walls else "trivial", proof)


class Observer:
    """What some actions together reveal."""

    def __init__(self, game: Game, actions: Iterable[int], *, base: int | None = None) -> None:
        self.game, self.base = game, base
        rows, self.owners = game.signal_rows(actions)
        self.space = RowSpace(rows)
        self._from_base: dict[int, list[Fraction] | None] = {}

    def estimate(self, i: int, j: int) -> dict[Pair, Fraction] | None:
        """Coefficients of (action, symbol) that add up to loss[i] - loss[j], or None."""
        coefficients = self._coefficients(i, j)
        if coefficients is None:
            return None
        unit = self.game.unit * self.game.observations.scale
        rows = zip(self.space.chosen, coefficients, strict=True)
        return {self.owners[row]: unit * value for row, value in rows if value}

    def _coefficients(self, i: int, j: int) -> list[Fraction] | None:
        # By way of a base, n solutions serve for n^2 pairs.
        if self.base is not None:
            one, other = self._against_base(i), self._against_base(j)
            if one is not None and other is not None:
                return [a - b for a, b in zip(one, other, strict=True)]
        return self.space.coefficients(self.game.difference(i, j))

    def _against_base(self, i: int) -> list[Fraction] | None:
        assert self.base is not None
        if i not in self._from_base:
            self._from_base[i] = self.space.coefficients(self.game.difference(i, self.base))
        return self._from_base[i]


def _verdict(game: Game, class_: str, proof: CellWitness) -> Verdict:
    verdict = Verdict(
        class_,
        "cells",
        proof,
        game.n_actions,
        game.n_outcomes,
        pareto=tuple(proof.points),
        degenerate=tuple(proof.touching),
        dominated=tuple(i for i in proof.mixtures if i not in proof.touching),
        neighbours=tuple(proof.walls),
    )
    return replace(verdict, **game.described()) if isinstance(game, RankingGame) else verdict


def find_worlds(game: Game, cells: CellWitness, blind: Blind, space: RowSpace) -> Worlds:
    """Two worlds that look alike but have different best actions, as costly to learners as a linear programme finds."""
    (i, j), direction = blind
    partners = [j, *[other for other in cells.points if other not in (i, j)][:_TRIES]]
    middle = cells.walls[i, j]
    candidates = [_exact_worlds(game, np.array(middle, dtype=object), list(direction))]
    for partner in partners:
        dearest = _dearest(game, i, partner, space)
        if dearest is not None:
            candidates.append(_exact_worlds(game, *dearest))
    best = max((worlds for worlds in candidates if worlds is not None), key=lambda worlds: worlds.forced)
    return _named(game, best)


def _dearest(game: Game, i: int, j: int, space: RowSpace) -> tuple[np.ndarray, list[int]] | None:
    # p and q that no signal tells apart, i best in p and j in q: maximise what the best compromise loses, which is
    # min_a l_a (p + q) / 2 - (l_i p + l_j q) / 2. Variables p, q >= 0 and the minimum z.
    n = game.n_outcomes
    low, span = game.loss.min(), float(np.ptp(game.loss)) or 1.0
    L = (game.loss - low) / span
    signals = game.signal_rows(range(game.n_actions))[0][space.chosen].astype(float)
    rows = len(signals)
    equal = np.zeros((rows + 1, 2 * n + 1))
    equal[:rows, :n], equal[:rows, n : 2 * n] = signals, -signals
    equal[rows, :n] = 1.0
    result = linprog(
        np.concatenate([L[i] / 2, L[j] / 2, [-1.0]]),
        A_ub=np.hstack([-L / 2, -L / 2, np.ones((len(L), 1))]),
        b_ub=np.zeros(len(L)),
        A_eq=equal,
        b_eq=np.append(np.zeros(rows), 1.0),
        bounds=[(0, None)] * (2 * n) + [(None, None)],
        method="highs",
    )
    if result.status != 0 or -result.fun < 1e-9:
        return None
    p, q = result.x[:n], result.x[n : 2 * n]
    mean = np.array([round(float(x) * _GRID) for x in (p + q) / 2], dtype=object)
    hidden = space.hidden([round(float(x) * _GRID) for x in ((p - q) / 2)[space.free]])
    return mean, hidden


def _exact_worlds(game: Game, mean: np.ndarray, direction: list[int]) -> Worlds | None:
    # mean +- t direction, with the largest t that keeps both from going below zero.
    middle = [Fraction(max(0, int(x))) for x in mean]
    middle = [x / sum(middle) for x in middle]
    if any(d and not x for d, x in zip(direction, middle, strict=True)):
        even = Fraction(1, 1000 * len(middle))  # where rounding put a zero, make room
        middle = [x * Fraction(999, 1000) + even for x in middle]
    t = min(x / abs(d) for d, x in zip(direction, middle, strict=True) if d)
    p, q = (tuple(x + sign * t * d for d, x in zip(direction, middle, strict=True)) for sign in (1, -1))
    forced, best = forced_loss(game, p, q)
    return Worlds(tuple(range(len(middle))), (p, q), best, forced) if forced > 0 else None


def forced_loss(game: Game, p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> tuple[Fraction, Pair]:
    """The mean loss per round of the best compromise between two worlds, and the best action of each."""
    in_p, in_q = (game.whole @ np.array(world, dtype=object) for world in (p, q))
    best = (int(np.argmin(in_p)), int(np.argmin(in_q)))
    lost = (min(in_p + in_q) - in_p[best[0]] - in_q[best[1]]) / 2
    return game.unit * Fraction(lost), best


def _named(game: Game, worlds: Worlds) -> Worlds:
    used = [x for x in range(game.n_outcomes) if worlds.chances[0][x] or worlds.chances[1][x]]
    chances = (tuple(worlds.chances[0][x] for x in used), tuple(worlds.chances[1][x] for x in used))
    if isinstance(game, RankingGame):
        vectors = tuple(game.outcomes[x] for x in used)
        orders = (game.orders[int(worlds.best[0])], game.orders[int(worlds.best[1])])  # type: ignore[arg-type]
        return Worlds(vectors, chances, orders, worlds.forced)
    return Worlds(tuple(used), chances, worlds.best, worlds.forced)


def classify_ranking(game: RankingGame) -> Verdict:
    """The verdict from the swaps of the measure."""
    if game.scored is None and game.levels is None:
        raise ValueError(f"measure {game.measure!r} has no known structure: classify it by its cells")
    if game.grades != tuple(range(len(game.grades))):
        raise ValueError(f"grades must be 0, 1, 2, ... for this route, got {list(game.grades)}")
    if not game.k:
        raise ValueError(f"feedback {game.feedback!r} has no known structure: classify it by its cells")
    globally, locally = thresholds(game)
    class_ = _class_at(game.k, globally, locally)
    return Verdict(
        class_,
        "structure",
        _witness(game, class_),
        *game.size,
        easier_k={} if class_ == "trivial" else _easier(game, class_, globally, locally),
        **game.described(),
    )


def thresholds(game: RankingGame) -> tuple[int, int]:
    """The smallest k at which the game is hard, and at which it is easy; (0, 0) where it is trivial."""
    m, family, n = game.n_items, game.family, game.cutoff
    if m == 1 or (family == "precision" and n == m) or len(set(game.levels or range(2))) == 1:
        return 0, 0
    if _adds_up(game):
        sizes = [size for count, size in _blocks(game) for size in [size] * min(count, 2)]
        return 1, 1 + m - sum(sizes[-2:])
    if family == "err":
        # P (R_x - R_y) with P the product of 1 - R above: as many labels with any grades.
        return min(n, m - 1), min(n, m - 1)
    if family == "pairwise_loss":
        return 2, m  # the sign of r_y - r_x needs both labels at once (erratum A5)
    if family == "auc":
        # 1 / (s (m - s)) is symmetric: its last difference, of order m - 2, is zero where that is odd.
        return m - 1 - m % 2, m
    if game.max_grade > 1:
        _decide(game, m - 1, start=0, base=True)
        return m, m
    if family == "average_precision":
        return m - 1, m if n > 1 else m - 1
    _decide(game, m - 2, start=1)
    return m - 1, m


def _adds_up(game: RankingGame) -> bool:
    # Whether a swap is worth a function of r_x minus the same function of r_y, whatever the others are.
    m, family, n = game.n_items, game.family, game.cutoff
    if game.levels is not None or family in ADDITIVE:
        return True
    if game.max_grade > 1 or family == "err":
        return False
    # Z(s) = 1 for ndcg@1, and s (3 - s) = 2 for auc of three items.
    return family == "pairwise_loss" or m == 2 or (family, m) == ("auc", 3) or (family, n) == ("ndcg", 1)


def _decide(game: RankingGame, order: int, *, start: int, base: bool = False) -> None:
    n = game.cutoff
    # Below the cut-off 1 / Z is completely monotone, and no difference is zero; see verify.
    if 1 < n < start + order and not difference_is_nonzero(order, start=start, cutoff=n, base=base):
        raise Undecided(
            f"whether {game.measure} of {game.n_items} items can be learnt from all labels but one or two depends on "
            f"a sum of {n} terms that is too long, or too near to zero, to be decided here"
        )


def _blocks(game: RankingGame) -> Runs:
    if game.levels is not None:
        sizes = [len(list(alike)) for _, alike in groupby(game.levels)]
        return tuple((len(list(run)), size) for size, run in groupby(sizes))
    m, n = game.n_items, game.cutoff
    count, size = (1, n) if game.family == "precision" else (n, 1)
    if n == m:
        return ((count, size),)
    if size == m - n:
        return ((count + 1, size),)
    return ((count, size), (1, m - n))


def _class_at(k: int, globally: int, locally: int) -> str:
    if locally == 0:
        return "trivial"
    return "hopeless" if k < globally else "hard" if k < locally else "easy"


def _easier(game: RankingGame, class_: str, globally: int, locally: int) -> dict[str, int]:
    reached = {_class_at(k, globally, locally): k for k in (locally, globally)}
    return {
        better: k
        for better, k in sorted(reached.items(), key=lambda entry: entry[1])
        if k > game.k and _CLASSES.index(better) < _CLASSES.index(class_)
    }


def _witness(game: RankingGame, class_: str) -> SwapWitness:
    if class_ == "hopeless":
        unseen = _too_large(game)
        mixed = game.max_grade > 1 and game.family != "err"
        worlds = graded_twin_worlds(game) if mixed else twin_worlds(game, unseen.above)
        return SwapWitness(_blocks(game), unseen, worlds)
    return SwapWitness(_blocks(game), _out_of_sight(game) if class_ == "hard" else None)


def _too_large(game: RankingGame) -> Term:
    m, k, family, n = game.n_items, game.k, game.family, game.cutoff
    if family == "err":
        return Term(k + 1, k, 0)
    if family == "pairwise_loss":
        return Term(1, 0, 0, steps=SIGN_STEPS)
    if family == "ndcg" and (k == m - 1 or n == 1):
        return Term(1, 0, k - 1, steps=GRADED_STEPS)
    if family == "ndcg" and k >= n:
        # With n - 2 items relevant to everybody, 1 / Z changes only from one relevant item more to two.
        # Where there are too few items for that, the largest term will do.
        return Term(1, 0, k, n - 2) if k <= m - n else Term(1, 0, m - 2)
    return Term(1, 0, k)


def _out_of_sight(game: RankingGame) -> Term:
    m, family, n = game.n_items, game.family, game.cutoff
    if _adds_up(game):
        return Term(m - _blocks(game)[-1][1], 0, 0)
    if family == "pairwise_loss":
        return Term(m - 1, 0, 0, steps=SIGN_STEPS)
    if n == m:
        return Term(1, 0, 1)
    # All items of the last block together: no order shows them all but with every label seen.
    return Term(1, 0, m - n, n - 2 if family == "ndcg" else 0)


def twin_worlds(game: RankingGame, above: int) -> Worlds | None:
    """Two worlds of users whose labels look alike, k at a time, although different orders are best in them.

    Take the items of a term of k + 1 labels, so many of them above the swap, and let every other item be irrelevant to
    all users. Weight the label vectors evenly, and move weight from those with an even number of relevant items among
    the term's to those with an odd number: a learner that sees fewer labels than the term has cannot notice, and the
    value of the swap moves with the coefficient of the term. Since all orders of the chosen items have the same value
    on average over the two worlds, no learner can do well in both. None where the worlds would fill pages.
    """
    n = game.k + 2  # items that are ever relevant: some above, x, y, the others below
    if n > _MOST_ITEMS or 2**n * game.n_items > _MOST_LABELS:
        return None
    # The chosen items stand first, so that the swap is that of ranks `above` + 1 and + 2.
    x, y = above, above + 1
    vectors = tuple((*chosen, *(0,) * (game.n_items - n)) for chosen in product((0, 1), repeat=n))
    assert game.scored is not None
    if game.scored.kind < 0:
        return _from_swap(game, vectors, _odd_and_even(vectors, y), x, y)
    # Among the vectors with r_x = r_y the swap changes nothing: leave them out where x and y still come out alike.
    apart = tuple(vector for vector in vectors if vector[x] != vector[y])
    worlds = [_from_gains(game, game.scored, used, _odd_and_even(used, y)) for used in (vectors, apart)]
    return max((each for each in worlds if each is not None), key=lambda each: each.forced, default=None)


def _odd_and_even(vectors: Vectors, y: int) -> Sides:
    # Of all vectors those with an odd number of relevant items, not counting y, and those with an even number.
    share = Fraction(2, len(vectors))
    odd = [(sum(vector) - vector[y]) % 2 == 1 for vector in vectors]
    return tuple(share * is_odd for is_odd in odd), tuple(share * (not is_odd) for is_odd in odd)


def _from_gains(game: RankingGame, measure: Measure, vectors: Vectors, chances: Sides) -> Worlds | None:
    # Offsets that no order changes cancel, since the middle is the mean of the two.
    p, q = chances
    sign = 1 if measure.is_loss else -1
    orders, values = [], []
    middle = tuple((one + other) / 2 for one, other in zip(p, q, strict=True))
    for world in (p, q, middle):
        mean = mean_gains(measure, vectors, world)
        orders.append(tuple(sorted(range(game.n_items), key=lambda item: (-mean[item], item))))
        gains = [mean[item] for item in orders[-1] if mean[item]]
        weighed = zip(discounts(measure, len(gains)), gains, strict=True)
        values.append(sign * sum((weight * gain for weight, gain in weighed), Fraction(0)))
    forced = values[2] - (values[0] + values[1]) / 2
    return Worlds(vectors, chances, (orders[0], orders[1]), forced) if forced > 0 else None


def _from_swap(game: RankingGame, vectors: Vectors, chances: Sides, x: int, y: int) -> Worlds | None:
    # All orders of the chosen items tie on average, so each side of the swap wins half of the gap in its own world.
    plain = tuple(range(game.n_items))
    swapped = tuple({x: y, y: x}.get(item, item) for item in plain)
    losses = [[expected_loss(game, order, vectors, world) for world in chances] for order in (plain, swapped)]
    gap = (losses[0][0] - losses[1][0]) - (losses[0][1] - losses[1][1])
    best = (plain, swapped) if losses[0][0] < losses[1][0] else (swapped, plain)
    return Worlds(vectors, chances, best, abs(gap) / 4) if gap else None


def mixing_steps(measure: Measure, n_items: int, max_grade: int) -> Steps | None:
    """Steps of the labels of x, y and all others, along which the swap of ranks 1 and 2 mixes all labels; or None."""
    steps = [(low, high) for low in range(max_grade) for high in range(low + 1, max_grade + 1)]
    for chosen in product(steps, repeat=3 if n_items > 2 else 2):
        along: Steps = (chosen[0], chosen[1], chosen[-1])
        if _mixed_difference(measure, n_items, max_grade, along):
            return along
    return None


def _mixed_difference(measure: Measure, m: int, max_grade: int, steps: Steps) -> Fraction:
    total = Fraction(0)
    swapped = [1, 0, *range(2, m)]
    for up_x, up_y in product((0, 1), repeat=2):
        for ups in range(m - 1):
            low, high = steps[2]
            vector = [steps[0][up_x], steps[1][up_y]] + [high] * ups + [low] * (m - 2 - ups)
            sign = (-1) ** (m - up_x - up_y - ups)
            before = exact_value(measure, range(m), vector, max_grade=max_grade)
            after = exact_value(measure, swapped, vector, max_grade=max_grade)
            total += sign * comb(m - 2, ups) * (before - after)
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


@dataclass(frozen=True)
class Row:
    """A measure: its class and who found it, for k = 1, 2, ..., m."""

    measure: str
    classes: tuple[str, ...]
    sources: tuple[str, ...]


def rates(
    *, n_items: int, names: Sequence[str] | None = None, grades: int = 2, route: str = "structure"
) -> list[Row]:
    """The class of each measure for every k.

    >>> [row.classes for row in rates(n_items=3, names=["dcg", "ndcg"])]
    [('hard', 'easy', 'easy'), ('hopeless', 'hard', 'easy')]
    """
    m = whole("n_items", n_items, at_least=1)
    one_of("route", route, ("cells", "structure"))
    rows = []
    for name in names if names is not None else usual_measures(m, grades=grades):
        scored = measures.get(name)
        classes = []
        cells: CellWitness | None = None
        for k in range(1, m + 1):
            game = ranking_game(measure=scored, n_items=m, k=k, grades=grades)
            if route == "cells" or not game.is_known:
                cells = cells or find_cells(game)
                classes.append(classify_cells(game, cells=cells).class_)
                continue
            if k == 1:
                globally, locally = thresholds(game)
            classes.append(_class_at(k, globally, locally))
        sources = tuple(source(scored, k, m, graded=grades > 2) for k in range(1, m + 1))
        rows.append(Row(scored.name, tuple(classes), sources))
    return rows


def usual_measures(n_items: int, *, grades: int = 2) -> list[str]:
    """The measures of the table: all of the package, with a few cut-offs."""
    cuts = sorted({n for n in (1, 2, 3, 5, 10) if n < n_items})
    names = ["sum_loss", "pairwise_loss", "dcg"]
    names += [f"dcg@{n}" for n in cuts if n > 1] + [f"precision@{n}" for n in cuts]
    names += ["ndcg"] + [f"ndcg@{n}" for n in cuts] + ["average_precision", "auc", "err"]
    names += [f"err@{n}" for n in cuts if n > 1]
    return [name for name in names if grades == 2 or not measures.get(name).binary]


def source(measure: Measure, k: int, n_items: int, *, graded: bool = False) -> str:
    """Who proved the rate: of the measures without cut-off, and of precision; all cut-offs of others are ours."""
    family = measure.family
    if not is_packaged(measure):
        return OURS
    if measure.cutoff is not None and family != "precision":
        return OURS
    if graded:
        return PAPER if k == 1 and family in ("sum_loss", "dcg", "ndcg") and n_items >= 3 else OURS
    in_paper = ("sum_loss", "pairwise_loss", "dcg", "ndcg", "average_precision", "auc")
    if k == 1 and family in in_paper and n_items >= (4 if family == "auc" else 3):
        return PAPER
    return LATER if family in ("sum_loss", "pairwise_loss", "dcg", "precision") else OURS
