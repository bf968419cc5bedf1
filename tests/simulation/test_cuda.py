"""`executor="cuda"` without a GPU: the loop over a stand-in against `play`, and its code where a compiler is found."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import cuda as benchmark
from rankloop import environments, rankers, simulation, suite
from rankloop.environments import users
from rankloop.ranges import Whole
from rankloop.simulation import cuda
from rankloop.simulation.play import begin
from rankloop.suite.submission import Delayed
from tests.simulation import cuda_stand_in

ROUNDS = 120
COLUMNS = ("rounds", "value", "total", "regret", "explored")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> cuda_stand_in.Driver:
    return cuda_stand_in.installed(monkeypatch)


def halves() -> Any:
    return environments.FixedItems(users.noisy_halves(n_items=6), measure="dcg")


def one() -> Any:
    return rankers.RTop1F(n_items=6, measure="dcg", horizon=ROUNDS)


def same(one: Any, other: Any) -> bool:
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in COLUMNS)


@pytest.mark.parametrize("name", benchmark.PAIRS)
def test_bytes_are_those_of_play(name: str, gpu: cuda_stand_in.Driver) -> None:
    """Traces and the whole state of both sides, of runs that are played in pieces."""
    assert benchmark.check_bytes(name, runs=2, rounds=ROUNDS)["differing"] == []
    assert gpu.launches > 1
    assert not gpu.held


def test_an_error_of_the_driver_is_told_and_leaves_no_memory(gpu: cuda_stand_in.Driver) -> None:
    gpu.cuCtxSynchronize = lambda: (700,)
    with pytest.raises(RuntimeError, match=r"^cuCtxSynchronize: out of order$"):
        simulation.play_many(lambda: (one(), halves()), rounds=2, seeds=[1], executor="cuda")
    assert not gpu.held


def test_ctrl_c_ends_it_between_two_pieces(gpu: cuda_stand_in.Driver) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    gpu.cuCtxSynchronize = interrupt
    with pytest.raises(KeyboardInterrupt):
        simulation.play_many(lambda: (one(), halves()), rounds=2, seeds=[1], executor="cuda")
    assert not gpu.held


def test_too_little_memory_for_the_threads_is_told_before_the_launch(gpu: cuda_stand_in.Driver) -> None:
    gpu.free = 5 << 10
    with pytest.raises(MemoryError, match="the GPU has 0 MiB free, its threads need"):
        simulation.play_many(lambda: (one(), halves()), rounds=2, seeds=[1], executor="cuda")
    assert gpu.launches == 0


def test_words_are_those_of_numpy() -> None:
    generator = np.random.default_rng([2026, 7])
    state = np.array([0, 0, *cuda.state_of(generator)], np.uint64)
    words = [cuda.next_word.plain(state, 2) for _ in range(1000)]  # type: ignore[attr-defined]
    assert words == generator.bit_generator.random_raw(1000).tolist()


@pytest.mark.usefixtures("gpu")
def test_runs_of_several_kinds_go_together() -> None:
    def pairs() -> list[Any]:
        small = environments.FixedItems(users.bernoulli([0.2, 0.9, 0.5]), measure="dcg")
        return [(one(), halves()), (rankers.FTPL(n_items=3), small), (one(), halves())]

    mine, theirs = pairs(), pairs()
    played = simulation.play_many(mine, rounds=ROUNDS, seeds=[1, 2, 3], points=5, executor="cuda")
    expected = simulation.play_many(theirs, rounds=ROUNDS, seeds=[1, 2, 3], points=5)
    assert all(same(a, b) for a, b in zip(played, expected, strict=True))
    for (ranker, world), (other, its) in zip(mine, theirs, strict=True):
        for a, b in zip(
            cuda.leaves((ranker.state, world.state)), cuda.leaves((other.state, its.state)), strict=True
        ):
            np.testing.assert_array_equal(a, b)
    assert all(a.provenance == b.provenance for a, b in zip(played, expected, strict=True))


def test_parameters_are_rows_of_a_table() -> None:
    """Worlds and constants are swept without compiling anew."""
    runs = [
        begin(
            rankers.FTPL(n_items=3, horizon=horizon),
            environments.FixedItems(users.bernoulli([0.2, high, 0.5]), measure="dcg"),
            ROUNDS,
            seed,
            1,
            False,
        )
        for horizon in (100, 200)
        for high in (0.8, 0.9)
        for seed in (1, 2)
    ]
    ((program, those),) = cuda.grouped(runs)
    batch = cuda.Batch(program, those)
    assert batch.rows.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.usefixtures("gpu")
def test_runs_that_need_much_memory_go_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_MOST_BYTES", 1)
    played = simulation.play_many(lambda: (one(), halves()), rounds=40, seeds=[1, 2], executor="cuda")
    expected = simulation.play_many(lambda: (one(), halves()), rounds=40, seeds=[1, 2])
    assert all(same(a, b) for a, b in zip(played, expected, strict=True))


@pytest.mark.parametrize(
    ("ranker", "reason"),
    [
        (rankers.PMED(n_items=10, n_positions=5), "PMED calls a solver between rounds"),
        (Delayed(rankers.Uniform(n_items=10, n_positions=5), delay=2), "Delayed is not made of kernels"),
    ],
)
def test_a_pair_that_cannot_is_refused_in_a_sentence(ranker: Any, reason: str) -> None:
    pairs = [(one(), halves()), (ranker, environments.named("gap-0.03"))]
    with pytest.raises(ValueError, match=f'^executor="cuda" cannot play this pair: {reason}$'):
        simulation.play_many(pairs, rounds=2, seeds=[1, 2], executor="cuda")


def test_requests_with_features_are_refused() -> None:
    queries = suite.WORLDS[-1].make(10)
    with pytest.raises(ValueError, match="QueryStream has requests with features"):
        simulation.play_many([(rankers.Uniform(), queries)], rounds=2, seeds=[1], executor="cuda")


@pytest.mark.skipif(importlib.util.find_spec("cuda") is not None, reason="there may be a GPU")
def test_without_a_gpu_the_extra_is_named() -> None:
    with pytest.raises(ImportError, match=re.escape('pip install "rankloop[cuda]"')):
        simulation.play_many(lambda: (one(), halves()), rounds=2, seeds=[1], executor="cuda")


@pytest.mark.usefixtures("gpu")
def test_compare_tune_and_the_suite_give_what_they_always_give() -> None:
    def compared(executor: str) -> Any:
        given = {"RTop1F": one, "FTPL": rankers.FTPL(n_items=6)}
        return simulation.compare(
            given, {"halves": halves}, rounds=50, seeds=2, points=3, executor=executor, progress=False
        )

    def tuned(executor: str) -> Any:
        ranges = {"blocks": Whole(1, 20)}
        return simulation.tune(
            one(), halves(), rounds=50, ranges=ranges, settings=2, executor=executor, progress=False
        )

    assert compared("cuda").summary().equals(compared("threads").summary())
    assert tuned("cuda").runs == tuned("threads").runs

    def submitted(executor: str) -> Any:
        names = "relevance-five-items", "documents-labels"
        worlds = [replace(world, quick=60) for world in suite.WORLDS if world.name in names]
        entries = [suite.Entry("RTop1F"), suite.Entry("ListNet")]
        return suite.run(entries, seeds=1, worlds=worlds, executor=executor, progress=False).results

    assert submitted("cuda").equals(submitted("threads"))


@pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="no compiler for GPUs is installed"
)
@pytest.mark.parametrize("name", ["RTop1F", "FTRLPBM"])
def test_nothing_is_fused_and_tables_are_not_constant_memory(name: str) -> None:
    code, entry = cuda.Program(benchmark.started(name, 0, 1, 1)).ptx((9, 0))
    assert f".entry {entry}(" in code
    assert "fma.rn" not in code
    assert "mul.rn.f64" in code
    assert ".const" not in code


def test_jobs_that_play_no_runs_are_refused() -> None:
    from rankloop.simulation.runs import Job, Kept, run_jobs

    with pytest.raises(ValueError, match="these jobs do other work"):
        run_jobs(print, [Job("a", "a", 1)], kept=Kept(None), executor="cuda")
