"""What the shell offers after TAB."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rankloop import cli
from rankloop.cli import completion
from rankloop.rankers import registry


@pytest.mark.parametrize(
    ("offer", "incomplete", "expected"),
    [
        (completion.rankers, "rtop", ["RTop1F", "RTopKF"]),
        (completion.environments, "noisy", ["noisy-halves"]),
        (completion.measures, "prec", ["precision@"]),
        (completion.experiments, "top1-2015-fig", ["top1-2015-fig1", "top1-2015-fig2"]),
        (completion.experiments, "al", ["all"]),
        (completion.rankers, "no such", []),
    ],
)
def test_names_that_begin_so(offer: object, incomplete: str, expected: list[str]) -> None:
    assert callable(offer)
    assert offer(incomplete) == expected


def test_a_failure_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[str]:
        raise RuntimeError("a broken package")

    monkeypatch.setattr(registry, "names", broken)
    assert completion.rankers("R") == []


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


def test_completion_can_be_installed() -> None:
    from typer.testing import CliRunner

    assert "--install-completion" in CliRunner().invoke(cli.app, ["--help"]).stdout
