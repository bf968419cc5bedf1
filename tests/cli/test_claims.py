from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rankloop import claims
from rankloop.cli import app

DOCS = Path(__file__).parents[2] / "docs"


def told(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["claims", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_a_statement_in_words() -> None:
    text = told("Theorem 12")
    for part in (
        "Chaudhuri and Tewari 2015",
        "2015-064  Theorem 12  verified",
        "how: ",
        "where: tests/claims/",
    ):
        assert part in text
    assert (
        text.splitlines()[-1].startswith("1 statements: 1 verified") or "statements:" in text.splitlines()[-1]
    )


def test_reasons_and_counts() -> None:
    assert "why not: both sets may not be passed on" in told(
        "--paper", "2016", "--status", "cannot be judged here"
    )
    assert told("no such words").strip() == "0 statements"
    assert told().strip().splitlines()[-1].startswith("223 statements: ")


def test_json_has_every_field() -> None:
    found = json.loads(told("--json", "--paper", "2022"))
    assert [each["id"] for each in found] == [each.id for each in claims.statements(paper="2022")]
    assert set(found[0]) == {"id", "paper", "place", "statement", "status", "errata", "where", "how"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--paper", "1995"], "paper must be one of 2015, 2016, 2022, got '1995'"),
        (["--status", "missing"], "status must be one of"),
        (["--json", "--markdown"], "exclude each other"),
    ],
)
def test_mistakes_are_one_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in told(*arguments, code=2)


def test_the_page_is_what_the_command_says() -> None:
    assert (DOCS / "claims.md").read_text() == told("--markdown"), "out of date: `make docs` writes it anew"
