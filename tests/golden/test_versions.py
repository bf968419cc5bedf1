"""A ranker that tells another story has another version: a service must not go on with an old log as if nothing were.

`versions.tsv` has, for each ranker, its version and a digest of the first example of its transcript. Where a transcript
changes on purpose, raise `algorithm_version` of the class and write the line anew; the failing test prints it.
"""

from __future__ import annotations

import hashlib

import pytest

from tests.golden.test_transcripts import CLASSES, FOLDER

TOLD = dict(line.split("\t", 1) for line in (FOLDER / "versions.tsv").read_text().splitlines())


def line_of(name: str) -> str:
    first = (FOLDER / f"{name}.txt").read_text().partition("== example 1")[0]
    return f"{CLASSES[name].algorithm_version}\t{hashlib.sha256(first.encode()).hexdigest()[:16]}"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_another_story_needs_another_version(name: str) -> None:
    assert line_of(name) == TOLD.get(name), f"{name}\t{line_of(name)}"


def test_there_is_no_line_without_a_ranker() -> None:
    assert set(TOLD) <= set(CLASSES)
