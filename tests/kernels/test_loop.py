"""The loop over rounds: with kernels built in and with kernels of the library it plays the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop import environments, rankers, simulation
from rankloop.kernels import jit, loop


def _end(ranker: Any, world: Any) -> list[Any]:
    trace = simulation.play(ranker, world, rounds=300, seed=3)
    return [trace.value, trace.total, trace.regret, trace.explored, *ranker.state, *world.state]


def _pairs() -> list[tuple[Any, Any]]:
    # Rankers that numba compiles in a second or two: one with a memo and propensities, one without.
    clicks = environments.PositionBased(attraction=[0.9, 0.1, 0.5], examination=[1.0, 0.5])
    return [
        (rankers.RankedExp3(n_items=3, n_positions=2, horizon=300), clicks),
        (rankers.CascadeKLUCB(n_items=3, n_positions=2), clicks),
    ]


@pytest.mark.skipif(jit.LIBRARY is None, reason="no compiled kernels here: make kernels")
def test_both_forms_of_the_loop_play_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    by_words = [_end(*pair) for pair in _pairs()]
    monkeypatch.setattr(loop, "_prepared", lambda *_: None)
    built_in = [_end(*pair) for pair in _pairs()]
    for ours, theirs in zip(by_words, built_in, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(jit.LIBRARY is None, reason="no compiled kernels here: make kernels")
def test_the_loop_takes_a_ranker_with_its_request() -> None:
    from rankloop import data

    queries = data.synthetic_letor(n_queries=12, n_features=3, seed=1, list_length=(2, 8))
    for ranker in (rankers.RTopKF(n_features=3), rankers.ListNet(n_features=3)):
        world = environments.QueryStream(queries, measure="ndcg@3")
        fused = simulation.play(ranker.clone(), world, rounds=50, seed=1)
        world.restart()
        stepwise = simulation.play(ranker.clone(), world, rounds=50, seed=1, fused=False)
        np.testing.assert_array_equal(fused.value, stepwise.value)
