"""Calls the command line in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from rankloop.cli import app


def call(*words: object, code: int = 0, **more: str) -> Result:
    """The result of `rankloop WORDS`, which must end with this code; `more` are environment variables."""
    result = CliRunner().invoke(app, [str(word) for word in words], env=more)
    assert result.exit_code == code, (words, result.output)
    return result


def refused(*words: object) -> str:
    """The one sentence with which `rankloop WORDS` is refused."""
    sentence = call(*words, code=2).stderr
    assert sentence.startswith("error: "), (words, sentence)
    assert sentence.count("\n") == 1, (words, sentence)
    return sentence.removeprefix("error: ").rstrip("\n")
