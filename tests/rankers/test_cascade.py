"""CascadeKL-UCB and its robust form."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers
from rankloop.kernels.click_counts import log_level, upper_bound


def test_only_what_stands_down_to_the_first_click_was_looked_at() -> None:
    ranker = rankers.CascadeKLUCB(n_items=6, n_positions=4)
    shown = ranker.rank(rng=np.random.default_rng(1))
    assert shown.items.tolist() == [0, 1, 2, 3]
    ranker.learn(shown, [0, 1, 0, 1])
    np.testing.assert_array_equal(ranker.state.N, [1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(ranker.state.W, [0, 1, 0, 0, 0, 0])
    ranker.learn(shown, [0, 0, 0, 0])
    np.testing.assert_array_equal(ranker.state.N, [2, 2, 1, 1, 0, 0])
    assert set(ranker.rank(rng=np.random.default_rng(1)).items[:2].tolist()) == {4, 5}, "never seen: first"


def test_it_finds_what_attracts() -> None:
    attraction = np.array([0.1, 0.5, 0.1, 0.4, 0.1, 0.1])
    ranker, rng, users = rankers.CascadeKLUCB(n_items=6, n_positions=2), None, np.random.default_rng(1)
    rng = np.random.default_rng(2)
    for _ in range(4000):
        shown = ranker.rank(rng=rng)
        attracted = users.random(2) < attraction[shown.items]
        first = int(np.argmax(attracted)) if attracted.any() else 2
        ranker.learn(shown, np.arange(2) == first)
    assert ranker.current().tolist() == [1, 3]
    assert ranker.state.N[[0, 2, 4, 5]].sum() < 0.15 * ranker.state.N.sum()


def test_a_saved_state_has_no_more_clicks_than_looks() -> None:
    ranker = rankers.CascadeKLUCB(n_items=2)
    with pytest.raises(ValueError, match="'W' must be click counts"):
        ranker.load(ranker.save() | {"W": np.ones(2)})


def test_without_a_budget_it_is_cascade_kl_ucb() -> None:
    pair = [
        rankers.CascadeKLUCB(n_items=6, n_positions=3),
        rankers.CascadeRobustUCB(n_items=6, n_positions=3, budget=0),
    ]
    users = np.random.default_rng(1)
    for _ in range(300):
        shown = [ranker.rank(rng=np.random.default_rng(1)) for ranker in pair]
        assert shown[0].items.tolist() == shown[1].items.tolist()
        clicks = users.random(3) < 0.1 + 0.1 * shown[0].items
        for ranker, one in zip(pair, shown, strict=True):
            ranker.learn(one, clicks)


def test_the_index_allows_for_false_observations() -> None:
    ranker = rankers.CascadeRobustUCB(n_items=3, n_positions=1, budget=4)
    N, W = np.array([100.0, 50.0, 10.0]), np.array([30.0, 12.0, 1.0])
    ranker.load(ranker.save() | {"N": N, "W": W, "t": np.array([160])})
    level = log_level(161.0)
    index = [upper_bound((w + 4.0) / n, n, level) for n, w in zip(N, W, strict=True)]
    plain = [upper_bound(w / n, n, level) for n, w in zip(N, W, strict=True)]
    assert int(np.argmax(index)) == 2, "ten looks say little where four of them may be false"
    assert all(wide > narrow for wide, narrow in zip(index, plain, strict=True))
    assert ranker.rank(rng=np.random.default_rng(1)).items.tolist() == [2]


def test_an_item_is_not_given_up_before_its_looks_outweigh_the_budget() -> None:
    ranker = rankers.CascadeRobustUCB(n_items=2, n_positions=1, budget=30)
    rng = np.random.default_rng(1)
    for _ in range(60):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, shown.items == 0)
    assert ranker.state.N[1] >= 30, "never clicked, and still it may be the better one"


def test_a_budget_is_a_count() -> None:
    with pytest.raises(ValueError, match=r"budget must be .*got -1"):
        rankers.CascadeRobustUCB(n_items=2, budget=-1)
    with pytest.raises(ValueError, match=r"budget must be .*got 1.5"):
        rankers.CascadeRobustUCB(n_items=2, budget=1.5)  # type: ignore[arg-type]
