"""How regret and bounds of the 2015 paper depend on sizes: items, grades, cut-off, blocks and rounds.

Each inequality is tried on something that breaks it: an order that learns nothing, or a number that is wrong.
"""

from __future__ import annotations

from functools import cache
from math import factorial, log, log2, sqrt
from typing import Any

import numpy as np
import pytest

from rankloop import rankers
from rankloop.environments import FixedItems, users
from rankloop.simulation import play


def regret(ranker: Any, who: Any, measure: str, T: int, seed: int = 1) -> float:
    return play(ranker, FixedItems(who, measure=measure), rounds=T, seed=seed, points=1).total_regret


@cache
def per_round_and_range(name: str, m: int) -> float:
    """Regret in SumLoss per round, in units of the largest loss, m (m + 1) / 2."""
    T = 10**6
    kinds = {
        "RTop1F": lambda: rankers.RTop1F(n_items=m, horizon=T, measure="sum_loss", explore="random"),
        "FeedExp3": lambda: rankers.FeedExp3(n_items=m, measure="sum_loss"),
    }
    lost = regret(kinds[name](), users.bernoulli(np.linspace(0.9, 0.1, m)), "sum_loss", T)
    return lost / T / (m * (m + 1) / 2)


@pytest.mark.judges("2015-003")
def test_regret_grows_with_m_itself_and_that_of_feedexp3_with_m_factorial() -> None:
    # From 3 to 5 items the number of orders N grows from 6 to 120, and its logarithm by a factor of 2.7.
    growth = {
        name: per_round_and_range(name, 5) / per_round_and_range(name, 3) for name in ("RTop1F", "FeedExp3")
    }
    of_orders, of_logarithm = factorial(5) / factorial(3), log(factorial(5)) / log(factorial(3))
    assert growth["RTop1F"] < of_logarithm
    assert growth["FeedExp3"] > of_orders**0.5 > of_logarithm  # the bound has N^(2/3)
    # What the bounds say: a power of m, and N^(2/3) up to logarithms and the size of the coefficients.
    bound = rankers.FeedExp3(n_items=5).regret_bound(10**6) / rankers.FeedExp3(n_items=3).regret_bound(10**6)
    assert bound / (15 / 6) > of_orders ** (2 / 3) * 0.7
    ours = [rankers.RTop1F(n_items=m, horizon=10**9, measure="sum_loss").regret_bound() for m in (3, 5)]
    assert ours[1] / ours[0] / (15 / 6) == pytest.approx((5 / 3) ** (2 / 3), rel=0.01)


@pytest.mark.judges("2015-056")
@pytest.mark.parametrize("n", [2, 3, 4])
def test_with_grades_regret_is_that_of_two_grades_times_the_gain(n: int) -> None:
    # Labels are 0 or n. With the epsilon of Theorem 9 the run is that of labels 0 and 1, all gains times 2^n - 1.
    T, m = 5_000, 5
    p = np.linspace(0.9, 0.1, m)

    def lost(n: int, **own: float) -> float:
        chances = np.zeros((m, n + 1))
        chances[:, 0], chances[:, n] = 1 - p, p
        ranker = rankers.RTop1F(n_items=m, horizon=T, measure="dcg", max_grade=n, **own)  # type: ignore[arg-type]
        return regret(ranker, users.graded(chances), "dcg", T) / (2**n - 1)

    assert lost(n) == pytest.approx(lost(1), rel=1e-9)
    bounds = [rankers.RTop1F(n_items=m, horizon=T, max_grade=grade).regret_bound() for grade in (1, n)]
    assert bounds[1] == pytest.approx((2**n - 1) * bounds[0], rel=1e-12)
    of_two_grades = 1 / float(rankers.RTop1F(n_items=m, horizon=T).params.reaches[0])
    assert lost(n, epsilon=of_two_grades) != pytest.approx(lost(1), rel=0.1)  # without 2^n - 1 in epsilon


