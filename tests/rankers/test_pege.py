"""PEGE: its phases, what it learns from, and where it is good."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import environments, rankers
from rankloop.simulation import play


def test_phases() -> None:
    ranker = rankers.PEGE(n_items=3)
    rng = np.random.default_rng(1)
    explored, tops = [], []
    for _ in range(3 + 2 + 6 + 7 + 9):
        shown = ranker.rank(rng=rng)
        explored.append(int(shown.explored))
        tops.append(int(shown.items[0]))
        ranker.learn(shown, [float(shown.items[0] == 2)])
    # Each item once, then e rounds of the best order; twice, then e^2; three times.
    assert explored == [1] * 3 + [0] * 2 + [1] * 6 + [0] * 7 + [1] * 9
    assert sorted(tops[:3]) == [0, 1, 2]
    assert tops[3:5] == [2, 2]
    assert sorted(tops[5:11]) == [0, 0, 1, 1, 2, 2]
    assert ranker.state.seen.tolist() == [6.0, 6.0, 6.0]
    assert ranker.current().tolist() == [2, 0, 1]


def test_exploration_keeps_the_order_of_the_rest() -> None:
    ranker = rankers.PEGE(n_items=4)
    ranker.state.order[:] = [2, 0, 3, 1]
    rng = np.random.default_rng(1)
    for _ in range(20):
        items = ranker.rank(rng=rng).items.tolist()
        assert [item for item in [2, 0, 3, 1] if item != items[0]] == items[1:]


def test_rounds_that_do_not_explore_teach_nothing() -> None:
    ranker = rankers.PEGE(n_items=2, k=2)
    rng = np.random.default_rng(1)
    ranker.learn(ranker.rank(rng=rng), [1.0, 1.0])  # both at once
    assert ranker.state.due.tolist() == [0, 0]
    shown = ranker.rank(rng=rng)
    assert not shown.explored
    ranker.learn(shown, [0.0, 0.0])
    assert ranker.state.total.tolist() == [1.0, 1.0]


def test_items_come_and_go() -> None:
    old = rankers.PEGE(n_items=2)
    rng = np.random.default_rng(1)
    for _ in range(20):
        shown = old.rank(rng=rng)
        old.learn(shown, [float(shown.items[0] == 1)])
    new = rankers.PEGE(n_items=3)
    new.carry(old, np.array([-1, 1, 0]))
    phase = int(old.state.phase[0])
    assert new.state.due[0] == phase * (phase + 1) // 2
    assert new.current()[0] == 1
    later = new.translate(shown, np.array([2, 1]))
    assert later is not None
    assert later.items.tolist() == [2, 1, 0]
    assert new.translate(shown, np.array([-1, 1])) is None


def test_regret_where_users_stay() -> None:
    users = environments.users.bernoulli(np.linspace(0.9, 0.1, 10))
    people = environments.FixedItems(users, measure="dcg")
    lost = [
        play(
            rankers.PEGE(n_items=10), people, rounds=100_000, seed=seed, points=1, progress=False
        ).total_regret
        for seed in range(1, 4)
    ]
    assert np.mean(lost) < 1_500


@pytest.mark.parametrize(("name", "value"), [("phase", 0), ("due", -1), ("seen", -1), ("order", 1)])
def test_a_state_that_cannot_be(name: str, value: int) -> None:
    ranker = rankers.PEGE(n_items=3)
    saved = ranker.state_arrays()
    saved[name][:] = value
    with pytest.raises(ValueError, match=name):
        ranker.load(saved)
