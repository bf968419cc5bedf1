"""CascadeKL-UCB: what a cascade tells, and learning from people who read from the top."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers


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