def slope(bound: Any, at: int) -> float:
    """The power with which a bound grows, from one size to its double."""
    return log2(bound(2 * at) / bound(at))


def bound(measure: str, m: int, T: int, **own: int) -> float:
    return rankers.RTop1F(n_items=m, horizon=T, measure=measure, **own).regret_bound()  # type: ignore[arg-type]


@pytest.mark.judges("2015-059")
def test_bounds_have_the_powers_of_the_theorems() -> None:
    T = 10**15  # so long that rounding K does not show
    assert slope(lambda m: bound("sum_loss", m, T), 1000) == pytest.approx(8 / 3, abs=0.002)
    assert slope(lambda m: bound("precision@5", m, T), 1000) == pytest.approx(2 / 3, abs=0.002)
    # The sum of DCG's discounts is of order m / log m, which the paper bounds by m.
    assert 5 / 3 - 0.2 < slope(lambda m: bound("dcg", m, T), 1000) < 5 / 3
    discounts = [1 / log2(1 + i) for i in range(1, 1001)]
    assert bound("dcg", 1000, T) == pytest.approx(
        3 * sum(discounts) * 1000 ** (2 / 3) * T ** (2 / 3), rel=1e-4
    )
    assert slope(lambda k: bound(f"precision@{k}", 100, T), 20) == pytest.approx(1, abs=1e-9)
    for measure in ("sum_loss", "dcg", "precision@5"):
        assert slope(lambda T, measure=measure: bound(measure, 10, T), 10**12) == pytest.approx(
            2 / 3, abs=1e-4
        )
        # With another number of blocks the power of T is another: sqrt(T) blocks make it 3/4.
        other = slope(lambda T, measure=measure: bound(measure, 10, T, blocks=round(sqrt(T))), 10**12)
        assert other == pytest.approx(3 / 4, abs=0.01)


def exploration(m: int, T: int, blocks: int | None) -> tuple[float, int]:
    """What the rounds of exploration lose in Precision@3 where three items of many are relevant, and their number."""
    ranker = rankers.RTop1F(n_items=m, horizon=T, measure="precision@3", explore="random", blocks=blocks)
    rng, relevant = np.random.default_rng(1), set(range(3))
    lost = rounds = 0
    for _ in range(T):
        shown = ranker.rank(rng=rng)
        if shown.explored:
            lost += 3 - len(relevant & set(shown.items[:3].tolist()))
            rounds += 1
        ranker.learn(shown, [float(shown.items[0] in relevant)])
    return lost, rounds


@pytest.mark.judges("2015-077")
def test_exploration_costs_at_most_r_m_k() -> None:
    # R = 3, the most that a round can be worth. With 30 items a random order is worth hardly anything.
    m, T, R = 30, 8_000, 3
    K = int(rankers.RTop1F(n_items=m, horizon=T, measure="precision@3").params.blocks[0])
    lost, rounds = exploration(m, T, None)
    assert rounds == m * K
    assert 0.8 * R * m * K < lost <= R * m * K
    twice, rounds = exploration(m, T, 2 * K)
    assert rounds == 2 * m * K
    assert twice > R * m * K


@pytest.mark.judges("2015-050", "2015-055", "2015-058")
@pytest.mark.parametrize("measure", ["sum_loss", "dcg", "precision@3"])
def test_orders_that_learn_nothing_break_the_bounds(measure: str) -> None:
    # Up to 10^5 rounds even a reversed order keeps some of the bounds; at 10^6 no order that does not learn does.
    m, T = 10, 10**6
    who = users.noisy_halves(n_items=m, noise=0.25)
    ranker = rankers.RTop1F(n_items=m, horizon=T, measure=measure, explore="random")
    bound = ranker.regret_bound()
    assert regret(ranker, who, measure, T) < 0.3 * bound
    for other in (rankers.Uniform(n_items=m), rankers.Fixed(order=np.arange(m)[::-1])):
        assert regret(other, who, measure, T) > bound
