"""The line about compiling: shown once for what takes long, to those who can read it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankloop.kernels import jit
from rankloop.rankers import reference

SLOW = """
import time
from rankloop.kernels import jit
from rankloop.kernels.jit import kernel
jit.PATIENCE = {patience}
@kernel
def twice(x):
    return x + x
print(twice({argument}))
"""


class Compiling:
    """What numba tells of a function that it compiles."""

    data = {"dispatcher": reference.rank_uniform}  # noqa: RUF012


def said(tmp_path: Path, *, patience: float, progress: str | None) -> str:
    script = tmp_path / "slow.py"
    script.write_text(SLOW.format(patience=patience, argument=3))
    environment = {key: value for key, value in os.environ.items() if key != "RANKLOOP_PROGRESS"}
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    if progress is not None:
        environment["RANKLOOP_PROGRESS"] = progress
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "6\n"
    return done.stderr


def test_long_compiling_is_one_line(tmp_path: Path) -> None:
    line = said(tmp_path, patience=0.0, progress="1")
    assert line.count("\n") == 1
    assert line.startswith("rankloop: compiling __main__.twice;")


@pytest.mark.parametrize(("patience", "progress"), [(60.0, "1"), (0.0, "0"), (0.0, None)])
def test_nothing_is_said_of_what_is_quick_or_to_nobody(
    patience: float, progress: str | None, tmp_path: Path
) -> None:
    assert said(tmp_path, patience=patience, progress=progress) == ""


def test_the_line_names_ranker_and_environment() -> None:
    loop = type("Loop", (), {})()
    source = "def play_rounds(): pass"
    scope = {"rank": reference.rank_uniform, "arrive": reference.learn_nothing}
    exec(source, scope)
    loop.py_func = scope["play_rounds"]
    assert jit._name(loop) == "the loop of reference and reference"


def test_those_who_draw_themselves_can_mute_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKLOOP_PROGRESS", "1")
    monkeypatch.setattr(jit, "PATIENCE", 0.0)
    with jit.muted():
        jit.NOTICE.on_start(Compiling())
        jit.NOTICE.on_end(Compiling())
    assert capsys.readouterr().err == ""
    jit.NOTICE.on_start(Compiling())
    jit.NOTICE.on_end(Compiling())
    assert capsys.readouterr().err.startswith("rankloop: compiling rankloop.rankers.reference.rank_uniform;")
