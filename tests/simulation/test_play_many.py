"""Many runs at once: the same traces as one after another, one bar, and a clean end when interrupted."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop import environments, rankers, simulation
from rankloop.base import Environment, Ranker, Ranking
from rankloop.simulation import Trace
from rankloop.simulation import bar as bars

ROOT = Path(__file__).parents[2]


def _pair(name: str = "gap-0.03-corrupted") -> tuple[Ranker, Environment]:
    return rankers.FTRLPBM(n_items=10, n_positions=5), environments.named(name)


def _same(one: Trace, other: Trace) -> bool:
    parts = ("rounds", "value", "total", "regret", "explored")
    return (one.measure, one.seed, one.counters) == (other.measure, other.seed, other.counters) and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in parts
    )


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_many_seeds_are_played_as_one_by_one(workers: int | None) -> None:
    seeds = [5, 0, 5, 7]
    many = simulation.play_many(_pair, rounds=3_000, seeds=seeds, points=50, workers=workers)
    alone = [simulation.play(*_pair(), rounds=3_000, seed=seed, points=50) for seed in seeds]
    assert [len(trace.rounds) for trace in many] == [50] * 4
    assert all(map(_same, many, alone))


def test_many_different_pairs_are_played_as_one_by_one() -> None:
    def pairs() -> Iterator[tuple[Ranker, Environment]]:
        for name in ("gap-0.01", "yandex-periodic-2", "lower-bound"):
            yield _pair(name)
        people = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="ndcg")
        yield rankers.Uniform(n_items=4), people

    many = simulation.play_many(pairs(), rounds=500, seeds=range(4))
    alone = [simulation.play(*pair, rounds=500, seed=seed) for seed, pair in enumerate(pairs())]
    assert all(map(_same, many, alone))
    assert [trace.measure for trace in many] == ["clicks", "clicks", "clicks", "ndcg"]


def test_runs_go_on_from_where_they_stand() -> None:
    pair = _pair()
    simulation.play_many([pair], rounds=300, seeds=[1])
    again = simulation.play_many([pair], rounds=300, seeds=[2])
    other = _pair()
    simulation.play(*other, rounds=300, seed=1)
    assert _same(again[0], simulation.play(*other, rounds=300, seed=2))


def test_step_by_step_too() -> None:
    stepwise, compiled = (
        simulation.play_many(_pair, rounds=200, seeds=[1, 2], fused=fused) for fused in (False, True)
    )
    assert all(map(_same, stepwise, compiled))


def test_no_runs_are_no_traces() -> None:
    assert simulation.play_many([], rounds=10, seeds=[]) == []


def test_mistakes_are_named_before_anything_is_played() -> None:
    ranker, people = _pair()
    with pytest.raises(ValueError, match="seeds must be one for each of 1 runs, got 2"):
        simulation.play_many([(ranker, people)], rounds=10, seeds=[1, 2])
    with pytest.raises(ValueError, match="every run needs its own ranker, pairs has"):
        simulation.play_many([(ranker, people), (ranker, _pair()[1])], rounds=10, seeds=[1, 2])
    with pytest.raises(ValueError, match="every run needs its own environment"):
        simulation.play_many([(ranker, people), (_pair()[0], people)], rounds=10, seeds=[1, 2])
    with pytest.raises(ValueError, match=r"seed must be.*got -1"):
        simulation.play_many([(ranker, people), _pair()], rounds=10, seeds=[1, -1])
    with pytest.raises(ValueError, match=r"workers must be.*got 0"):
        simulation.play_many([(ranker, people)], rounds=10, seeds=[1], workers=0)
    with pytest.raises(ValueError, match="learns from relevance"):
        simulation.play_many(
            [(ranker, people), (rankers.FTPL(n_items=10), _pair()[1])], rounds=10, seeds=[1, 2]
        )
    assert people.state.t[0] == 0


class Failing(rankers.Uniform):
    """A ranker that fails in its fifth round."""

    fusable = False

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        if self.state.t[0] == 5:
            raise RuntimeError("no more")
        return super().rank(context, rng=rng)


def test_a_failure_ends_all_and_is_told() -> None:
    people = [environments.named("yandex") for _ in range(2)]
    long = rankers.Uniform(n_items=10, n_positions=5), people[0]
    begun, before = time.perf_counter(), threading.active_count()
    with pytest.raises(RuntimeError, match="no more"):
        simulation.play_many(
            [long, (Failing(n_items=10, n_positions=5), people[1])], rounds=10**9, seeds=[1, 2], points=10
        )
    assert time.perf_counter() - begun < 20
    assert threading.active_count() == before
    assert 0 < people[0].state.t[0] < 10**9


def test_one_bar_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    shown = simulation.play_many(_pair, rounds=1_000, seeds=range(3), progress=True)
    assert "rounds/s" in err.getvalue()
    err.truncate(0)
    err.seek(0)
    quiet = simulation.play_many(_pair, rounds=1_000, seeds=range(3))
    assert err.getvalue() == ""
    assert all(map(_same, shown, quiet))


def test_the_bar_waits_for_the_first_rounds() -> None:
    bar = bars.Bar(10**9, wanted=True)
    bar.patience = 0.1
    bar.begun -= 60.0  # a minute has passed, say with compiling
    with bar:
        bar.show(0)
        bar.show(10)
        assert bar.drawn


def test_an_interrupt_leaves_cleanly() -> None:
    code = (
        "import signal; from rankloop import environments, rankers, simulation\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whoever runs the tests may ignore it
        "def make():\n"
        "    print('begun', flush=True)\n"
        "    return rankers.Uniform(n_items=10, n_positions=5), environments.named('yandex')\n"
        "try:\n"
        "    simulation.play_many(make, rounds=10**9, seeds=range(3), points=10)\n"
        "except KeyboardInterrupt:\n"
        "    print('left', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert [process.stdout.readline().strip() for _ in range(3)] == ["begun"] * 3
            time.sleep(1.5)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()  # should it still be there
    assert (out, err, process.returncode) == ("left\n", "", 0)
