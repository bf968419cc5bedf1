from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import fsspec
import pytest
from typer.testing import CliRunner

from rankloop import __version__, cli, experiments, measures, rankers
from rankloop.experiments.harness import expected_time
from tests.experiments.toy import Toy

ROOT = Path(__file__).parents[2]
runner = CliRunner()


class Sound(Toy):
    name = "toy-sound"


class Broken(Toy):
    name = "toy-broken"

    def __init__(self) -> None:
        super().__init__(truth=False)


class Lacking(Toy):
    name = "toy-lacking"

    def __init__(self) -> None:
        super().__init__(lack="there is no data folder")


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {toy.name: f"{__name__}:{toy.__name__}" for toy in (Sound, Broken, Lacking)}
    monkeypatch.setattr(experiments, "_KNOWN", known)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def test_a_sound_experiment_tells_its_claims_and_names_the_report(tmp_path: Path) -> None:
    result = runner.invoke(
        cli.app, ["reproduce", "toy-sound", "--quick", "--out", str(tmp_path), "--jobs", "2"]
    )
    assert result.exit_code == 0
    assert "toy-sound: 2 of 2 claims hold (3 jobs," in result.stdout
    assert "holds   it is <true>: 1 [true, worded after a run]" in result.stdout
    assert f"Report: {tmp_path / 'report.html'}" in result.stdout
    assert (tmp_path / "report.html").exists()


