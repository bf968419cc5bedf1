"""Precision@n can be learnt from the top item as fast as a bandit: the construction behind the page, checked.

The 2015 paper leaves this open, because it could not name the neighbours of an order. Here they are, for a few sizes.
"""

from itertools import combinations
from math import comb

from rankloop import games

print("  m  n   cells  pairs  between two   class   verified")
for m, n in [(3, 1), (3, 2), (4, 2), (4, 3), (5, 2)]:
    game = games.ranking_game(measure=f"precision@{n}", n_items=m, k=1)
    verdict = games.classify(
        game, route="cells"
    )  # from all orders and outcomes; nothing about precision is built in

    # One cell for each set of n items, and neighbours are sets that differ in one item.
    sets = {i: frozenset(game.orders[i][:n]) for i in verdict.pareto}
    assert sorted(map(sorted, sets.values())) == sorted(map(list, combinations(range(m), n)))
    for i, j in verdict.neighbours:
        assert len(sets[i] - sets[j]) == 1
    assert len(verdict.neighbours) == comb(m, n) * n * (m - n) // 2

    # Between two neighbours: all orders of the one set and all of the other. Any member of either may be on top.
    i, j = verdict.neighbours[0]
    between = [a for a, order in enumerate(game.orders) if frozenset(order[:n]) in (sets[i], sets[j])]
    tops = {game.orders[a][0] for a in between}
    assert tops == sets[i] | sets[j]

    # So the two labels that differ can be seen without leaving the two sets: that is what local observability asks for.
    (x,), (y,) = sets[i] - sets[j], sets[j] - sets[i]
    seen = {game.orders[a][0]: a for a in between}
    assert isinstance(verdict.witness, games.CellWitness)
    estimate = verdict.witness.estimates[i, j]
    for column, r in enumerate(game.outcomes):
        worth = sum(value for (a, symbol), value in estimate.items() if game.signals[a, column] == symbol)
        assert worth == r[y] - r[x]
    assert {x, y} <= set(seen)

    assert verdict.class_ == "easy"
    print(f"{m:>3}{n:>3}{len(sets):>8}{len(verdict.neighbours):>7}{len(between):>13}{verdict.class_:>8}"
          f"{games.verify(game, verdict)!s:>11}")  # fmt: skip

far = games.classify(games.ranking_game(measure="precision@10", n_items=1_000, k=1))
print(f"\n1,000 items, Precision@10, from the structure: {far.class_}, regret of order {far.rate}")
