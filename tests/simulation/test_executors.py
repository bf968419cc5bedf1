"""Runs elsewhere: the same traces and states, errors in words, and nothing left behind."""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest

from rankloop import environments, rankers, simulation
from rankloop.base import Environment, Ranker
from rankloop.kernels.jit import Kernel
from rankloop.simulation import executors
from rankloop.simulation.executors import Dispatch
from tests import examples
from tests.simulation.dial import Dial, world
from tests.simulation.interrupt import interrupted
from tests.simulation.test_play import Failing, clicked_pair, same


@pytest.fixture(scope="module")
def processes() -> Iterator[executors.Processes]:
    with executors.Processes(workers=2) as started:
        yield started


class Stepwise(rankers.Uniform):
    """Plays step by step, and keeps something of its own beside the state."""

    fusable = False


def _pairs() -> list[tuple[Ranker, Environment]]:
    environment = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="ndcg")
    return [
        clicked_pair(),
        clicked_pair("yandex-periodic-2"),
        (Stepwise(n_items=4), environment),
        clicked_pair(),
    ]


def _played(executor: Any) -> tuple[list[simulation.Trace], list[tuple[Ranker, Environment]]]:
    pairs = _pairs()
    traces = simulation.play_many(pairs, rounds=300, seeds=[4, 1, 1, 9], points=30, executor=executor)
    return traces, pairs


def _check_same(executor: Any) -> None:
    (wanted, stand), (found, others) = _played("threads"), _played(executor)
    assert all(map(same, wanted, found))
    for pair, other in zip(stand, others, strict=True):
        for mine, theirs in zip(pair, other, strict=True):
            assert [part.tobytes() for part in mine.state] == [part.tobytes() for part in theirs.state]


def test_processes_give_what_threads_give(processes: executors.Processes) -> None:
    _check_same(processes)


def test_any_executor_will_do() -> None:
    with ThreadPoolExecutor(3) as pool:
        _check_same(pool)


def test_dask_will_do_as_it_is() -> None:
    distributed = pytest.importorskip("distributed")
    quiet: dict[str, Any] = {"processes": False, "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, **quiet) as cluster,
        distributed.Client(cluster) as client,
    ):
        _check_same(client.get_executor())


def test_a_search_gives_the_same_answer(processes: executors.Processes, tmp_path: Path) -> None:
    told: dict[str, Any] = {"rounds": 30, "settings": 4, "final_runs": 2}
    wanted = simulation.tune(Dial(), world(), **told)
    found = simulation.tune(Dial(), world(), executor=processes, folder=tmp_path / "search", **told)
    assert (found.runs, found.chosen, found.tried) == (wanted.runs, wanted.chosen, wanted.tried)
    # Another executor goes on from what this one has finished.
    again = simulation.tune(Dial(), world(), executor=_Eager(), folder=tmp_path / "search", **told)
    assert again.runs == wanted.runs


def test_what_a_notebook_defines_is_sent_by_value(processes: executors.Processes) -> None:
    class Mine(rankers.Uniform):
        fusable = False

    def make() -> tuple[Ranker, Environment]:
        return Mine(n_items=10, n_positions=5), environments.named("yandex")

    here, there = (
        simulation.play_many(make, rounds=20, seeds=[1], executor=where) for where in ("threads", processes)
    )
    assert all(map(same, here, there))


def _everything() -> Iterator[Any]:
    for _, make in (*examples.every_ranker(), *examples.every_environment()):
        yield make()


def test_everything_is_sent_with_its_kernels_by_name() -> None:
    count = 0
    for one in _everything():
        copy = pickle.loads(executors.dumps(one))
        assert type(copy) is type(one)
        for mine, theirs in zip(getattr(one, "kernels", ()), getattr(copy, "kernels", ()), strict=True):
            if isinstance(mine, Kernel):
                assert mine is theirs
                assert len(executors.dumps(mine)) < 300  # a name, no code
                count += 1
    assert count > 100


def test_what_cannot_be_sent_is_named(processes: executors.Processes) -> None:
    ranker, environment = clicked_pair()
    ranker.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"the run of FTRLPBM with seed 7 cannot be sent.*lock.*threads"):
        simulation.play_many(
            [clicked_pair(), (ranker, environment)], rounds=9, seeds=[1, 7], executor=processes
        )


@pytest.mark.parametrize("wrong", ["forks", None, 3, object()])
def test_an_executor_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"executor must be 'threads', 'processes', 'ray', 'cuda' or .*got"):
        simulation.play_many([clicked_pair()], rounds=9, seeds=[1], executor=wrong)


