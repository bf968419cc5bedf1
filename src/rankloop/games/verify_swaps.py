"""Checks a witness about swaps, from the definition of each measure and without the classifier, in whole numbers.

A swap of x, just above y, is worth c (g(r_x) - g(r_y)) h. Three facts about each measure decide everything, and each
holds for any number of items; the tests compare them with all orders and all labels of small games.

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

from rankloop.games.alternating import difference_is_nonzero
from rankloop.games.game import Game
from rankloop.games.ranking_game import RankingGame
from rankloop.games.swaps import SwapWitness, Term
from rankloop.games.verdict import Verdict
from rankloop.games.verify_cells import demand
from rankloop.games.verify_worlds import check_worlds

_ALL_GRADED = ((1, 2), (0, 2), (1, 2))


def verify_swaps(game: Game, verdict: Verdict) -> None:
    """Whether the witness proves the class; `Refused` names the first thing that is wrong."""
    witness = verdict.witness
    demand(isinstance(witness, SwapWitness), "the witness is not about swaps")
    assert isinstance(witness, SwapWitness)
    demand(isinstance(game, RankingGame), "a proof by swaps is about rankings only")
    assert isinstance(game, RankingGame)
    demand(game.is_known, "only measures of the package with grades 0, 1, 2, ... have a known structure")
    demand(
        not (verdict.pareto or verdict.degenerate or verdict.dominated or verdict.neighbours),
        "a proof by swaps names no actions",
    )
    demand((verdict.n_actions, verdict.n_outcomes) == game.size, "the game has another size")
    demand(witness.blocks == _blocks(game), "the blocks are not the ranks that count alike")
    demand(
        verdict.easier_k == _easier(game, verdict.class_), "another k is the smallest at which it is easier"
    )
    unseen, k = witness.unseen, game.k
    hidden = verdict.class_ in ("hard", "hopeless")
    demand(hidden or unseen is None, "only a hard or a hopeless game has a term that cannot be seen")
    demand(verdict.class_ == "hopeless" or witness.worlds is None, "only a hopeless game has two such worlds")
    if verdict.class_ == "trivial":
        demand(_last_counting(game) == 0, "orders do not have the same value")
        return
    demand(_last_counting(game) > 0, "all orders have the same value: the game is trivial")
    if hidden:
        demand(isinstance(unseen, Term), "a term that cannot be seen is missing")
        assert unseen is not None
        _check_term(game, unseen)
    if verdict.class_ == "hopeless":
        assert unseen is not None
        demand(unseen.size > k, "the unseen term can be seen")
        if witness.worlds is not None:
            check_worlds(game, witness.worlds)
    elif verdict.class_ == "hard":
        assert unseen is not None
        demand(most_labels(game) <= k, "a term has more items than can be seen at once")
        demand(reach(game, unseen) > k, "the unseen term can be seen by the neighbours")
    else:
        demand(verdict.class_ == "easy", f"unknown class {verdict.class_!r}")
        demand(local_from(game) <= k, "the neighbours do not see every term")


def counts(game: RankingGame, rank: int) -> bool:
    """Whether ranks `rank` and `rank` + 1 count differently."""
    assert game.scored is not None
    cutoff = game.scored.cutoff or game.n_items
    if not 1 <= rank < game.n_items:
        return False
    return rank == cutoff if game.scored.family == "precision" else rank <= cutoff


def _last_counting(game: RankingGame) -> int:
    # The last rank that counts differently from the next; 0 if none does.
    assert game.scored is not None
    last = min(game.scored.cutoff or game.n_items, game.n_items - 1)
    return last if counts(game, last) else 0


def _ends(game: RankingGame) -> tuple[range, int]:
    # After which ranks blocks end, but for the last, and how many ranks there are.
    last = _last_counting(game)
    assert game.scored is not None
    return range(last if game.scored.family == "precision" else 1, last + 1) if last else range(
        0
    ), game.n_items


def _blocks(game: RankingGame) -> tuple[tuple[int, int], ...]:
    ends, m = _ends(game)
    if not ends:
        return ((1, m),)
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
    assert game.scored is not None
    family, m = game.scored.family, game.n_items
    if family in ("sum_loss", "dcg", "precision"):
        return True
    if game.max_grade > 1 or family == "err":
        return False
    if family == "pairwise_loss" or m <= 2:
        return True
    return m == 3 if family == "auc" else family == "ndcg" and game.scored.cutoff == 1


def most_labels(game: RankingGame) -> int:
    """No swap is worth a function of more labels at once than this, or a sum of such functions."""
    assert game.scored is not None
    family, m = game.scored.family, game.n_items
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
    assert game.scored is not None
    family, m = game.scored.family, game.n_items
    ends, _ = _ends(game)
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
    assert game.scored is not None
    if game.scored.family == "ndcg":
        _check_term(game, Term(1, 0, hard - 1))
    return {"hard": hard, "easy": easy}


def _check_term(game: RankingGame, term: Term) -> None:
    numbers = (term.rank, term.above, term.below, term.relevant)
    demand(
        all(type(each) is int and each >= 0 for each in numbers), "a term must count items in whole numbers"
    )
    demand(counts(game, term.rank), f"swapping ranks {term.rank} and {term.rank + 1} changes nothing")
    demand(
        term.above < term.rank and term.below + term.relevant <= game.n_items - term.rank - 1,
        "there are not so many items above or below the swap",
    )
    found = is_nonzero(game, term) if term.steps is None else _is_nonzero_with_grades(game, term)
    demand(found, "the unseen term is none of the terms of the measure, or cannot be shown to be one")


def is_nonzero(game: RankingGame, term: Term) -> bool:
    """Whether a term of labels 0 and 1 is shown to have a coefficient other than zero."""
    assert game.scored is not None
    family, m, d = game.scored.family, game.n_items, term.above + term.below
    start = 1 + term.relevant
    if d == 0 and (family != "pairwise_loss" or game.max_grade == 1):
        return True
    if family == "auc":
        return d % 2 == 0 or 2 * start + d != m
    if family == "average_precision":
        return term.above == 0 and term.relevant == 0
    if family == "err":
        return term.below == 0
    if family != "ndcg":
        return False
    n = game.scored.cutoff or m
    if start >= n:
        return False
    return start + d <= n or start == n - 1 or bool(difference_is_nonzero(d, start=start, cutoff=n))


def _is_nonzero_with_grades(game: RankingGame, term: Term) -> bool:
    assert game.scored is not None
    assert term.steps is not None
    x, y, _ = term.steps
    demand(
        all(0 <= low < high <= game.max_grade for low, high in term.steps),
        "a step must rise within the grades",
    )
    if game.scored.family == "pairwise_loss":
        corners = ((x[i] < y[j], x[i] > y[j], (-1) ** (i + j)) for i in (0, 1) for j in (0, 1))
        moved = sum(sign * (lost - won) for lost, won, sign in corners)
        return term.above + term.below + term.relevant == 0 and moved != 0
    known = game.scored.family == "ndcg" and term.steps == _ALL_GRADED
    if not known or (term.rank, term.above, term.relevant) != (1, 0, 0):
        return False
    m, n = game.n_items, game.scored.cutoff or game.n_items
    if n == 1:
        return True
    return term.size == m and (n >= m - 1 or bool(difference_is_nonzero(m - 1, start=0, cutoff=n, base=True)))


def reach(game: RankingGame, term: Term) -> int:
    """How far down the lowest item of the term stands, in the order between the two neighbours that shows it best.

    Items may be shuffled within their blocks. Of the items below, those that stand lowest are taken.
    """
    ends, m = _ends(game)
    start = (
        0 if term.rank == ends[0] else term.rank - 1
    )  # all blocks but the first and the last have one rank
    if term.steps is not None:
        return term.rank + 1 if term.above + term.below == 0 and start == term.rank - 1 else 0
    if term.below:
        room = m - ends[-1] - (term.rank == ends[-1])  # y may stand in the last block, and is not in the term
        return ends[-1] + min(term.below, room)
    return start + 1 + min(term.above, term.rank - start - 1)
