"""Options that commands share: flags, what TAB offers, structs of options, and where settings come from."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from rankloop.cli import app, settings
from rankloop.rankers import registry
from tests.cli.call import call


def test_flags_are_shown_without_a_type_and_options_with_one() -> None:
    command = typer.Typer()

    @command.command()
    def only(quick: bool = typer.Option(False, "--quick")) -> None:
        pass

    assert "<bool>" in CliRunner().invoke(command, ["--help"]).stdout  # what Typer alone would show
    told = call("simulate", "--help").stdout
    assert "<bool>" not in told
    assert "<int>" in told


def test_a_dataclass_stands_for_the_options_that_its_fields_are() -> None:
    @dataclass(frozen=True)
    class Size:
        width: Annotated[int, typer.Option(help="How wide.")] = 3
        unit: str = "m"  # no option

    seen: list[object] = []
    command = typer.Typer()

    def measure(name: str, *, size: Size, loud: bool = False) -> None:
        seen.append((name, size, loud))

    measure.__annotations__ = {"name": str, "size": Size, "loud": bool}
    command.command()(settings.with_options(measure))
    assert CliRunner().invoke(command, ["box", "--width", "5"]).exit_code == 0
    assert seen == [("box", Size(5), False)]
    told = CliRunner().invoke(command, ["--help"]).stdout
    assert told.index("--width") < told.index("--loud")
    assert "--unit" not in told


def test_tab_offers_the_names_that_begin_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for offer, incomplete, expected in (
        (settings.offer_rankers, "rtop", ["RTop1F", "RTopKF"]),
        (settings.offer_environments, "noisy", ["noisy-halves"]),
        (settings.offer_measures, "prec", ["precision@"]),
        (settings.offer_experiments, "top1-2015-fig", ["top1-2015-fig1", "top1-2015-fig2"]),
        (settings.offer_experiments, "al", ["all"]),
        (settings.offer_rankers, "no such", []),
    ):
        assert offer(incomplete) == expected

    def broken() -> list[str]:
        raise RuntimeError("a broken package")

    monkeypatch.setattr(registry, "names", broken)
    assert settings.offer_rankers("R") == []


def test_the_shell_gets_the_names() -> None:
    asked = {
        **os.environ,
        "_RANKLOOP_COMPLETE": "complete_bash",
        "COMP_WORDS": "rankloop reproduce top1-2015-f",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "rankloop"], env=asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["top1-2015-fig1", "top1-2015-fig2"]
    assert "Traceback" not in done.stderr


# Where settings of a service come from, and how they are shown


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _run(*arguments: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    done = CliRunner().invoke(app, list(arguments), env=env)
    assert done.exit_code == code, done.output
    return done.output if not code else " ".join(re.sub("[│╭╮╰╯─]", " ", done.output).split())


def _settings(*arguments: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_run("config", "--json", *arguments, env=env))
    return found


def test_flags_count_before_the_environment_and_that_before_the_file() -> None:
    Path("rankloop.toml").write_text(
        'host = "::1"\nport = 1\nsnapshot_every = 1\n[limits]\nrankers = 1\nstreams = 1\nitems = 1\n'
    )
    env = {
        "RANKLOOP_SERVE_PORT": "2",
        "RANKLOOP_SERVE_SNAPSHOT_EVERY": "2",
        "RANKLOOP_SERVE_LIMIT": "streams=2 items=2",
    }
    told = _settings("--snapshot-every", "3", "--limit", "items=3", env=env)
    assert told["schema"] == {"value": "rankloop", "source": "default"}
    assert told["host"] == {"value": "::1", "source": "file"}
    assert told["port"] == {"value": 2, "source": "RANKLOOP_SERVE_PORT"}
    assert told["snapshot_every"] == {"value": 3, "source": "flag"}
    assert told["limits"]["batch"]["source"] == "default"
    assert told["limits"]["rankers"] == {"value": 1, "source": "file"}
    assert told["limits"]["streams"] == {"value": 2, "source": "RANKLOOP_SERVE_LIMIT"}
    assert told["limits"]["items"] == {"value": 3, "source": "flag"}


def test_what_is_printed_is_a_settings_file() -> None:
    first = _run("config", "--port", "8123", "--ranker", "pkg:Mine", "--limit", "header_seconds=2.5")
    told = tomllib.loads(first)
    assert (told["port"], told["ranker"], told["limits"]["header_seconds"]) == (8123, ["pkg:Mine"], 2.5)
    Path("again.toml").write_text(first)
    again = _run("config", env={"RANKLOOP_CONFIG": "again.toml"})
    assert tomllib.loads(again) == told
    assert "port = 8123  # file" in again


def test_passwords_are_not_shown() -> None:
    env = {"RANKLOOP_SERVE_DATABASE": "postgresql://me:secret@host/name?password=secret"}
    for how in ([], ["--json"]):
        told = _run("config", *how, env=env)
        assert "secret" not in told
        assert "postgresql://me:***@host/name" in told


def test_one_database_and_no_second_one() -> None:
    one, two = "postgresql://me:secret@one/x", "postgresql://me:secret@two/x"
    shown = one.replace("secret", "***")
    assert _settings("--database", one)["database"] == {"value": shown, "source": "flag"}
    env = {"RANKLOOP_SERVE_DATABASE": one}
    assert _settings(env=env)["database"] == {"value": shown, "source": "RANKLOOP_SERVE_DATABASE"}
    Path("rankloop.toml").write_text(f'database = "{one}"\n')
    assert _settings()["database"] == {"value": shown, "source": "file"}
    Path("rankloop.toml").write_text(f'database = ["{one}", "{two}"]\n')
    refused = "database must be one, got 2: run a service, or this command, for each"
    for arguments in (["serve"], ["rankers"], ["verify", "--database", one, "--database", two]):
        assert refused in _run(*arguments, code=2)


def test_every_command_of_the_service_reads_the_file(tmp_path: Path) -> None:
    Path("mine.toml").write_text('data = "there"\nranker = ["no.such.module:Mine"]\n')
    told = _run("keys", "add", "--new-store", "--role", "reader", "--config", "mine.toml")
    assert told.startswith("rl_")
    assert (tmp_path / "there" / "rankloop.db").exists()
    # `--ranker` of `replay` names what is played, and is not the `ranker` of the file.
    assert "Missing option '--ranker'" in _run("replay", "x", "--config", "mine.toml", code=2)


def test_a_wrong_file_is_refused() -> None:
    for text, told in (
        ("prot = 1", "there is no setting 'prot'"),
        ("limits = 1", "limits must be a table"),
        ("port = ", "is not TOML"),
        ('port = "many"', "valid integer"),
    ):
        Path("wrong.toml").write_text(text)
        assert told in _run("config", "--config", "wrong.toml", code=2)


def test_a_missing_file_and_a_wrong_limit_are_refused() -> None:
    assert "No such file" in _run("config", "--config", "none.toml", code=2)
    Path("wrong.toml").write_text("[limits]\nrankres = 1")
    assert "there is no limit 'rankres'" in _run("serve", "--config", "wrong.toml", code=2)
