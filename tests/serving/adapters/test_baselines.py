"""The value of baselines that do not learn: exact where preferences are fixed, unbiased by enumeration elsewhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankloop.serving.adapters.baselines import FROZEN, LISTS, RANDOM, NeverLearning
from rankloop.serving.adapters.list_values import discounts, gains
from tests.serving.service import ITEMS, answer, create, play, rank, running

TASTE = dict(zip(ITEMS, (0.0, 1.0, 0.0, 1.0, 1.0), strict=True))


def test_after_whole_blocks_both_are_exact_where_taste_is_fixed() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(40):
                shown = await rank(engine, f"d{i}")
                await answer(engine, shown.decision_id, TASTE[shown.items[0]])
            points = engine.rankers["unwind"].fold.series.buckets[-1].estimate
        gain, (discount, _) = gains(np.array(list(TASTE.values())))[0], discounts(5, 5)
        assert points["dcg.frozen"] == pytest.approx(gain @ discount)
        assert points["dcg.random"] == pytest.approx(gain.sum() * discount.mean())
        assert points["dcg"] > points["dcg.random"]

    play(story)


@pytest.mark.parametrize("seen", [1, 2])
def test_the_top_of_random_lists_is_enough(seen: int) -> None:
    gain, discount = np.array([[3.0, 0.0, 1.0, 7.0]]), discounts(4, 2)[:1]
    told = NeverLearning(1)
    for order in itertools.permutations(range(4)):
        items = np.array(order)
        told.add_seen(gain[:, items[:seen]], items, discount)
    random, frozen = told.sums[:2, 0] / told.sums[LISTS, 0]
    assert frozen == pytest.approx(float((gain * discount).sum()))
    assert random == pytest.approx(float(gain.sum() * discount.mean()))


def test_clicks_are_weighed_by_the_chance_of_each_place() -> None:
    liked, looked_at = np.array([0.9, 0.4, 0.1]), np.array([1.0, 0.5])
    orders = list(itertools.permutations(range(3), 2))
    chances = np.arange(1, 7) / 21
    told = np.zeros(2)
    for order, chance in zip(orders, chances, strict=True):
        places = [sum(c for o, c in zip(orders, chances, strict=True) if o[j] == order[j]) for j in (0, 1)]
        one = NeverLearning(1)
        one.add_clicks(liked[list(order)] * looked_at, np.array(order), np.array(places), n_items=3)
        told += chance * one.sums[[RANDOM, FROZEN], 0]
    assert told[0] == pytest.approx(liked.mean() * looked_at.sum())
    assert told[1] == pytest.approx(liked[0] + 0.5 * liked[1])


def test_a_snapshot_keeps_them() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(30):
                shown = await rank(engine, f"d{i}")
                await answer(engine, shown.decision_id, TASTE[shown.items[0]])
            fold = engine.rankers["unwind"].fold
            again = type(fold).restore(fold.save())
            assert again.estimates.points() == fold.estimates.points() != {}

    play(story)
