"""The rates of the 2015 paper: what is played, and how growth is read off."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from rankloop import environments, measures
from rankloop.experiments.experiment import Job
from rankloop.experiments.top1_2015 import rates
from rankloop.experiments.top1_2015.setting import bound_of, make_learner


@pytest.mark.parametrize("measure", rates.SEPARABLE)
def test_the_users_retold_differ_between_rankings_as_the_measure_does(measure: str) -> None:
    people = environments.adversary(measure)
    retold, by_item = rates.own_terms(measure, people.vectors)
    orders = np.array([np.random.default_rng(seed).permutation(people.n_items) for seed in range(6)])
    truth, told = measures.get(measure), measures.get(by_item)
    for relevance, said in zip(people.vectors, retold, strict=True):
        wanted = np.asarray(truth(orders, relevance.astype(np.int64)))
        found = np.asarray(told(orders, said))
        assert found - found[0] == pytest.approx(wanted - wanted[0], abs=1e-12)


def test_map_has_no_terms_of_its_own() -> None:
    with pytest.raises(ValueError, match="got 'average_precision'"):
        rates.own_terms("average_precision", np.array([[1, 0, 0]], dtype=np.int8))


def test_a_run_in_hard_worlds_counts_once_as_the_mean_of_both() -> None:
    rows = pl.DataFrame(
        {
            "seed": [1, 1, 2, 2],
            "measure": ["ndcg"] * 4,
            "learner": ["RTop1F"] * 4,
            "world": [0, 1, 0, 1],
            "horizon": [10] * 4,
            "regret": [1.0, 3.0, 5.0, 7.0],
            "bound": [None] * 4,
        }
    )
    found = rates.Growth(rows, "ndcg", "RTop1F").last
    assert (found["mean"], found["error"], found["low"], found["high"]) == (4.0, pytest.approx(2.0), 2.0, 6.0)


def test_a_job_plays_each_horizon_under_its_own_bound() -> None:
    told = {"measure": "dcg", "learner": "RTop1F keep-rest", "horizons": [100, 300]}
    rows = rates.Top1Rates().run(Job(name="small", seed=1, settings=told))
    assert rows["horizon"].to_list() == [100, 300]
    bounds = [
        bound_of(make_learner("RTop1F keep-rest", n_items=10, horizon=horizon)) for horizon in (100, 300)
    ]
    assert rows["bound"].to_list() == bounds
    assert bound_of(make_learner("Uniform", n_items=10, horizon=100)) is None
    chance = rates.Top1Rates().run(Job(name="small", seed=1, settings=told | {"learner": "Uniform"}))
    assert chance["bound"].to_list() == bounds  # under which a random order is judged


def test_an_unknown_learner_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'RTop9F'"):
        make_learner("RTop9F", n_items=3, horizon=100)
