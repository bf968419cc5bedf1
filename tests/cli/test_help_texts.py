"""The help of every command, word for word. Where it is meant to change, write it anew:

RANKLOOP_WRITE_GOLDEN=1 python -m pytest tests/cli/test_help_texts.py
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from rankloop import cli

STORED = Path(__file__).with_name("help.txt")
# Of a terminal, whatever the one is that the tests run in. Variables that settings come from change no help.
PLAIN = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": None, "GITHUB_ACTIONS": None}


def commands(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """The path of every command, itself first, then those under it by the alphabet."""
    yield path
    for name in sorted(getattr(command, "commands", ())):
        yield from commands(command.commands[name], *path, name)


def help_texts() -> str:
    texts = []
    for path in commands(get_command(cli.app)):
        answer = CliRunner().invoke(cli.app, [*path, "--help"], env=PLAIN, prog_name="rankloop")
        assert answer.exit_code == 0, path
        lines = "\n".join(line.rstrip() for line in answer.stdout.strip().splitlines())
        texts.append(f"$ {' '.join(('rankloop', *path))} --help\n\n{lines}\n")
    return "\n\n".join(texts)


def test_the_help_of_every_command_is_the_stored_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 100)
    monkeypatch.setattr("typer.rich_utils.FORCE_TERMINAL", None)
    texts = help_texts()
    if os.environ.get("RANKLOOP_WRITE_GOLDEN"):
        STORED.write_text(texts, encoding="utf-8")
    stored = STORED.read_text(encoding="utf-8")
    difference = difflib.unified_diff(stored.splitlines(), texts.splitlines(), "stored", "now", lineterm="")
    assert stored == texts, "\n".join(difference)
