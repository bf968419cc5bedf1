"""Learning-to-rank text, read byte by byte: a grade, a query, and features as `id:value`.

A text is bytes that end in a newline, so that a scan for the end of a token needs no second condition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import hot
from rankloop.kernels.text.decimals import LEFT, MISREAD, number

# What `parse` found wrong.
FINE, FULL, GRADE, BELOW_ZERO, ABOVE_SCALE, QUERY, PAIR, BELOW_FIRST, BEYOND, TWICE, VALUE, TOO_LARGE = range(
    12
)

_NEWLINE, _HASH, _COLON = 10, 35, 58
_LARGEST = 1 << 40  # ids beyond it are all the same
_BLANK = np.zeros(256, np.bool_)
_BLANK[[9, 11, 12, 13, 32]] = True  # carriage return too: lines may end in two bytes
_END = _BLANK.copy()
_END[[_NEWLINE, _HASH]] = True


@hot
def n_lines(text: Any) -> int:
    """How many newlines there are."""
    count = 0
    for byte in text:
        count += byte == _NEWLINE
    return count


@hot
def parse(
    text: Any,
    in_comment: bool,
    first: int,
    highest: float,
    limit: float,
    features: Any,
    grades: Any,
    runs: Any,
    comments: Any,
    seen: Any,
    left: Any,
) -> tuple[int, int, int, int, int]:
    """Read the documents of a text into rows.

    Parameters
    ----------
    text : array of uint8
        The bytes.
    in_comment : bool
        The query is the first word of the comment, instead of `qid:` behind the grade.
    first : int
        The id of the first column.
    highest : float
        The highest grade.
    limit : float
        The largest magnitude of a feature.
    features : array of float64
        Zeros, a row for each line.
    grades : array of float64
        Zeros, a row for each line.
    runs : array of int64
        For each run of documents with the same query: where its name begins and ends, and its first row.
    comments : array of int64
        Where each row's comment begins and ends.
    seen : object
        Array of int64 -1 for each column.
    left : array of int64
        For each number that could not be decided here: its row, its column (-1: the grade), begin, end, token.

    Returns
    -------
    tuple of int
        What is wrong (`FINE`: nothing), in the token that begins where, and how many documents, runs and numbers left.
    """
    n_documents = n_runs = n_left = at = 0
    wrong = FINE
    while at < len(text):
        at = _skip_blanks(text, at)
        if text[at] == _NEWLINE or text[at] == _HASH:
            at = _newline(text, at) + 1
            continue
        if n_left + len(seen) >= len(left):
            wrong = FULL
            break
        wrong, grade, at, n_left = _read_grade(text, at, highest, n_documents, left, n_left)
        if wrong != FINE:
            break
        grades[n_documents] = grade
        name = name_end = _skip_blanks(text, at)
        if not in_comment:
            name, name_end = _query_behind_grade(text, name)
            at = name_end
            if name == name_end:
                wrong = QUERY
                break
        wrong, at, n_left = _read_features(
            text, at, first, limit, n_documents, features[n_documents], seen, left, n_left
        )
        if wrong != FINE:
            break
        end = _newline(text, at)
        if in_comment and at < end:
            name, name_end = _first_word(text, at + 1)
            at = name_end - 1
        if name == name_end:
            wrong = QUERY
            break
        comments[n_documents, 0] = min(at + 1, end)
        comments[n_documents, 1] = end
        if n_runs == 0 or not _same(text, name, name_end, runs[n_runs - 1]):
            runs[n_runs, 0] = name
            runs[n_runs, 1] = name_end
            runs[n_runs, 2] = n_documents
            n_runs += 1
        n_documents += 1
        at = end + 1
    return wrong, at, n_documents, n_runs, n_left


@hot
def _read_grade(
    text: Any, token: int, highest: float, row: int, left: Any, n_left: int
) -> tuple[int, float, int, int]:
    # What is wrong, the grade, where it ends (where it begins, if it is wrong), and how many numbers are left.
    known, grade, at = number(text, token)
    wrong = FINE
    if known == MISREAD or not _END[text[at]]:
        wrong = GRADE
    elif known == LEFT:
        n_left = _leave(left, n_left, row, -1, token, at, token)
    elif grade < 0.0:
        wrong = BELOW_ZERO
    elif grade > highest:
        wrong = ABOVE_SCALE
    return wrong, abs(grade), at if wrong == FINE else token, n_left


@hot
def _query_behind_grade(text: Any, at: int) -> tuple[int, int]:
    # Where the name behind `qid:` begins and ends; nowhere, if there is none.
    if not (text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == _COLON):
        return at, at
    end = at + 4
    while not _END[text[end]]:
        end += 1
    return (at + 4, end) if end > at + 4 else (at, at)


@hot
def _read_features(
    text: Any,
    at: int,
    first: int,
    limit: float,
    document: int,
    row: Any,
    seen: Any,
    left: Any,
    n_left: int,
) -> tuple[int, int, int]:
    # What is wrong, where the features end (or the wrong one begins), and how many numbers are left.
    wrong = FINE
    while True:
        at = _skip_blanks(text, at)
        if text[at] == _NEWLINE or text[at] == _HASH:
            break
        token = at
        index = 0
        while 48 <= text[at] <= 57:
            index = min(10 * index + (text[at] - 48), _LARGEST)
            at += 1
        column = index - first
        if text[at] != _COLON or at == token:
            wrong = PAIR
        elif column < 0:
            wrong = BELOW_FIRST
        elif column >= len(row):
            wrong = BEYOND
        elif seen[column] == document:
            wrong = TWICE
        else:
            seen[column] = document
            begin = at + 1
            known, value, at = number(text, begin)
            row[column] = value
            if known == MISREAD or not _END[text[at]]:
                wrong = VALUE
            elif known == LEFT:
                n_left = _leave(left, n_left, document, column, begin, at, token)
            elif abs(value) > limit:
                wrong = TOO_LARGE
        if wrong != FINE:
            at = token
            break
    return wrong, at, n_left


@hot
def _first_word(text: Any, at: int) -> tuple[int, int]:
    # Where the first word of a comment begins and ends; at the end of the line, if there is none.
    begin = _skip_blanks(text, at)
    end = begin
    while not (_BLANK[text[end]] or text[end] == _NEWLINE):
        end += 1
    return begin, end


@hot
def _skip_blanks(text: Any, at: int) -> int:
    while _BLANK[text[at]]:
        at += 1
    return at


@hot
def _newline(text: Any, at: int) -> int:
    while text[at] != _NEWLINE:
        at += 1
    return at


@hot
def _same(text: Any, name: int, name_end: int, run: Any) -> Any:
    same = name_end - name == run[1] - run[0]
    i = 0
    while same and name + i < name_end:
        same = text[name + i] == text[run[0] + i]
        i += 1
    return same


@hot
def _leave(left: Any, n_left: int, row: int, column: int, begin: int, end: int, token: int) -> int:
    left[n_left, 0] = row
    left[n_left, 1] = column
    left[n_left, 2] = begin
    left[n_left, 3] = end
    left[n_left, 4] = token
    return n_left + 1
