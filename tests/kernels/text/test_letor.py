"""The parser's own answers: rows, runs of queries, comments, and where a mistake is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from rankloop.kernels import text as letor

N_FEATURES = 3


class Parsed(NamedTuple):
    wrong: int
    at: int
    features: list[Any]
    grades: list[float]
    runs: list[tuple[str, int]]
    comments: list[str]
    n_left: int


def parse(text: str, *, in_comment: bool = False, room: int = 100) -> Parsed:
    raw = np.frombuffer(text.encode(), np.uint8)
    n = letor.n_lines(raw)
    features, grades = np.zeros((n, N_FEATURES)), np.zeros(n)
    runs, comments = np.zeros((n, 3), np.int64), np.zeros((n, 2), np.int64)
    seen, left = np.full(N_FEATURES, -1), np.zeros((room, 5), np.int64)
    wrong, at, n_documents, n_runs, n_left = letor.parse(
        raw, in_comment, 1, 4.0, 1e6, features, grades, runs, comments, seen, left
    )
    return Parsed(
        wrong,
        at,
        features[:n_documents].tolist(),
        grades[:n_documents].tolist(),
        [(text[begin:end], int(row)) for begin, end, row in runs[:n_runs]],
        [text[begin:end] for begin, end in comments[:n_documents]],
        n_left,
    )


def test_rows_runs_and_comments() -> None:
    text = "2 qid:cat 1:4 3:-1e2 # good\r\n\n# nothing\n0 qid:cat\n 1 qid:dog 2:.5#bad\n0 qid:cat 1:0\n"
    found = parse(text)
    assert (found.wrong, found.at) == (letor.FINE, len(text))
    assert found.features == [[4, 0, -100], [0, 0, 0], [0, 0.5, 0], [0, 0, 0]]
    assert found.grades == [2, 0, 1, 0]
    assert found.runs == [("cat", 0), ("dog", 2), ("cat", 3)]
    assert found.comments == [" good\r", "", "bad", ""]


def test_the_query_may_stand_in_the_comment() -> None:
    found = parse("1 1:2 # cat of mine\n0 3:1 #cat\n0 #\tdog\n", in_comment=True)
    assert found.wrong == letor.FINE
    assert found.runs == [("cat", 0), ("dog", 2)]
    assert found.comments == [" of mine", "", ""]


@pytest.mark.parametrize(
    ("line", "wrong", "token"),
    [
        ("x qid:1 1:1", letor.GRADE, "x"),
        ("1x qid:1", letor.GRADE, "1x"),
        ("-1 qid:1", letor.BELOW_ZERO, "-1"),
        ("5 qid:1", letor.ABOVE_SCALE, "5"),
        ("1 1:1", letor.QUERY, "1:1"),
        ("1 qid: 1:1", letor.QUERY, "qid:"),
        ("1 qid:1 x:1", letor.PAIR, "x:1"),
        ("1 qid:1 :1", letor.PAIR, ":1"),
        ("1 qid:1 0:1", letor.BELOW_FIRST, "0:1"),
        ("1 qid:1 4:1", letor.BEYOND, "4:1"),
        ("1 qid:1 2:1 2:1", letor.TWICE, "2:1\n"),
        ("1 qid:1 2:one", letor.VALUE, "2:one"),
        ("1 qid:1 2:1e7", letor.TOO_LARGE, "2:1e7"),
    ],
)
def test_a_mistake_is_told_with_its_token(line: str, wrong: int, token: str) -> None:
    text = f"1 qid:1 1:1 2:2\n{line}\n"
    found = parse(text)
    assert found.wrong == wrong
    assert text[found.at :].startswith(token)
    assert found.grades == [1], "what came before is there"


def test_a_comment_without_a_query() -> None:
    for text in ("1 1:1\n", "1 1:1 #  \n"):
        assert parse(text, in_comment=True).wrong == letor.QUERY


def test_numbers_that_are_left_need_room() -> None:
    # A line may leave as many numbers as there are columns, so that many places must be free before it.
    text = "1 qid:1 1:" + "1" * 40 + "\n" + "0 qid:1\n"
    assert parse(text).n_left == 1
    assert parse(text, room=N_FEATURES + 1).wrong == letor.FULL
