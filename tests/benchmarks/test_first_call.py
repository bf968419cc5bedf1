"""The first call is timed in processes of its own, on a folder for compiled code that is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import first_call, first_calls
from tests.benchmarks.printed import printed


def test_each_example_runs_on_an_empty_folder_first(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each process adds a file, and they are counted after the first.
    code = """
import os, pathlib
folder = pathlib.Path(os.environ["NUMBA_CACHE_DIR"])
(folder / f"{len(list(folder.iterdir()))}.nbc").touch()
"""
    monkeypatch.setattr(first_call, "IMPORTS", "pass")
    (found,) = first_call.timed({"work": code}, lambda what: None)
    assert (found.what, found.functions) == ("work", 1)
    text = printed(first_call.tables([first_call.FirstCall("work", 12.34, 0.567, 1)]))
    assert all(told in text for told in ("work", "12.3", "0.57"))


def test_the_examples_are_the_readmes_and_compile() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert first_call.readme_example() in readme
    assert "simulation.play" in first_call.readme_example()
    for code in first_calls.EXAMPLES.values():
        compile(code, "example", "exec")


def test_a_minute_of_compiling_is_not_part_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[list[str]] = []
    monkeypatch.setattr(command, "_run", lambda names, *, quick: run.append(names) or {})
    for words in ([], ["first-calls"]):
        command.main(words)
    assert run[0] == [name for name in command.BENCHMARKS if name != "first-calls"]
    assert run[1] == ["first-calls"]
