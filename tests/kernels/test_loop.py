"""The compiled loop: by name or by argument it plays the same, threads may share it, old code is dropped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import rankloop
from rankloop import environments, rankers, simulation
from rankloop.compiled import EnvironmentKernels, RankerKernels
from rankloop.kernels import loop as fusing
from rankloop.kernels.loop import play_rounds

MATRIX = np.random.default_rng(1).integers(0, 2, (300, 5))


def _pair() -> tuple[rankers.FTPL, environments.FixedItems]:
    return rankers.FTPL(n_items=5, horizon=300), environments.FixedItems(MATRIX, measure="dcg")


def _forget_loops() -> None:
    fusing._fused.cache_clear()
    for name in [name for name in sys.modules if name.startswith("rankloop_loop_")]:
        del sys.modules[name]


def _end(ranker: Any, people: Any, trace: simulation.Trace) -> list[Any]:
    return [trace.value, trace.total, trace.regret, trace.explored, *ranker.state, *people.state]


def test_by_name_and_by_argument_play_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ranker, people = _pair()
    by_name = _end(ranker, people, simulation.play(ranker, people, rounds=300, seed=3))
    monkeypatch.setattr(fusing, "fused", lambda *kernels: lambda *rest: play_rounds(*kernels, *rest))
    ranker, people = _pair()
    by_argument = _end(ranker, people, simulation.play(ranker, people, rounds=300, seed=3))
    for named, passed in zip(by_name, by_argument, strict=True):
        np.testing.assert_array_equal(named, passed)


def test_a_loop_by_name_takes_no_kernels_and_is_kept_on_disk() -> None:
    ranker, people = _pair()
    loop: Any = fusing.fused(*ranker.kernels, *people.kernels)
    assert loop is fusing.fused(*ranker.kernels, *people.kernels)
    assert loop.py_func.__code__.co_argcount == play_rounds.py_func.__code__.co_argcount - 6  # type: ignore[attr-defined]
    assert Path(loop.py_func.__code__.co_filename).is_relative_to(fusing.CACHE)


def test_kernels_without_a_name_of_their_own_are_passed_as_arguments() -> None:
    ranker, people = _pair()
    made_here = numba.njit(ranker.kernels.learn.py_func)
    loop: Any = fusing.fused(ranker.kernels.rank, made_here, *people.kernels)
    assert loop.func is play_rounds
    assert loop.args == (ranker.kernels.rank, made_here, *people.kernels)


def test_nowhere_to_write_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(fusing, "_write_and_import", refuse)
    _forget_loops()
    try:
        ranker, people = _pair()
        assert fusing.fused(*ranker.kernels, *people.kernels).func is play_rounds  # type: ignore[attr-defined]
    finally:
        _forget_loops()


def test_a_kernel_of_another_file_is_another_loop() -> None:
    ranker, people = _pair()
    other = rankers.Uniform(n_items=5)
    kernels = RankerKernels(other.kernels.rank, other.kernels.learn)
    assert fusing.fused(*kernels, *people.kernels) is not fusing.fused(*ranker.kernels, *people.kernels)
    assert isinstance(people.kernels, EnvironmentKernels)


@pytest.fixture
def _nervous_threads() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_nervous_threads")
def test_many_threads_may_ask_for_a_loop_at_once() -> None:
    # Runs with different seeds share the machine as threads, and each begins by asking for its loop.
    ranker, people = _pair()
    kernels = (*ranker.kernels, *people.kernels)
    fusing.fused(*kernels)
    failures: list[Exception] = []

    def ask(together: threading.Barrier) -> None:
        together.wait()
        try:
            fusing.fused(*kernels)
        except Exception as failure:
            failures.append(failure)

    for _ in range(20):
        _forget_loops()
        together = threading.Barrier(8)
        threads = [threading.Thread(target=ask, args=(together,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


TINY = """
from typing import NamedTuple

import numpy as np
from rankloop import rankers, simulation
from rankloop.compiled import CompiledEnvironment, EnvironmentKernels
from rankloop.kernels.jit import kernel


class Counted(NamedTuple):
    t: np.ndarray


@kernel
def arrive(params, state, key):
    state.t[0] += 1


@kernel
def respond(params, state, items, key, revealed):
    for position in range(len(revealed)):
        revealed[position] = 0.0


@kernel
def value(params, state, items):
    return items[0] * 1.0


@kernel
def hindsight(params, state):
    return 0.0


class TopItem(CompiledEnvironment):
    reveals, measure, is_loss, n_items, n_positions = "relevance", "number of the top item", False, 5, 5
    kernels, params = EnvironmentKernels(arrive, respond, value, hindsight), ()

    def __init__(self):
        self.state = Counted(np.zeros(1, np.int64))

    def best(self, context=None):
        raise NotImplementedError

    def start_counting(self):
        pass


def story():
    trace = simulation.play(rankers.Uniform(n_items=5), TopItem(), rounds=99, seed=1)
    return "".join(str(int(top)) for top in trace.value)
"""


def test_an_edited_kernel_is_compiled_anew_and_any_other_is_not(tmp_path: Path) -> None:
    package = tmp_path / "rankloop"
    without = shutil.ignore_patterns("__pycache__", "experiments")
    shutil.copytree(Path(rankloop.__file__).parent, package, ignore=without)
    tiny = tmp_path / "tiny.py"
    tiny.write_text(TINY)
    # numba is told nothing about where to keep code: the package's own folder is what is tested
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}

    def story() -> str:
        run = [sys.executable, "-c", "import tiny; print(tiny.story())"]
        with_path = clean | {"PYTHONPATH": str(tmp_path)}
        return subprocess.run(run, env=with_path, capture_output=True, text=True, check=True).stdout.strip()

    def kept() -> set[Path]:
        return set(tmp_path.rglob("*.nbc"))

    first, files = story(), kept()
    assert files
    assert story() == first
    assert kept() == files, "a second process compiled again"

    # The ranking kernel's own file stays as it is, so numba by itself would go on using the old shuffle in it.
    source = package / "kernels" / "random.py"
    source.write_text(source.read_text().replace("0x9E3779B97F4A7C15", "0x9E3779B97F4A7C17"))
    second = story()
    assert second != first

    tiny.write_text(TINY.replace("items[0] * 1.0", "9.0 - items[0]"))
    assert story() == "".join(str(9 - int(top)) for top in second)