def test_mistakes_are_named_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match=r"rounds must be.*got 0"):
        simulation.play_many([clicked_pair()], rounds=0, seeds=[1], executor=_Eager())
    with pytest.raises(ValueError, match="fused=True needs"):
        simulation.play_many(
            [(Stepwise(n_items=10, n_positions=5), clicked_pair()[1])],
            rounds=9,
            seeds=[1],
            fused=True,
            executor=_Eager(),
        )
    with pytest.raises(ValueError, match=r"workers must be.*got 0"):
        simulation.play_many([clicked_pair()], rounds=9, seeds=[1], workers=0, executor="processes")
    with pytest.raises(ValueError, match="futures with add_done_callback, got bytes"):
        simulation.play_many([clicked_pair()], rounds=9, seeds=[1], executor=_Eager())


class _Eager:
    def submit(self, fn: Callable[..., Any], /, *args: Any) -> bytes:
        return b""


def test_the_error_of_a_job_is_told_with_its_name(processes: executors.Processes) -> None:
    bad = Failing(n_items=10, n_positions=5), environments.named("yandex")
    with pytest.raises(RuntimeError, match="no more") as found:
        simulation.play_many([bad, clicked_pair()], rounds=30, seeds=[3, 1], executor=processes)
    assert "the run of Failing with seed 3" in found.value.__notes__[-1]
    assert 'raise RuntimeError("no more")' in found.value.__notes__[0]  # where it happened, there
    assert processes.submit(divmod, 7, 2).result() == (3, 1)


def _run(work: Callable[[Any], Any], jobs: list[Any], executor: Any, workers: int = 2) -> list[Any]:
    found: list[Any] = []
    names = [f"job {place}" for place in range(len(jobs))]
    Dispatch(work, jobs, names=names, executor=executor, workers=workers).run(
        lambda place, result, seconds: found.append((place, result))
    )
    assert len(found) == len({place for place, _ in found})
    return [result for _, result in sorted(found)]


def _die(job: int) -> int:
    if job == 3:
        os._exit(9)
    return job


def test_a_worker_that_dies_is_told_with_its_job() -> None:
    with executors.Processes(workers=1) as processes:
        with pytest.raises(executors.WorkerLost, match=r"job \d has lost its worker: .*memory"):
            _run(_die, [0, 3, 4], processes)
        with pytest.raises(executors.WorkerLost, match="Processes is broken and takes no more jobs"):
            _run(_die, [0], processes)


def test_a_worker_with_other_versions_is_refused() -> None:
    other = executors.dumps((executors.versions() | {"numpy": "1.0"}, (None, None, 0.0)))
    with pytest.raises(RuntimeError, match=r"a worker has numpy 1\.0, here is .*install the same"):
        executors.unpack(other)


class Odd(Exception):
    """An error that cannot be made again from its message."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def _odd(job: int) -> int:
    raise Odd(job, job)


def test_an_error_that_cannot_be_sent_is_told_in_words() -> None:
    # Once Dask is imported, such an error can be sent after all.
    with ThreadPoolExecutor(1) as pool, pytest.raises((RuntimeError, Odd), match="1 and 1"):
        _run(_odd, [1], pool)


def test_a_result_that_cannot_be_sent_is_told(processes: executors.Processes) -> None:
    with pytest.raises(ValueError, match="the result of a job cannot be sent"):
        _run(_lock, [1], processes)


def _lock(job: int) -> Any:
    return threading.Lock()


def test_closed_processes_take_no_calls() -> None:
    one = executors.Processes(workers=1)
    one.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        one.submit(abs, 1)


_SCRIPT = """
import os
from rankloop import environments, rankers, simulation
from rankloop.simulation import executors
def make():
    return rankers.Uniform(n_items=10, n_positions=5), environments.named("yandex")
try:
    with executors.Processes(workers=1) as executor:
        simulation.play_many(make, rounds=10, seeds=[1], executor=executor)
        print("worker", executor.submit(os.getpid).result(), flush=True)
        simulation.play_many(make, rounds=10**10, seeds=[1, 2], points=10, executor=executor)
except KeyboardInterrupt:
    print("left", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_stays_behind(how: signal.Signals) -> None:
    # A script without `if __name__ == "__main__"`, and classes and functions of its own.
    worker = 0

    def begun(output: IO[str]) -> None:
        nonlocal worker
        worker = int(output.readline().split()[1])
        assert _alive(worker)
        time.sleep(0.5)

    out, err, _ = interrupted(_SCRIPT, begun, by=how)
    if how is signal.SIGINT:
        assert (out, err) == ("left\n", "")
        assert not _alive(worker)
    until = time.monotonic() + 60
    while _alive(worker):
        assert time.monotonic() < until
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_bar_moves(monkeypatch: pytest.MonkeyPatch, processes: executors.Processes) -> None:
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    # Long enough that two runs do not end at the same look at the executor, which says nothing about the speed.
    simulation.play_many(clicked_pair, rounds=100_000, seeds=range(5), progress=True, executor=processes)
    assert "rounds [" in err.getvalue()
    assert "rounds/s" in err.getvalue()