def test_nothing_is_said_about_progress_when_nobody_watches(tmp_path: Path) -> None:
    result = runner.invoke(cli.app, ["reproduce", "toy-sound", "--out", str(tmp_path)])
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_a_broken_claim_exits_with_1_and_is_still_reported(tmp_path: Path) -> None:
    result = runner.invoke(cli.app, ["reproduce", "all", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "toy-broken: 1 of 2 claims hold" in result.stdout
    assert "BROKEN  it is <true>: 1" in result.stdout
    assert "toy-lacking: skipped, there is no data folder" in result.stdout
    assert "3 of 4 claims hold" in (tmp_path / "report.html").read_text()


def test_lacking_data_is_no_failure(tmp_path: Path) -> None:
    result = runner.invoke(cli.app, ["reproduce", "toy-lacking", "--out", str(tmp_path)])
    assert result.exit_code == 0


def test_a_second_run_resumes_and_a_fresh_one_does_not(tmp_path: Path) -> None:
    command = ["reproduce", "toy-sound", "--out", str(tmp_path)]
    runner.invoke(cli.app, command)
    assert "6 jobs, 6 of them resumed" in runner.invoke(cli.app, command).stdout
    assert "resumed" not in runner.invoke(cli.app, [*command, "--fresh"]).stdout


def test_an_unknown_experiment_lists_the_known_ones_before_any_is_run(tmp_path: Path) -> None:
    result = runner.invoke(cli.app, ["reproduce", "toy-sound", "toy", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert (
        result.stderr == "error: no experiment 'toy'; there are toy-sound, toy-broken, toy-lacking, and all\n"
    )
    assert not (tmp_path / "out").exists()


def test_ctrl_c_ends_in_words_and_leaves_whole_files(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import time
        from rankloop import experiments
        from rankloop.__main__ import main
        from tests.experiments.toy import Toy

        class Slow(Toy):
            def run(self, job):
                if job.seed < 6:
                    time.sleep(60)
                return super().run(job)

        experiments.names = lambda: ["toy"]
        experiments.get = lambda name, **_: Slow()
        main()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "reproduce", "toy", "--out", str(tmp_path), "--jobs", "2"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("toy/jobs/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "finished jobs are kept, the same command goes on from there." in told
    assert "Traceback" not in told
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.suffix for path in files] == [".parquet"]


def test_list_shows_everything_with_a_description() -> None:
    result = runner.invoke(cli.app, ["list"])
    assert result.exit_code == 0
    listed = re.findall(r"^  (\S+)  +\S", result.stdout, re.M)
    for name in (*rankers.__all__, "noisy-halves", "jester", "sum_loss", "toy-sound"):
        assert name in listed
    assert {name.split("[")[0].split("@")[0] for name in listed} >= set(measures.names())


def test_list_as_json() -> None:
    everything = json.loads(runner.invoke(cli.app, ["list", "--json"]).stdout)
    assert set(everything) == {"rankers", "environments", "measures", "experiments"}
    only = json.loads(runner.invoke(cli.app, ["list", "rankers", "--json"]).stdout)
    assert only == everything["rankers"]
    assert all(only.values())


def test_simulate_tells_the_same_story_twice() -> None:
    command = ["simulate", "--rounds", "2e3", "--items", "4", "--seed", "3", "--json"]
    first, second = (json.loads(runner.invoke(cli.app, command).stdout) for _ in range(2))
    for told in (first, second):
        del told["seconds"]
    assert first == second
    assert first["rounds"] == 2000
    assert 0 < first["average_regret"] < 1
    assert 0 < first["exploration_share"] < 1


def test_simulate_in_words() -> None:
    result = runner.invoke(cli.app, ["simulate", "--ranker", "Uniform", "--rounds", "1000"])
    assert result.exit_code == 0
    assert re.search(r"^average regret +0\.\d{4}$", result.stdout, re.M)
    assert "\x1b" not in result.stdout
    assert result.stderr == ""


def test_simulate_takes_arguments_of_the_ranker() -> None:
    command = ["simulate", "--ranker", "RTop1F", "--rounds", "1000", "--items", "4", "--json"]
    one = json.loads(runner.invoke(cli.app, command).stdout)
    two = json.loads(runner.invoke(cli.app, [*command, "--set", "k=2"]).stdout)
    assert two["exploration_share"] < one["exploration_share"]


@pytest.mark.parametrize(
    "environment", ["bernoulli", "switching", "adversary-ndcg", "adversary-map", "adversary-auc"]
)
def test_simulate_plays_every_simulated_environment(environment: str) -> None:
    command = [
        "simulate",
        "--environment",
        environment,
        "--ranker",
        "Uniform",
        "--items",
        "4",
        "--rounds",
        "100",
    ]
    assert runner.invoke(cli.app, command).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--ranker", "RTop2F"], "ranker must be one of .*RTop1F.*got 'RTop2F'"),
        (["--environment", "mars"], "environment must be one of .*noisy-halves.*movielens.*, got 'mars'"),
        (["--measure", "mrr"], "measure 'mrr' is not known; known are sum_loss"),
        (["--measure", "ndcg"], "measure 'ndcg' cannot be learnt"),
        (
            ["--rounds", "many"],
            "rounds must be a whole number of at least 1, such as 20000 or 1e5, got 'many'",
        ),
        (["--rounds", "inf"], "got 'inf'"),
        (["--items", "0"], "n_items must be"),
        (["--set", "k"], "--set takes KEY=VALUE, got 'k'"),
        (["--set", "speed=3"], "TopFTRL has no argument 'speed'; it has n_items, measure"),
        (["--ranker", "BestInHindsight"], "BestInHindsight needs the relevance of all users"),
    ],
)
def test_mistakes_are_answered_in_words(arguments: list[str], told: str) -> None:
    result = runner.invoke(cli.app, ["simulate", *arguments])
    assert result.exit_code == 2
    assert re.match(f"error: .*{told}", result.stderr)
    assert "Traceback" not in result.output


def test_real_people_without_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path))
    result = runner.invoke(cli.app, ["simulate", "--environment", "jester"])
    assert result.exit_code == 2
    assert "RANKLOOP_DATA" in result.stderr


def test_version() -> None:
    assert runner.invoke(cli.app, ["--version"]).stdout == f"rankloop {__version__}\n"


@pytest.mark.parametrize("command", [[], ["reproduce"], ["list"], ["simulate"], ["fit-clicks"], ["demo"]])
def test_help(command: list[str]) -> None:
    result = runner.invoke(cli.app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def test_help_imports_no_heavy_library() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from rankloop import cli; "
        "CliRunner().invoke(cli.app, ['--help']); "
        "print([m for m in ('numba', 'matplotlib', 'polars', 'scipy', 'numpy') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_no_jobs_names_the_option() -> None:
    result = runner.invoke(cli.app, ["reproduce", "toy-sound", "--jobs", "0"])
    assert (result.exit_code, result.stderr) == (2, "error: --jobs must be at least 1, got 0\n")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["simulate", "--items", "4", "--set", "k=99"], "k must be a whole number from 1 to 4, got 99"),
        (
            ["simulate", "--items", "10", "--measure", "precision@50"],
            "measure must have a cut-off of at most n_items=10, got 'precision@50'",
        ),
        (["simulate", "--ranker", "ListNet"], "ListNet needs n_features: say --set n_features=VALUE"),
        (["simulate", "--items", "99999999999999"], "not enough memory for this: "),
        (["simulate", "--ranker", "no.such:Thing"], "ranker 'no.such:Thing' cannot be imported"),
        (["reproduce", "toy-sound", "--out", "FILE"], "FILE/toy-sound/jobs: Not a directory"),
        (["reproduce", "toy-sound", "--out", "FILE/below"], "FILE/below/toy-sound/jobs: Not a directory"),
        (["fit-clicks", "LOG", "--out", "FILE"], "FILE: File exists"),
        (["fit-clicks", "EMPTY"], "EMPTY: no header line"),
        (["fit-clicks", "absent.csv"], "there is no file absent.csv"),
        (["rates", "--items", "3", "--picture", "FILE/x.png"], "FILE/x.png: Not a directory"),
        (["classify", "--game", "EMPTY"], "EMPTY: needs the rows of losses"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_one_sentence(command: list[str], told: str, tmp_path: Path) -> None:
    names = {name: tmp_path / name.lower() for name in ("FILE", "EMPTY", "LOG")}
    names["FILE"].write_text("in the way")
    names["EMPTY"].touch()
    names["LOG"].write_text(
        '{"q": "a", "docs": [1, 2], "clicks": [1]}\n{"q": "a", "docs": [2, 1], "clicks": [1]}\n'
    )
    for name, path in names.items():
        command = [word.replace(name, str(path)) for word in command]
        told = told.replace(name, str(path))
    result = runner.invoke(cli.app, command)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {told}")
    assert result.stderr.count("\n") == 1


def test_fit_clicks_from_the_command_line(tmp_path: Path) -> None:
    log = tmp_path / "pages.jsonl"
    log.write_text('{"q": "a", "docs": [1, 2], "clicks": [1]}\n{"q": "a", "docs": [2, 1], "clicks": [1]}\n')
    command = [sys.executable, "-m", "rankloop", "fit-clicks", str(log), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Parameters:" in done.stdout


def test_simulate_plays_a_ranker_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lists_of_a_neighbour.py").write_text(
        "from rankloop.rankers import Uniform\n\n\nclass Mine(Uniform):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    command = [
        "simulate",
        "--ranker",
        "lists_of_a_neighbour:Mine",
        "--items",
        "3",
        "--rounds",
        "20",
        "--json",
    ]
    result = runner.invoke(cli.app, command)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["ranker"] == "lists_of_a_neighbour:Mine"
    sys.modules.pop("lists_of_a_neighbour")


def test_where_jobs_run_is_an_option(tmp_path: Path) -> None:
    told = runner.invoke(
        cli.app, ["reproduce", "toy-sound", "--address", "10.0.0.7:6379", "--out", str(tmp_path)]
    )
    assert told.exit_code == 2
    assert "--address is of --executor ray, got '10.0.0.7:6379' with --executor threads" in told.stderr
    told = runner.invoke(
        cli.app, ["reproduce", "toy-sound", "--executor", "processes", "--out", str(tmp_path)]
    )
    assert told.exit_code == 2  # a toy holds a lock
    assert "cannot be sent to another process" in told.stderr
    assert runner.invoke(cli.app, ["reproduce", "toy-sound", "--executor", "forks"]).exit_code == 2


def test_how_long_it_takes_is_told_without_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = runner.invoke(cli.app, ["reproduce", "--list", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert "toy-sound" in result.stdout
    assert "6 of 6" in result.stdout
    assert "not recorded" in result.stdout
    assert "skipped" in result.stdout
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(
        expected_time,
        "_recorded",
        lambda: {"calibration": 0.1, "experiments": {"toy-sound": {"jobs": 6, "seconds": 7200, "error": 60}}},
    )
    monkeypatch.setattr(expected_time, "measure", lambda: 0.2)
    result = runner.invoke(
        cli.app, ["reproduce", "toy-sound", "--list", "--jobs", "4", "--out", str(tmp_path)]
    )
    assert "toy-sound      6 of 6  4 h 0 min ± 4 min 0 s   1 h 0 min" in result.stdout
    assert "on 4 cores" in result.stdout
    assert "a machine that is 2.00 times as fast as this one is now" in result.stdout
    result = runner.invoke(cli.app, ["reproduce", "toy-sound", "--out", str(tmp_path)])
    assert result.stdout.startswith("experiment")
    assert "toy-sound: 2 of 2 claims hold" in result.stdout
    result = runner.invoke(cli.app, ["reproduce", "toy-sound", "--list", "--out", str(tmp_path)])
    assert result.stdout.split("\n")[1].split() == ["toy-sound", "0", "of", "6", "none", "0.0", "s"]
    assert "choose one" in runner.invoke(cli.app, ["reproduce", "--list", "--quick"]).stderr


def test_results_go_to_an_object_store() -> None:
    store = fsspec.filesystem("memory")
    store.store.clear()
    try:
        result = runner.invoke(
            cli.app, ["reproduce", "toy-sound", "--quick", "--out", "memory://bucket/results"]
        )
        assert result.exit_code == 0
        assert "Report: memory://bucket/results/report.html" in result.stdout
        kept = store.find("/bucket/results")
        assert {"/bucket/results/report.html", "/bucket/results/toy-sound/claims.json"} <= set(kept)
        assert sum("/jobs/" in name for name in kept) == 3
        again = runner.invoke(
            cli.app, ["reproduce", "toy-sound", "--quick", "--out", "memory://bucket/results"]
        )
        assert "3 jobs, 3 of them resumed" in again.stdout
    finally:
        store.store.clear()
