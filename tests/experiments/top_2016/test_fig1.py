"""The setting of section 6 of the 2016 paper."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.environments import QueryStream
from rankloop.experiments.top_2016 import setting
from rankloop.rankers import Uniform
from rankloop.simulation import play


def test_the_order_of_smooth_dcg_depends_on_the_weights_over_epsilon_alone() -> None:
    train, _ = setting.parts("synthetic", 1)
    levels = []
    for epsilon, scale in ((1.0, 0.01), (0.01, 1e-6)):
        arguments = {"surrogate": "smooth_dcg", "k": 1, "epsilon": epsilon, "learning_rate": [scale, 2 / 3]}
        ranker = setting.make_ranker(arguments, train)
        levels.append(setting.play_on(ranker, train, rounds=2_000, seed=1).mean_value)
    assert levels[0] == pytest.approx(levels[1], abs=1e-6)


def test_over_five_runs_every_query_is_held_out_once_and_never_learnt_from() -> None:
    held_out: list[str] = []
    for seed in setting.SEEDS:
        train, test = setting.parts("synthetic", seed)
        assert not set(train.query_ids) & set(test.query_ids)
        assert train.n_queries + test.n_queries == 500
        held_out += test.query_ids
    assert sorted(held_out) == sorted(setting.queries("synthetic").query_ids)
    assert np.linalg.norm(setting.queries("synthetic").features, axis=1).max() <= 1.0


def test_the_worth_of_a_random_order_is_what_random_orders_are_worth() -> None:
    stream = QueryStream(setting.parts("synthetic", 1)[1], measure=setting.MEASURE)
    played = play(Uniform(), stream, rounds=40_000, seed=1, progress=False).mean_value
    assert setting.random_values(stream).mean() == pytest.approx(played, abs=0.003)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="got 'letor'"):
        setting.queries("letor")
