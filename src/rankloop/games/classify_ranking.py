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

Which terms there are is known in closed form, so that a million items take no longer than three.
"""

from __future__ import annotations

from rankloop.games.alternating import difference_is_nonzero
from rankloop.games.ranking_game import RankingGame
from rankloop.games.swaps import Runs, SwapWitness, Term, Undecided
from rankloop.games.twin_worlds import graded_twin_worlds, twin_worlds
from rankloop.games.verdict import Verdict

ADDITIVE = ("sum_loss", "dcg", "precision")
GRADED_STEPS = ((1, 2), (0, 2), (1, 2))
SIGN_STEPS = ((0, 1), (1, 2), (0, 1))
_CLASSES = ("trivial", "easy", "hard", "hopeless")


def classify_ranking(game: RankingGame) -> Verdict:
    """The verdict from the swaps of the measure."""
    if game.scored is None:
        raise ValueError("a custom function has no known structure: classify it by its cells")
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
        measure=game.measure,
        n_items=game.n_items,
        k=game.k,
        max_grade=game.max_grade,
        easier_k={} if class_ == "trivial" else _easier(game, class_, globally, locally),
    )


def thresholds(game: RankingGame) -> tuple[int, int]:
    """The smallest k at which the game is hard, and at which it is easy; (0, 0) where it is trivial."""
    assert game.scored is not None
    m, family, n = game.n_items, game.scored.family, _cutoff(game)
    if m == 1 or (family == "precision" and n == m):
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


def _cutoff(game: RankingGame) -> int:
    assert game.scored is not None
    return min(game.scored.cutoff or game.n_items, game.n_items)


def _adds_up(game: RankingGame) -> bool:
    # Whether a swap is worth a function of r_x minus the same function of r_y, whatever the others are.
    assert game.scored is not None
    m, family, n, binary = game.n_items, game.scored.family, _cutoff(game), game.max_grade == 1
    if family in ADDITIVE:
        return True
    if not binary or family == "err":
        return False
    # Z(s) = 1 for ndcg@1, and s (3 - s) = 2 for auc of three items.
    return family == "pairwise_loss" or m == 2 or (family, m) == ("auc", 3) or (family, n) == ("ndcg", 1)


def _decide(game: RankingGame, order: int, *, start: int, base: bool = False) -> None:
    n = _cutoff(game)
    # Below the cut-off 1 / Z is completely monotone, and no difference is zero; see verify_swaps.
    if 1 < n < start + order and not difference_is_nonzero(order, start=start, cutoff=n, base=base):
        raise Undecided(
            f"whether {game.measure} of {game.n_items} items can be learnt from all labels but one or two depends on "
            f"a sum of {n} terms that is too long, or too near to zero, to be decided here"
        )


def _blocks(game: RankingGame) -> Runs:
    assert game.scored is not None
    m, n = game.n_items, _cutoff(game)
    first = [(1, n)] if game.scored.family == "precision" else [(n, 1)]
    if n == m:
        return tuple(first)
    if first[0][1] == m - n:
        return ((first[0][0] + 1, m - n),)
    return (*first, (1, m - n))


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
    blocks = _blocks(game)
    if class_ == "hopeless":
        unseen = _too_large(game)
        mixed = game.max_grade > 1 and game.scored is not None and game.scored.family != "err"
        worlds = graded_twin_worlds(game) if mixed else twin_worlds(game, unseen.above)
        return SwapWitness(blocks, unseen, worlds)
    return SwapWitness(blocks, _out_of_sight(game) if class_ == "hard" else None)


def _too_large(game: RankingGame) -> Term:
    assert game.scored is not None
    m, k, family, n = game.n_items, game.k, game.scored.family, _cutoff(game)
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
    assert game.scored is not None
    m, family, n = game.n_items, game.scored.family, _cutoff(game)
    if _adds_up(game):
        return Term(m - _blocks(game)[-1][1], 0, 0)
    if family == "pairwise_loss":
        return Term(m - 1, 0, 0, steps=SIGN_STEPS)
    if n == m:
        return Term(1, 0, 1)
    # All items of the last block together: no order shows them all but with every label seen.
    return Term(1, 0, m - n, n - 2 if family == "ndcg" else 0)
