"""`rankloop reproduce` and `rankloop claims`: verdicts, exit codes, what is kept, and mistakes in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import IO

import pytest

from rankloop import claims, experiments
from tests.cli.call import call, refused
from tests.experiments.toy import Toy
from tests.simulation.interrupt import interrupted

ROOT = Path(__file__).parents[2]


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
    result = call("reproduce", "toy-sound", "--quick", "--out", tmp_path, "--jobs", "2")
    assert "toy-sound: 2 of 2 claims hold (3 jobs," in result.stdout
    assert "holds   it is <true>: 1 [true, worded after a run]" in result.stdout
    assert f"Report: {tmp_path / 'report.html'}" in result.stdout
    assert (tmp_path / "report.html").exists()
    # Nothing is said about progress when nobody watches.
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_a_broken_claim_exits_with_1_and_is_still_reported(tmp_path: Path) -> None:
    told = call("reproduce", "all", "--quick", "--out", tmp_path, code=1).stdout
    assert "toy-broken: 1 of 2 claims hold" in told
    assert "BROKEN  it is <true>: 1" in told
    assert "toy-lacking: skipped, there is no data folder" in told
    assert "3 of 4 claims hold" in (tmp_path / "report.html").read_text()
    call("reproduce", "toy-lacking", "--out", tmp_path)  # lacking data is no failure


def test_a_second_run_resumes_and_a_fresh_one_does_not(tmp_path: Path) -> None:
    command = ["reproduce", "toy-sound", "--out", tmp_path]
    call(*command)
    assert "6 jobs, 6 of them resumed" in call(*command).stdout
    assert "resumed" not in call(*command, "--fresh").stdout


def test_what_cannot_be_reproduced_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    for words, told in (
        (["toy"], "no experiment 'toy'; there are toy-sound, toy-broken, toy-lacking, and all"),
        (["--jobs", "0"], "--jobs must be at least 1, got 0"),
        (
            ["--address", "10.0.0.7:6379"],
            "--address is of --executor ray, got '10.0.0.7:6379' with --executor threads",
        ),
        (["--executor", "processes"], "cannot be sent to another process"),  # a toy holds a lock
    ):
        assert told in refused("reproduce", "toy-sound", *words, "--out", tmp_path / "out"), words
        assert not list(tmp_path.glob("out/*/jobs/*"))
    for out in (file, file / "below"):
        assert f"{out}/toy-sound/jobs: Not a directory" in refused("reproduce", "toy-sound", "--out", out)
    call("reproduce", "toy-sound", "--executor", "forks", code=2)


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

    def begun(output: IO[str]) -> None:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("toy/jobs/*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.05)

    command = ["rankloop", "reproduce", "toy", "--out", str(tmp_path), "--jobs", "2"]
    _, told, code = interrupted(f"import sys\nsys.argv = {command!r}\n{script}", begun)
    assert code == 130
    assert "finished jobs are kept, the same command goes on from there." in told
    assert "Traceback" not in told
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.suffix for path in files] == [".parquet"]


def test_what_is_left_is_told_without_running(tmp_path: Path) -> None:
    told = call("reproduce", "--list", "--out", tmp_path).stdout.splitlines()
    assert told == [
        "toy-sound    6 of 6 jobs left",
        "toy-broken   6 of 6 jobs left",
        "toy-lacking  skipped, there is no data folder",
    ]
    assert not list(tmp_path.iterdir())
    call("reproduce", "toy-sound", "--out", tmp_path)
    assert (
        call("reproduce", "toy-sound", "--list", "--out", tmp_path).stdout == "toy-sound  0 of 6 jobs left\n"
    )
    assert "6 of 6" in call("reproduce", "toy-sound", "--list", "--fresh", "--out", tmp_path).stdout


def test_an_address_of_a_store_is_refused() -> None:
    sentence = refused("reproduce", "toy-sound", "--quick", "--out", "s3://bucket/results")
    assert "folder must be on this machine, got the address 's3://bucket/results'" in sentence


def test_a_statement_in_words() -> None:
    text = call("claims", "Theorem 12").output
    for part in (
        "Chaudhuri and Tewari 2015",
        "2015-064  Theorem 12  verified",
        "how: ",
        "where: tests/claims/",
    ):
        assert part in text
    judged = call("claims", "--paper", "2016", "--status", "cannot be judged here").output
    assert "why not: both sets may not be passed on" in judged
    assert call("claims", "no such words").output.strip() == "0 statements"
    assert call("claims").output.strip().splitlines()[-1].startswith("223 statements: ")


def test_statements_as_json_have_every_field() -> None:
    stated = json.loads(call("claims", "--json", "--paper", "2022").output)
    assert [each["id"] for each in stated] == [each.id for each in claims.statements(paper="2022")]
    assert set(stated[0]) == {"id", "paper", "place", "statement", "status", "errata", "where", "how"}


def test_what_is_not_stated_is_one_sentence() -> None:
    told = refused("claims", "--paper", "1995")
    assert told == "paper must be one of 2015, 2016, 2022, got '1995'"
    assert "status must be one of" in refused("claims", "--status", "missing")


def test_the_page_has_every_statement() -> None:
    command = [sys.executable, ROOT / "docs" / "_ext" / "claims_page.py"]
    page = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert page == (ROOT / "docs" / "claims.md").read_text(), "out of date: `make docs` writes it anew"
