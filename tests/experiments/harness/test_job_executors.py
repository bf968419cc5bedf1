"""Jobs of an experiment in other processes: the same rows, resumed from what has ended, whoever ran it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rankloop import experiments
from rankloop.experiments.experiment import Job
from rankloop.experiments.harness import expected_time
from rankloop.experiments.harness.job_runner import run_jobs, unfinished
from rankloop.experiments.pbm_2022 import setting
from rankloop.experiments.top_2016 import setting
from rankloop.simulation.executors import Processes, pickling
from tests.experiments.toy import Toy


class Sent(Toy):
    """A toy that can be sent."""

    def __reduce__(self) -> Any:
        return type(self), ()


class Failing(Sent):
    def run(self, job: Job) -> pl.DataFrame:
        if job.seed == 2:
            raise ValueError("noise must be positive, got -1")
        return super().run(job)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with Processes(workers=2) as started:
        yield started


def test_the_rows_are_those_of_threads(tmp_path: Path, processes: Processes) -> None:
    here = run_jobs(Toy(), out=tmp_path / "here")
    there = run_jobs(Sent(), out=tmp_path / "there", executor=processes)
    assert (there.ran, there.resumed) == (6, 0)
    assert there.results.equals(here.results)
    assert run_jobs(Toy(), out=tmp_path / "there").resumed == 6
    assert run_jobs(Sent(), out=tmp_path / "here", executor=processes).resumed == 6


def test_what_ended_before_a_failure_is_kept(tmp_path: Path, processes: Processes) -> None:
    with pytest.raises(ValueError, match="noise must be positive") as caught:
        run_jobs(Failing(), out=tmp_path, executor=processes)
    assert caught.value.__notes__[-1] == "while running job 'seed 2' of toy"
    left = {job.name for job in unfinished(Sent(), Sent().jobs(quick=False), out=tmp_path)}
    assert "seed 2" in left
    assert "seed 6" not in left  # the costliest begins
    assert run_jobs(Sent(), out=tmp_path, executor=processes).results.equals(
        run_jobs(Toy(), out=tmp_path / "other").results
    )


def test_what_cannot_be_sent_is_named(tmp_path: Path, processes: Processes) -> None:
    with pytest.raises(ValueError, match=r"job 'seed 6' of toy cannot be sent.*lock"):
        run_jobs(Toy(), out=tmp_path, executor=processes)
    with pytest.raises(ValueError, match="executor must be"):
        run_jobs(Toy(), out=tmp_path, executor="cloud")


def test_every_experiment_can_be_sent() -> None:
    for name in experiments.names():
        experiment = experiments.get(name)
        assert len(pickling.dumps(experiment)) < 10_000
        assert pickling.loads(pickling.dumps(experiment)).label == experiment.label


def test_data_of_ones_own_is_known_where_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "shop.txt"
    file.write_text("".join(f"{n % 2} qid:{n // 2} 1:{n} 2:{-n}\n" for n in range(8)))
    own = setting.read_own("shop", file)
    sent = pickling.dumps(own)
    monkeypatch.setattr(own_data, "KNOWN", {})
    assert pickling.loads(sent).key == own.key
    assert setting.OWN_DATA[own.key].queries.n_queries == 4


def test_users_of_ones_own_log_are_known_where_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_log, "KNOWN", {})
    sent = pickling.dumps(setting.Users("shop@1", np.ones(10), np.ones(5), "told"))
    assert setting.OWN_USERS == {}
    assert pickling.loads(sent) is setting.OWN_USERS["shop@1"]


def test_the_time_of_every_experiment_is_recorded() -> None:
    for name in experiments.names():
        experiment = experiments.get(name)
        if experiment.missing() is None:
            jobs = experiment.jobs(quick=False)
            work = expected_time.expected(experiment, jobs, jobs, slowness=1.0)
            assert work is not None, f"python -m benchmarks.reproduce_times {name}"
            half = expected_time.expected(experiment, jobs, jobs[::2], slowness=2.0)
            assert half is not None
            assert 0 < half.seconds < 2 * work.seconds
    assert expected_time.expected(Toy(), Toy().jobs(quick=True), [], slowness=1.0) is None
