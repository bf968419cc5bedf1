"""How hard ranking is, for any number of items: from the swaps of a measure instead of its m! orders.

Why swaps are enough, for relevance 0 and 1. Where items are relevant independently of each other, with different
chances, the order of falling chances is the only best one, since every swap of the package's measures has the sign of
r_x - r_y: so all orders are Pareto-optimal, up to ties of ranks that count alike. Let two chances be equal, and the
two orders that differ by a swap of these two are the only best ones: so they are neighbours, and only orders that
count like them are between them. Functions of k of the labels are the polynomials whose monomials lie within those k,
so a term can be seen if and only if some order shows all of its items among the first k.

- *Globally*, every difference is a sum of swaps: all can be estimated if and only if no term of a swap has more than
  k items.
- *Locally*, a term must be seen from the orders between the two. A swap that cannot be makes the game hard. If all
  swaps can be, the game is easy where there are no other neighbours, or where these see enough too: where f(order) .
  g(relevance) decides (the cells are those of sorting E[g]), where k = m, and where each order sees its own value up
  to something that no order changes (err).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from rankloop.games.ranking_game import RankingGame
from rankloop.games.swaps import Swaps, SwapWitness, Terms, Undecided
from rankloop.games.twin_worlds import graded_twin_worlds, mixing_steps, twin_worlds
from rankloop.games.verdict import Verdict

ADDITIVE = ("sum_loss", "dcg", "precision")
_CLASSES = ("trivial", "easy", "hard", "hopeless")


def classify_ranking(game: RankingGame) -> Verdict:
    """The verdict from the swaps of the measure."""
    if game.scored is None:
        raise ValueError("a custom function has no known structure: classify it by its cells")
    if game.grades != tuple(range(len(game.grades))):
        raise ValueError(f"grades must be 0, 1, 2, ... for this route, got {list(game.grades)}")
    swaps = Swaps(game.scored, game.n_items, game.max_grade)
    globally, locally = thresholds(game, swaps)
    class_ = _class_at(game.k, globally, locally)
    return Verdict(
        class_,
        "structure",
        _witness(game, swaps, class_),
        game.n_actions,
        game.n_outcomes,
        measure=game.measure,
        n_items=game.n_items,
        k=game.k,
        max_grade=game.max_grade,
        easier_k={} if class_ == "trivial" else _easier(game, class_, globally, locally),
    )


def thresholds(game: RankingGame, swaps: Swaps | None = None) -> tuple[int, int]:
    """The smallest k at which the game is hard, and at which it is easy; (0, 0) where it is trivial."""
    assert game.scored is not None
    swaps = swaps or Swaps(game.scored, game.n_items, game.max_grade)
    m, family = game.n_items, game.scored.family
    if not swaps.boundaries:
        return 0, 0
    if game.max_grade == 1 or family in ADDITIVE:
        globally, locally = swaps.thresholds()
        if family == "average_precision" and len(swaps.blocks) > 2 and locally < m:
            raise Undecided(f"{game.measure} of {m} items has neighbours that are not swaps")
        return globally, locally
    if family == "err":
        # P (R_x - R_y) with P the product of 1 - R above: as many labels as with two grades.
        return swaps.thresholds()
    if family == "pairwise_loss":
        return 2, m  # the sign of r_y - r_x needs both labels at once (erratum A5)
    if mixing_steps(game.scored, m, game.max_grade) is None:
        raise Undecided(f"{game.measure} of {m} items with grades up to {game.max_grade}")
    return m, m


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


def _witness(game: RankingGame, swaps: Swaps, class_: str) -> SwapWitness:
    assert game.scored is not None
    family, binary = game.scored.family, game.max_grade == 1
    additive = family in ADDITIVE
    if class_ == "trivial":
        return SwapWitness(swaps.blocks, (), Terms(), reason="all orders have the same value")
    by_swaps = partial(SwapWitness, swaps.blocks, swaps.boundaries)
    if game.k == game.n_items:
        return by_swaps(Terms(), reason="every label is seen")
    if binary or additive or family == "err":
        if class_ == "hopeless":
            unseen = _too_large(game, swaps)
            size = 1 + unseen[1] + unseen[2]
            reason = f"a swap has a term of {size} labels, and no order shows more than {game.k}"
            return by_swaps(swaps.terms, unseen, twin_worlds(game, unseen), reason)
        if class_ == "hard":
            unseen = _out_of_sight(game, swaps)
            reason = f"the swap of ranks {unseen[0]} and {unseen[0] + 1} has a term that neither order shows"
            return by_swaps(swaps.terms, unseen, reason=reason)
        reason = "every term of every swap is among the first k of an order between the two"
        return by_swaps(swaps.terms, reason=reason)
    if class_ == "hopeless":
        reason = f"a swap mixes {game.k + 1} labels or more"
        return by_swaps(Terms(), None, graded_twin_worlds(game), reason)
    # Only pairwise_loss with grades comes here: two labels at a time, but the last two are not both seen.
    last = game.n_items - 1
    sign = Terms(by_total={0: Fraction(1)})
    return by_swaps(sign, (last, 0, 0), reason="the two labels of a swap must be seen together")


def _too_large(game: RankingGame, swaps: Swaps) -> tuple[int, int, int]:
    found = []
    for boundary in swaps.boundaries:
        for a, b, _ in swaps.terms.within(boundary.rank - 1, game.n_items - boundary.rank - 1):
            if 1 + a + b > game.k:
                found.append((a + b, boundary.rank, a, b))
    _, rank, a, b = min(found)
    return rank, a, b


def _out_of_sight(game: RankingGame, swaps: Swaps) -> tuple[int, int, int]:
    for boundary in swaps.boundaries:
        for a, b, _ in swaps.terms.within(boundary.rank - 1, game.n_items - boundary.rank - 1):
            if swaps.needed(boundary, a, b) > game.k:
                return boundary.rank, a, b
    raise ValueError("every term is in sight")
