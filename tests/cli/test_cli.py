"""The command as a whole: what it loads, its version, and how everything ends in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rankloop import __version__
from tests.cli.call import call, refused

ROOT = Path(__file__).parents[2]
PAGES = '{"q": "a", "docs": [1, 2], "clicks": [1]}\n{"q": "a", "docs": [2, 1], "clicks": [1]}\n'


def test_version() -> None:
    assert call("--version").stdout == f"rankloop {__version__}\n"


def test_commands_that_are_gone_say_what_does_the_same() -> None:
    for command, instead in (
        ("feed", "examples/feed_file.py"),
        ("consume", "examples/consume_redis.py"),
        ("stream", "examples/pull_events.py"),
        ("move", "`rankloop backup`"),
    ):
        told = " ".join(call(command, "--follow", code=2).stderr.split())
        assert f"there is no command '{command}' any more" in told
        assert instead in told
        assert instead.startswith("`") or (ROOT / instead).is_file()


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


def test_files_that_cannot_be_used_are_named_in_one_sentence(tmp_path: Path) -> None:
    file, empty, log = (tmp_path / name for name in ("file", "empty", "log"))
    file.write_text("in the way")
    empty.touch()
    log.write_text(PAGES)
    for words, told in (
        (["fit-clicks", log, "--out", file], f"{file}: File exists"),
        (["fit-clicks", empty], f"{empty}: no header line"),
        (["fit-clicks", "absent.csv"], "there is no file absent.csv"),
        (["classify", "--game", empty], f"{empty}: needs the rows of losses"),
    ):
        assert refused(*words).startswith(told)


def test_it_is_a_program(tmp_path: Path) -> None:
    log = tmp_path / "pages.jsonl"
    log.write_text(PAGES)
    command = [sys.executable, "-m", "rankloop", "fit-clicks", str(log), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Parameters:" in done.stdout
