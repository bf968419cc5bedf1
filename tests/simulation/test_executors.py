"""Runs in other processes: the same traces and states, errors in words, lost workers, and nothing left behind."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from rankloop import environments, rankers, simulation
from rankloop.base import Environment, Ranker
from rankloop.simulation import executors
from rankloop.simulation.executors import chunk, dispatch, pickling
from tests import examples
from tests.simulation.dial import Dial, world
from tests.simulation.test_play_many import Failing, _pair, _same

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def processes() -> Iterator[executors.Processes]:
    with executors.Processes(workers=2) as started:
        yield started


class Stepwise(rankers.Uniform):
    """Plays step by step, and keeps something of its own beside the state."""

    fusable = False


def _pairs() -> list[tuple[Ranker, Environment]]:
    people = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="ndcg")
    return [_pair(), _pair("yandex-periodic-2"), (Stepwise(n_items=4), people), _pair()]


def _played(executor: Any) -> tuple[list[simulation.Trace], list[tuple[Ranker, Environment]]]:
    pairs = _pairs()
    traces = simulation.play_many(pairs, rounds=300, seeds=[4, 1, 1, 9], points=30, executor=executor)
    return traces, pairs


def _check_same(executor: Any) -> None:
    (wanted, stand), (found, others) = _played("threads"), _played(executor)
    assert all(map(_same, wanted, found))
    for pair, other in zip(stand, others, strict=True):
        for mine, theirs in zip(pair, other, strict=True):
            assert [part.tobytes() for part in mine.state] == [part.tobytes() for part in theirs.state]


def test_processes_give_what_threads_give(processes: executors.Processes) -> None:
    _check_same(processes)


class Slow:
    """An executor with nothing but `submit`, whose futures have nothing but `done` and `result`; the last is first."""

    def __init__(self) -> None:
        self.waiting: list[Slow.Call] = []

    class Call:
        def __init__(self, calls: list[Slow.Call], call: Callable[[], Any]) -> None:
            self.calls, self.call = calls, call

        def done(self) -> bool:
            return self.calls[-1] is self

        def result(self) -> Any:
            self.calls.pop()
            return self.call()

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Slow.Call:
        self.waiting.append(Slow.Call(self.waiting, lambda: fn(*args)))
        return self.waiting[-1]


def test_any_object_with_submit_will_do() -> None:
    _check_same(Slow())
    with ThreadPoolExecutor(3) as pool:
        _check_same(pool)


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
    assert all(map(_same, here, there))


def _everything() -> Iterator[Any]:
    for _, make in (*examples.every_ranker(), *examples.every_environment()):
        yield make()


def test_everything_is_sent_with_its_kernels_by_name() -> None:
    count = 0
    for one in _everything():
        copy = pickling.loads(pickling.dumps(one))
        assert type(copy) is type(one)
        for mine, theirs in zip(getattr(one, "kernels", ()), getattr(copy, "kernels", ()), strict=True):
            if isinstance(mine, Dispatcher):
                assert mine is theirs
                assert len(pickling.dumps(mine)) < 300  # a name, no code
                count += 1
    assert count > 100


def test_what_cannot_be_sent_is_named(processes: executors.Processes) -> None:
    ranker, people = _pair()
    ranker.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"the run of FTRLPBM with seed 7 cannot be sent.*lock.*threads"):
        simulation.play_many([_pair(), (ranker, people)], rounds=9, seeds=[1, 7], executor=processes)


@pytest.mark.parametrize("wrong", ["forks", None, 3, object()])
def test_an_executor_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"executor must be 'threads', 'processes', 'ray' or .*got"):
        simulation.play_many([_pair()], rounds=9, seeds=[1], executor=wrong)


def test_mistakes_are_named_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match=r"rounds must be.*got 0"):
        simulation.play_many([_pair()], rounds=0, seeds=[1], executor=Slow())
    with pytest.raises(ValueError, match="fused=True needs"):
        simulation.play_many(
            [(Stepwise(n_items=10, n_positions=5), _pair()[1])],
            rounds=9,
            seeds=[1],
            fused=True,
            executor=Slow(),
        )
    with pytest.raises(ValueError, match=r"workers must be.*got 0"):
        simulation.play_many([_pair()], rounds=9, seeds=[1], workers=0, executor="processes")
    with pytest.raises(ValueError, match="futures with add_done_callback or done, got bytes"):
        simulation.play_many([_pair()], rounds=9, seeds=[1], executor=_Eager())


class _Eager:
    def submit(self, fn: Callable[..., Any], /, *args: Any) -> bytes:
        return b""


def test_the_error_of_a_job_is_told_with_its_name(processes: executors.Processes) -> None:
    bad = Failing(n_items=10, n_positions=5), environments.named("yandex")
    with pytest.raises(RuntimeError, match="no more") as found:
        simulation.play_many([bad, _pair()], rounds=30, seeds=[3, 1], executor=processes)
    assert "the run of Failing with seed 3" in found.value.__notes__[-1]
    assert 'raise RuntimeError("no more")' in found.value.__notes__[0]  # where it happened, there
    assert processes.submit(divmod, 7, 2).result() == (3, 1)


def _run(work: Callable[[Any], Any], jobs: list[Any], executor: Any, workers: int = 2) -> list[Any]:
    found: list[Any] = []
    names = [f"job {place}" for place in range(len(jobs))]
    costs = [1.0] * len(jobs)
    dispatch.Dispatch(work, jobs, names=names, costs=costs, executor=executor, workers=workers).run(
        lambda place, result, seconds: found.append((place, result))
    )
    assert len(found) == len({place for place, _ in found})
    return [result for _, result in sorted(found)]


def _die_once(job: tuple[str, int]) -> int:
    flag, number = Path(job[0]), job[1]
    if number == 5 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def test_a_lost_worker_is_replaced_and_its_job_sent_again(
    processes: executors.Processes, tmp_path: Path
) -> None:
    jobs = [(str(tmp_path / "flag"), number) for number in range(12)]
    assert _run(_die_once, jobs, processes) == [number * number for number in range(12)]
    assert (tmp_path / "flag").exists()


def _die(job: int) -> int:
    if job == 3:
        os._exit(9)
    return job


def test_a_job_that_always_kills_its_worker_is_given_up(
    processes: executors.Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dispatch.LOSSES == 3
    monkeypatch.setattr(dispatch, "LOSSES", 1)  # each worker takes a second or two to start
    with pytest.raises(executors.WorkerLost, match=r"job 3 has lost its worker 2 times.*exit code 9.*memory"):
        _run(_die, [0, 1, 2, 3, 4], processes)
    assert _run(_die, [0, 1], processes) == [0, 1]


def test_a_broken_pool_of_others_is_told() -> None:
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(executors.WorkerLost, match="ProcessPoolExecutor is broken and takes no more jobs"),
    ):
        _run(_die, [3], pool, workers=1)


def test_chunks_hold_a_second_of_work_once_the_pace_is_known() -> None:
    one = dispatch.Dispatch(
        abs,
        range(1000),
        names=[""] * 1000,
        costs=[2.0] * 500 + [100.0] * 500,
        executor=Slow(),
        workers=2,
    )
    assert one._next_chunk() == [0]
    one.pace = 0.01  # seconds for a unit: fifty jobs of two units are a second
    assert one._next_chunk() == list(range(1, 51))
    one.workers = 1000  # where many return at once, chunks are longer
    assert len(one._next_chunk()) == 449 + 1
    assert len(one._next_chunk()) == 10
    one.pace = 5.0
    assert len(one._next_chunk()) == 1


def test_many_small_jobs_travel_together() -> None:
    sent: list[int] = []

    class Counting(Slow):
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Slow.Call:
            sent.append(len(args[0]))
            return super().submit(fn, *args)

    assert _run(abs, list(range(-400, 0)), Counting()) == list(range(400, 0, -1))
    assert len(sent) < 20


def test_a_worker_with_other_versions_is_refused() -> None:
    other = pickling.dumps((chunk.versions() | {"numpy": "1.0"}, []))
    with pytest.raises(RuntimeError, match=r"a worker has numpy 1\.0, here is .*install the same"):
        chunk.unpack(other)


class Odd(Exception):
    """An error that cannot be made again from its message."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def _odd(job: int) -> int:
    raise Odd(job, job)


def test_an_error_that_cannot_be_sent_is_told_in_words() -> None:
    with pytest.raises(RuntimeError, match="Odd: 1 and 1"):
        _run(_odd, [1], Slow())


def test_a_result_that_cannot_be_sent_is_told(processes: executors.Processes) -> None:
    with pytest.raises(ValueError, match="the result of a job cannot be sent"):
        _run(_lock, [1], processes)


def _lock(job: int) -> Any:
    return threading.Lock()


def test_closed_processes_take_no_calls() -> None:
    one = executors.Processes(workers=1)
    one.close()
    with pytest.raises(RuntimeError, match="closed"):
        one.submit(abs, 1)


_SCRIPT = """
import signal, os
from rankloop import environments, rankers, simulation
from rankloop.simulation import executors
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
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
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            worker = int(process.stdout.readline().split()[1])
            assert _alive(worker)
            time.sleep(0.5)
            process.send_signal(how)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()  # should it still be there
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
    simulation.play_many(_pair, rounds=1_000, seeds=range(3), progress=True, executor=processes)
    assert "rounds [" in err.getvalue()
    assert "rounds/s" in err.getvalue()
