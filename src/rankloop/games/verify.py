"""Checks a proof by multiplying and comparing, in whole numbers and fractions: nothing is searched for or solved.

Witnesses about swaps are checked from the definition of each measure, and without the classifier. A swap of x, just
above y, is worth c (g(r_x) - g(r_y)) h. Three facts about each measure decide everything, and each holds for any number
of items; the tests compare them with all orders and all labels of small games.

- *Which ranks count differently*: `counts`. There c is not zero.
- *Which terms h has*: `is_nonzero`. AUC: the difference of order d of 1 / (s (m - s)) = (1/s + 1/(m - s)) / m is
  d!/m times (-1)^d / (s ... (s + d)) + 1 / ((m - s - d) ... (m - s)), zero where d is odd and s = m - s - d. Average
  precision: of (1 + t) / (1 + t + u), with nothing above, it is (-1)^d / (d + 1). ERR: (-R)^a, with nothing below.
  NDCG: log(1 + x) is a Bernstein function, so 1 / log(1 + x) is completely monotone, S_s (its sum up to s) again a
  Bernstein function of s, and 1 / S_s completely monotone and not constant: differences of all orders alternate in
  sign, and none is zero. With a cut-off n the sequence is constant from n on: a difference that reaches beyond n is
  that of the last step if it starts at n - 1, and a sum of n terms else, evaluated with a bound on its rounding.
- NDCG with grades, x varying in {1, 2}, y in {0, 2}, all others in {1, 2}, and P_s = S_(m-1) + 2 S_s: the mixed
  difference of all m labels is that of order m - 2 of (2 / P_(s+1)) [(d_(s+1) - d_m) / P_s + d_m (1 / P_s -
  1 / (P_(s+1) + d_m))] with d_s = 1 / log2(1 + s): products and sums of sequences whose differences alternate in sign
  as far as they are used, so not zero. With a cut-off n < m it is that of order m - 1 of 1 / (S_n + 2 S_min(s, n)),
  and for n = 1, where Z is the largest gain, 2/3 up to its sign.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from rankloop.games.exact import Mixture, Point, Whole, difference_is_nonzero, mean_gains
from rankloop.games.game import Game
from rankloop.games.ranking_game import RankingGame, expected_loss
from rankloop.games.verdict import CellWitness, Pair, Runs, SwapWitness, Term, Verdict, Worlds

_CLASSES = ("trivial", "easy", "hard", "hopeless")
_ALL_GRADED = ((1, 2), (0, 2), (1, 2))


class Refused(ValueError):
    """A witness does not show what its verdict says."""


def demand(holds: Any, complaint: str) -> None:
    """Refuse unless `holds`."""
    if not holds:
        raise Refused(complaint)


def verify(game: Game, verdict: Verdict) -> bool:
    """True if the witness of `verdict` proves its class for `game`; otherwise `Refused`, which says what is wrong."""
    about = {name: getattr(verdict, name) for name in ("measure", "n_items", "k", "max_grade", "feedback")}
    if isinstance(game, RankingGame):
        seen = verdict.feedback or f"top {verdict.k}"
        message = f"the verdict is about {verdict.measure}, {verdict.n_items} items, {seen}"
        demand(about == game.described(), message)
    else:
        nothing = dict.fromkeys(about) | {"max_grade": 1}
        demand(about == nothing, "the verdict is about a ranking, and the game is none")
    try:
        if verdict.route == "structure":
            if verdict.feedback is not None:
                raise Refused(f"feedback {verdict.feedback!r} has no known structure")
            verify_swaps(game, verdict)
        elif verdict.route == "cells":
            verify_cells(game, verdict)
        else:
            raise Refused(f"route {verdict.route!r} is not known")
    except (TypeError, KeyError, IndexError, AttributeError) as problem:
        # A part of the wrong kind: what cannot be read proves nothing.
        raise Refused(f"the witness is malformed: {problem}") from problem
    return True


def verify_cells(game: Game, verdict: Verdict) -> None:
    """Whether the witness proves the class; `Refused` names the first thing that is wrong."""
    witness = verdict.witness
    if not isinstance(witness, CellWitness):
        raise Refused("the witness is not about cells")
    L = game.whole
    demand((verdict.n_actions, verdict.n_outcomes) == L.shape, "the game has another size")
    demand(not verdict.easier_k, "a proof about cells says nothing of other feedback")
    demand(verdict.class_ in _CLASSES, f"unknown class {verdict.class_!r}")
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
        if witness.worlds is None:
            raise Refused("a hopeless game needs two worlds")
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
        difference = game.observations.scale * int(game.unit * shared) * (L[i] - L[j])
        demand((total == difference).all(), f"the estimate of {i} against {j} is off")
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
    hidden = class_ in ("hard", "hopeless")
    demand(hidden or witness.blind is None, f"a game of class {class_} has no offending pair")
    demand(class_ == "hopeless" or witness.worlds is None, f"a game of class {class_} has no such worlds")
    degenerate = set(witness.touching) <= set(witness.mixtures)
    demand(degenerate, "only degenerate actions are among the best without a cell")


def _check_actions(L: Whole, verdict: Verdict, witness: CellWitness) -> None:
    same = witness.same
    demand(len(same) == len(L), "`same` must name one action for each")
    for i, first in enumerate(same):
        alike = 0 <= first <= i and (L[first] == L[i]).all()
        demand(alike, f"actions {first} and {i} do not have the same losses")
    distinct = sorted(set(same))
    losses = {tuple(L[i]) for i in distinct}
    demand(len(losses) == len(distinct), "two actions with the same losses are told apart")
    proved = sorted([*witness.points, *witness.mixtures])
    demand(proved == distinct, "each action must be Pareto-optimal or not, and have a proof of it")
    dominated = set(witness.mixtures) - set(witness.touching)
    kinds = (set(verdict.pareto), set(verdict.degenerate), set(verdict.dominated))
    shown = (set(witness.points), set(witness.touching), dominated)
    demand(kinds == shown, "the verdict names other actions than the witness")
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
    pareto, walls, apart = sorted(witness.points), set(witness.walls), set(witness.apart)
    pairs = set(combinations(pareto, 2))
    demand(walls | apart == pairs, "each pair must be neighbours or not, and have a proof of it")
    demand(not walls & apart, "a pair is neighbours and not")
    demand(set(verdict.neighbours) == walls, "the verdict names other neighbours than the witness")
    for (i, j), p in witness.walls.items():
        _check_point(p, L, f"point of neighbours {i} and {j}")
        demand(_dot(L[i] - L[j], p) == 0, f"actions {i} and {j} do not tie at their point")
        values = dict(zip(pareto, L[pareto] @ np.array(p, dtype=object), strict=True))
        best = all(values[c] > values[i] for c in pareto if c not in (i, j))
        demand(best, f"another action is as good where {i} and {j} tie")
    for (i, j), mixture in witness.apart.items():
        total = _mixed(L, i, mixture, {c for c in pareto if c not in (i, j)})
        excluded = (total <= mixture.s * (L[j] - L[i])).all()
        demand(excluded, f"the proof that {i} and {j} are not neighbours is wrong")


def _check_point(p: Point, L: Whole, what: str) -> None:
    demand(len(p) == L.shape[1] and min(p) > 0, f"{what} must give every outcome a chance")


def _mixed(L: Whole, i: int, mixture: Mixture, allowed: set[int]) -> Any:
    weights = mixture.weights
    demand(weights and set(weights) <= allowed, f"the mixture of action {i} names other actions than it may")
    proper = min(weights.values()) >= 0 and any(weights.values())
    demand(proper, f"the mixture of action {i} has a negative weight")
    total: Any = np.zeros(L.shape[1], dtype=object)
    for j, weight in weights.items():
        total = total + weight * (L[j] - L[i])
    return total


def _blind(witness: CellWitness, walls: set[Pair]) -> tuple[Pair, tuple[int, ...]]:
    if witness.blind is None or witness.blind[0] not in walls:
        raise Refused("the offending pair must be neighbours")
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


def verify_swaps(game: Game, verdict: Verdict) -> None:
    """Whether the witness proves the class; `Refused` names the first thing that is wrong."""
    witness = verdict.witness
    if not isinstance(witness, SwapWitness):
        raise Refused("the witness is not about swaps")
    if not isinstance(game, RankingGame):
        raise Refused("a proof by swaps is about rankings only")
    demand(
        game.is_known, "only measures whose structure is known, with grades 0, 1, 2, ..., have such a proof"
    )
    named = verdict.pareto or verdict.degenerate or verdict.dominated or verdict.neighbours
    demand(not named, "a proof by swaps names no actions")
    demand((verdict.n_actions, verdict.n_outcomes) == game.size, "the game has another size")
    demand(witness.blocks == _blocks(game), "the blocks are not the ranks that count alike")
    easier = _easier(game, verdict.class_)
    demand(verdict.easier_k == easier, "another k is the smallest at which it is easier")
    unseen, k = witness.unseen, game.k
    hidden = verdict.class_ in ("hard", "hopeless")
    demand(hidden or unseen is None, "only a hard or a hopeless game has a term that cannot be seen")
    demand(verdict.class_ == "hopeless" or witness.worlds is None, "only a hopeless game has two such worlds")
    if verdict.class_ == "trivial":
        demand(_last_counting(game) == 0, "orders do not have the same value")
        return
    demand(_last_counting(game) > 0, "all orders have the same value: the game is trivial")
    if not hidden:
        demand(verdict.class_ == "easy", f"unknown class {verdict.class_!r}")
        demand(local_from(game) <= k, "the neighbours do not see every term")
        return
    if not isinstance(unseen, Term):
        raise Refused("a term that cannot be seen is missing")
    _check_term(game, unseen)
    if verdict.class_ == "hard":
        demand(most_labels(game) <= k, "a term has more items than can be seen at once")
        demand(reach(game, unseen) > k, "the unseen term can be seen by the neighbours")
        return
    demand(unseen.size > k, "the unseen term can be seen")
    if witness.worlds is not None:
        check_worlds(game, witness.worlds)


def counts(game: RankingGame, rank: int) -> bool:
    """Whether ranks `rank` and `rank` + 1 count differently."""
    if not 1 <= rank < game.n_items:
        return False
    if game.levels is not None:
        return game.levels[rank - 1] != game.levels[rank]
    return rank == game.cutoff if game.family == "precision" else rank <= game.cutoff


def _last_counting(game: RankingGame) -> int:
    # The last rank that counts differently from the next; 0 if none does.
    if game.levels is not None:
        return max((rank for rank in range(1, game.n_items) if counts(game, rank)), default=0)
    last = min(game.cutoff, game.n_items - 1)
    return last if counts(game, last) else 0


def _ends(game: RankingGame) -> Sequence[int]:
    # After which ranks blocks end, but for the last.
    if game.levels is not None:
        return [rank for rank in range(1, game.n_items) if counts(game, rank)]
    last = _last_counting(game)
    first = last if game.family == "precision" else 1
    return range(first, last + 1) if last else range(0)


def _blocks(game: RankingGame) -> Runs:
    ends, m = _ends(game), game.n_items
    if not ends:
        return ((1, m),)
    if game.levels is not None:
        runs = [[1, end - start] for start, end in pairwise([0, *ends, m])]
    else:
        runs = [[1, ends[0]], [len(ends) - 1, 1], [1, m - ends[-1]]]
    joined: list[list[int]] = []
    for count, size in runs:
        if joined and joined[-1][1] == size:
            joined[-1][0] += count
        elif count:
            joined.append([count, size])
    return tuple((count, size) for count, size in joined)


def _is_constant(game: RankingGame) -> bool:
    # Whether h does not depend on the other labels, so that the cells are those of sorting expected gains.
    family, m = game.family, game.n_items
    if game.levels is not None or family in ("sum_loss", "dcg", "precision"):
        return True
    if game.max_grade > 1 or family == "err":
        return False
    if family == "pairwise_loss" or m <= 2:
        return True
    return m == 3 if family == "auc" else family == "ndcg" and game.cutoff == 1


def most_labels(game: RankingGame) -> int:
    """No swap is worth a function of more labels at once than this, or a sum of such functions."""
    family, m = game.family, game.n_items
    if _is_constant(game):
        return 1
    if family == "err":
        return _last_counting(game)  # x and the items above it
    if family == "pairwise_loss":
        return 2
    if game.max_grade > 1:
        return m
    # Terms with x lack y. The largest one of AUC is zero for an odd number of items.
    return m - 2 if family == "auc" and m % 2 else m - 1


def local_from(game: RankingGame) -> int:
    """From this k on the orders between any two neighbours see how the two differ."""
    family, m, ends = game.family, game.n_items, _ends(game)
    if _is_constant(game):
        # x may stand first in its block, and y in the same place of the other order: the last swap needs most.
        return 1 + (ends[-2] if len(ends) > 1 else 0)
    if family == "err":
        # The first n labels give the value. If all m count, all but the last do: the product of all 1 - R is the same
        # for every order, so that the last summand is known up to something that no order changes.
        return _last_counting(game)
    if family == "average_precision" and len(ends) == 1:
        # Only the first item counts, so all neighbours are swaps with it; x and any m - 2 others can be shown.
        return m - 1
    return m


def _easier(game: RankingGame, class_: str) -> dict[str, int]:
    easy, hard = local_from(game), most_labels(game)
    if class_ == "hard":
        return {"easy": easy}
    if class_ != "hopeless":
        return {}
    if hard == easy:
        return {"easy": easy}
    # That fewer labels than `hard` are too few must be shown for NDCG; the other terms of that size are never zero.
    if game.family == "ndcg":
        _check_term(game, Term(1, 0, hard - 1))
    return {"hard": hard, "easy": easy}


def _check_term(game: RankingGame, term: Term) -> None:
    numbers = (term.rank, term.above, term.below, term.relevant)
    proper = all(type(each) is int and each >= 0 for each in numbers)
    demand(proper, "a term must count items in whole numbers")
    demand(counts(game, term.rank), f"swapping ranks {term.rank} and {term.rank + 1} changes nothing")
    fits = term.above < term.rank and term.below + term.relevant <= game.n_items - term.rank - 1
    demand(fits, "there are not so many items above or below the swap")
    shown = is_nonzero(game, term) if term.steps is None else _is_nonzero_with_grades(game, term)
    demand(shown, "the unseen term is none of the terms of the measure, or cannot be shown to be one")


def is_nonzero(game: RankingGame, term: Term) -> bool:
    """Whether a term of labels 0 and 1 is shown to have a coefficient other than zero."""
    family, m, n, d = game.family, game.n_items, game.cutoff, term.above + term.below
    start = 1 + term.relevant
    if d == 0 and (family != "pairwise_loss" or game.max_grade == 1):
        return True
    if family == "auc":
        return d % 2 == 0 or 2 * start + d != m
    if family == "average_precision":
        return term.above == 0 and term.relevant == 0
    if family == "err":
        return term.below == 0
    if family != "ndcg" or start >= n:
        return False
    return start + d <= n or start == n - 1 or bool(difference_is_nonzero(d, start=start, cutoff=n))


def _is_nonzero_with_grades(game: RankingGame, term: Term) -> bool:
    assert term.steps is not None
    x, y, _ = term.steps
    rising = all(0 <= low < high <= game.max_grade for low, high in term.steps)
    demand(rising, "a step must rise within the grades")
    if game.family == "pairwise_loss":
        corners = ((x[i] < y[j], x[i] > y[j], (-1) ** (i + j)) for i in (0, 1) for j in (0, 1))
        moved = sum(sign * (lost - won) for lost, won, sign in corners)
        return term.above + term.below + term.relevant == 0 and moved != 0
    known = game.family == "ndcg" and term.steps == _ALL_GRADED
    if not known or (term.rank, term.above, term.relevant) != (1, 0, 0):
        return False
    m, n = game.n_items, game.cutoff
    if n == 1:
        return True
    return term.size == m and (n >= m - 1 or bool(difference_is_nonzero(m - 1, start=0, cutoff=n, base=True)))


def reach(game: RankingGame, term: Term) -> int:
    """How far down the lowest item of the term stands, in the order between the two neighbours that shows it best.

    Items may be shuffled within their blocks. Of the items below, those that stand lowest are taken.
    """
    ends = _ends(game)
    # Where the block that ends with this rank begins; of the package's, all but the first and the last have one rank.
    start = term.rank - 1
    while start and not counts(game, start):
        start -= 1
    if term.steps is not None:
        return term.rank + 1 if term.above + term.below == 0 and start == term.rank - 1 else 0
    if term.below:
        # y may stand in the last block, and is not in the term.
        lowest = game.n_items - ends[-1] - (term.rank == ends[-1])
        return ends[-1] + min(term.below, lowest)
    return start + 1 + min(term.above, term.rank - start - 1)


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
    won = [expected_loss(game, order, vectors, side) for order, side in zip(orders, (p, q), strict=True)]  # type: ignore[arg-type]
    forced = _at_best(game, vectors, middle, ever) - sum(won) / 2
    demand(isinstance(worlds.forced, Fraction) and worlds.forced > 0, "the worlds must cost something")
    demand(forced == worlds.forced, f"the worlds force a loss of {forced}, not of {worlds.forced}")


def _at_best(
    game: RankingGame, vectors: list[tuple[int, ...]], middle: list[Fraction], ever: list[int]
) -> Fraction:
    # The smallest loss of any order on average over the two worlds.
    m = game.n_items
    if _symmetric(vectors, middle, ever):
        # Every order with the items that matter first is as good as any other.
        some = set(ever)
        order = [*ever, *(item for item in range(m) if item not in some)]
        return expected_loss(game, order, vectors, middle)
    assert game.scored is not None
    demand(game.scored.kind >= 0 and game.max_grade == 1, "what is best on average cannot be checked")
    mean = mean_gains(game.scored, vectors, middle)
    return expected_loss(game, sorted(range(m), key=lambda item: -mean[item]), vectors, middle)


def _symmetric(vectors: list[tuple[int, ...]], chances: list[Fraction], items: list[int]) -> bool:
    weight = dict(zip(vectors, chances, strict=True))
    for x, y in pairwise(items):
        for vector, chance in weight.items():
            other = list(vector)
            other[x], other[y] = other[y], other[x]
            if weight.get(tuple(other), Fraction(0)) != chance:
                return False
    return True
