"""Flags are shown without a type, options with one."""

from __future__ import annotations

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from rankloop import cli

COMMANDS = sorted(get_command(cli.app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_no_flag_takes_a_bool(words: list[str]) -> None:
    told = CliRunner().invoke(cli.app, [*words, "--help"], terminal_width=120)
    assert told.exit_code == 0
    assert "<bool>" not in told.stdout


def test_an_option_keeps_its_type() -> None:
    assert "<int>" in CliRunner().invoke(cli.app, ["simulate", "--help"]).stdout


def test_typer_alone_would_show_it() -> None:
    plain = typer.Typer()

    @plain.command()
    def only(quick: bool = typer.Option(False, "--quick")) -> None:
        pass

    assert "<bool>" in CliRunner().invoke(plain, ["--help"]).stdout
