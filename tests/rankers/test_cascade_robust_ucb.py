"""CascadeRobustUCB: its index by hand, CascadeKLUCB without a budget, and what it withstands."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers
from rankloop.kernels.click_counts import log_level, upper_bound


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
