"""NDCG from the top k labels, k >= 2: the 2016 paper's open question, answered for k <= m - 2, and checked.

Two worlds in which any m - 2 labels are distributed alike, although they want different orders.
"""

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
from numpy.typing import NDArray

from rankloop import games, measures


def worlds(m: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Label vectors with r_1 != r_2; in the one world r_1 + r_3 + ... + r_m is odd, in the other it is even."""
    vectors: list[tuple[int, ...]] = [r for r in product((0, 1), repeat=m) if r[0] != r[1]]
    odd = [r for r in vectors if (r[0] + sum(r[2:])) % 2]
    return odd, [r for r in vectors if r not in odd]


def shares(vectors: list[tuple[int, ...]]) -> NDArray[np.float64]:
    """E[G(R) / Z(R)]: what each item is worth, on average, wherever it stands."""
    return np.asarray(measures.ndcg.gain(np.array(vectors)).mean(axis=0))


print(
    "  m   any m-2 labels alike   lead of item 1   of item 2   by the formula   forced NDCG regret   class at m-2"
)
for m in range(3, 9):
    odd, even = worlds(m)
    # Any m - 2 labels: the same vectors, equally often.
    for seen in combinations(range(m), m - 2):
        cut = [sorted(tuple(r[i] for i in seen) for r in side) for side in (odd, even)]
        assert cut[0] == cut[1]
    # Yet the first two items change places.
    lead, lag = (share[0] - share[1] for share in map(shares, (odd, even)))
    Z = np.cumsum(measures.dcg.discount(m))
    formula = sum((-1) ** j * comb(m - 2, j) / Z[j] for j in range(m - 1)) / 2 ** (m - 2)
    assert lead > 0 > lag
    assert abs(lead - formula) < 1e-12
    assert abs(lead + lag) < 1e-12
    # The analyser says the same, with worlds of its own, and its proof is checked.
    game = games.ranking_game(measure="ndcg", n_items=m, k=m - 2)
    verdict = games.classify(game)
    assert verdict.class_ == "hopeless"
    assert games.verify(game, verdict)
    assert verdict.worlds is not None
    assert isinstance(verdict.worlds.forced, Fraction)
    forced = float(verdict.worlds.forced)
    print(f"{m:>3}{'yes':>23}{lead:>17.4f}{-lag:>12.4f}{formula:>17.4f}{forced:>21.5f}{verdict.class_:>15}")

at = {k: games.classify(games.ranking_game(measure="ndcg", n_items=60, k=k)).class_ for k in (58, 59, 60)}
print("\n60 items:", ", ".join(f"{k} labels {class_}" for k, class_ in at.items()))
