"""One experiment from jobs to verdict: run anywhere, resumed from what has ended, and written whole."""

from __future__ import annotations

import io
import json
import pickle
import threading
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from rankloop import experiments
from rankloop.experiments.experiment import Claim, Job
from rankloop.experiments.harness.report import write_report
from rankloop.experiments.harness.reproduce import reproduce, run_jobs, unfinished
from rankloop.simulation import executors, runs
from rankloop.simulation.executors import Processes
from tests.experiments.toy import Toy


class Counting(Toy):
    listed = 0

    def jobs(self, *, quick: bool) -> list[Job]:
        self.listed += 1
        return super().jobs(quick=quick)


def test_the_jobs_are_listed_once(tmp_path: Path) -> None:
    experiment = Counting()
    reproduce(experiment, out=tmp_path, quick=True)
    assert experiment.listed == 1
    jobs = experiment.jobs(quick=True)
    verdict = reproduce(experiment, out=tmp_path, quick=True, jobs=jobs)  # of who has listed them
    assert (experiment.listed, verdict.resumed) == (2, 3)


def test_the_record_tells_what_was_run_and_what_was_found(tmp_path: Path) -> None:
    verdict = reproduce(Toy(truth=False), out=tmp_path, quick=True)
    record = json.loads((tmp_path / "toy" / "claims.json").read_text(encoding="utf-8"))
    assert not verdict.holds
    assert not record["holds"]
    assert [claim["holds"] for claim in record["claims"]] == [True, False]
    assert (record["settings"], record["seeds"], record["jobs"]) == ({"rounds": 50}, [1, 2, 3], 3)
    assert record["command"] == "rankloop reproduce toy --quick"
    assert [picture["name"] for picture in record["figures"]] == ["falling"]
    assert len(record["summary"]) == 3
    assert pl.read_parquet(tmp_path / "toy" / "results.parquet").height == 150


def test_two_claims_of_one_name_are_refused(tmp_path: Path) -> None:
    class Twice(Toy):
        def claims(self, results: pl.DataFrame, *, quick: bool) -> list[Claim]:
            return 2 * super().claims(results, quick=quick)

    with pytest.raises(ValueError, match="'toy' has two claims of the same name"):
        reproduce(Twice(), out=tmp_path, quick=True)


def test_claims_may_come_one_by_one(tmp_path: Path) -> None:
    class Lazy(Toy):
        def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:  # type: ignore[override]
            yield from super().claims(results, quick=quick)

    assert len(reproduce(Lazy(), out=tmp_path, quick=True).claims) == 2


def test_figures_are_the_same_byte_for_byte_when_made_again(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        reproduce(Toy(), out=tmp_path / folder, quick=True)
    for ending in ("png", "svg"):
        one, two = (
            (tmp_path / folder / "toy" / f"falling.{ending}").read_bytes() for folder in ("one", "two")
        )
        assert one == two


def test_figures_for_a_paper(tmp_path: Path) -> None:
    reproduce(Toy(), out=tmp_path, quick=True, pdf=True, titles=False)
    folder = tmp_path / "toy"
    assert (folder / "falling.pdf").read_bytes().startswith(b"%PDF")
    assert 'id="caption"' not in (folder / "falling.svg").read_text(encoding="utf-8")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    (picture,) = json.loads((folder / "claims.json").read_text(encoding="utf-8"))["figures"]
    assert picture["caption_share"] == 0.0
    assert page.count(f"<figcaption>{escape(picture['caption'])}</figcaption>") == 1


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
    monkeypatch.setattr(runs, "code_fingerprint", lambda: "changed")
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
        assert len(executors.dumps(experiment)) < 10_000
        assert pickle.loads(executors.dumps(experiment)).name == name


def test_left_overs_are_swept_and_finished_files_stay(tmp_path: Path) -> None:
    reproduce(Toy(), out=tmp_path, quick=True)
    before = files_under(tmp_path)
    for left in ("jobs/.ab.parquet.1.part", ".claims.json.1.part"):
        (tmp_path / "toy" / left).write_text("x")
    reproduce(Toy(), out=tmp_path, quick=True)
    assert files_under(tmp_path) == before
