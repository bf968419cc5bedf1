from __future__ import annotations

import io
import threading
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from rankloop.experiments.experiment import Job
from rankloop.experiments.harness import job_runner
from rankloop.experiments.harness.job_runner import run_jobs
from tests.experiments.toy import Toy


def interrupted_at(name: str) -> Toy:
    def before(job: Job) -> None:
        if job.name == name:
            raise KeyboardInterrupt

    return Toy(before=before)


def files_under(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_rows_come_in_the_order_of_the_jobs_whatever_finished_first(tmp_path: Path) -> None:
    outcome = run_jobs(Toy(), out=tmp_path, workers=3)
    assert outcome.results["seed"].unique(maintain_order=True).to_list() == [1, 2, 3, 4, 5, 6]
    assert outcome.results.columns == ["job", "seed", "round", "regret"]
    assert (outcome.ran, outcome.resumed) == (6, 0)


def test_threads_and_one_thread_give_the_same_rows(tmp_path: Path) -> None:
    alone = run_jobs(Toy(), out=tmp_path / "alone", workers=1).results
    assert run_jobs(Toy(), out=tmp_path / "many", workers=4).results.equals(alone)


def test_dear_jobs_start_first(tmp_path: Path) -> None:
    toy = Toy()
    run_jobs(toy, out=tmp_path, workers=1)
    assert toy.ran == [f"seed {seed}" for seed in (6, 5, 4, 3, 2, 1)]


def test_an_interrupted_run_resumes_and_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_jobs(interrupted_at("seed 3"), out=tmp_path, workers=1)
    kept = files_under(tmp_path)
    assert len(kept) == 3
    assert all(name.endswith(".parquet") and not name.startswith(".") for name in kept)

    toy = Toy()
    outcome = run_jobs(toy, out=tmp_path, workers=1)
    assert (outcome.ran, outcome.resumed) == (3, 3)
    assert sorted(toy.ran) == ["seed 1", "seed 2", "seed 3"]
    assert outcome.results.equals(run_jobs(Toy(), out=tmp_path / "other").results)


def test_a_job_that_ends_after_the_interruption_writes_nothing(tmp_path: Path) -> None:
    gate, ended = threading.Event(), threading.Event()

    def before(job: Job) -> None:
        if job.name == "seed 6":
            gate.wait(10)
            ended.set()
        elif job.name == "seed 5":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs(Toy(before=before), out=tmp_path, workers=2)
    gate.set()
    assert ended.wait(10)
    assert files_under(tmp_path) == []


def test_fresh_runs_everything_again(tmp_path: Path) -> None:
    run_jobs(Toy(), out=tmp_path)
    assert run_jobs(Toy(), out=tmp_path, fresh=True).resumed == 0
    assert run_jobs(Toy(), out=tmp_path).resumed == 6


def test_the_quick_version_resumes_from_the_jobs_it_shares(tmp_path: Path) -> None:
    run_jobs(Toy(), out=tmp_path, quick=True)
    outcome = run_jobs(Toy(), out=tmp_path)
    assert (outcome.ran, outcome.resumed) == (3, 3)


def test_rows_of_other_code_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_jobs(Toy(), out=tmp_path)
    monkeypatch.setattr(job_runner, "code_fingerprint", lambda: "changed")
    assert run_jobs(Toy(), out=tmp_path).ran == 6


def test_rows_of_another_version_are_made_again(tmp_path: Path) -> None:
    class Newer(Toy):
        version = 2

    run_jobs(Toy(), out=tmp_path)
    assert run_jobs(Newer(), out=tmp_path).ran == 6


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    run_jobs(Toy(), out=tmp_path)
    broken = next((tmp_path / "toy" / "jobs").iterdir())
    broken.write_bytes(broken.read_bytes()[:40])
    assert run_jobs(Toy(), out=tmp_path).ran == 1


def test_a_failing_job_says_which_it_was(tmp_path: Path) -> None:
    def before(job: Job) -> None:
        if job.name == "seed 4":
            raise ValueError("noise must be positive, got -1")

    with pytest.raises(ValueError, match="noise must be positive") as caught:
        run_jobs(Toy(before=before), out=tmp_path, workers=1)
    assert caught.value.__notes__ == ["while running job 'seed 4' of toy"]


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_only(tmp_path: Path, terminal: bool) -> None:
    run_jobs(Toy(), out=tmp_path, quick=True)
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, width=120)
    run_jobs(Toy(), out=tmp_path, console=console)
    shown = written.getvalue()
    assert bool(shown) == terminal
    if terminal:
        assert "3 of 6 jobs" in shown
        assert "3/3 jobs" in shown


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        run_jobs(Toy(), out=tmp_path, workers=0)


def test_the_identity_of_a_job_is_stable_and_ignores_its_cost() -> None:
    job = Job(name="a", seed=1, settings={"rounds": 10, "noise": 0.25})
    same = Job(name="a", seed=1, settings={"noise": 0.25, "rounds": 10}, cost=7.0)
    assert job.identity(experiment="toy", version=1) == same.identity(experiment="toy", version=1)
    # Pinned: a change of this value throws away everybody's finished jobs.
    assert job.identity(experiment="toy", version=1) == "ca3c99f455cc7d53"
    with pytest.raises(ValueError, match="settings of job 'b' are not plain JSON"):
        Job(name="b", seed=1, settings={"x": object()}).identity(experiment="toy", version=1)


def test_results_can_be_read_back(tmp_path: Path) -> None:
    run_jobs(Toy(), out=tmp_path)
    frames = [pl.read_parquet(path) for path in (tmp_path / "toy" / "jobs").glob("*.parquet")]
    assert {frame.height for frame in frames} == {50}
