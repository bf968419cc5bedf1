"""Learning-to-rank text, read byte by byte: a grade, a query, and features as `id:value`.

A text is bytes that end in a newline, so that a scan for the end of a token needs no second condition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import hot

# Decimal numbers in text, as float64, rounded as Python rounds them.


MISREAD, READ, LEFT = 0, 1, 2

_PLUS, _MINUS, _POINT = 43, 45, 46
_POWERS = np.array([float(f"1e{k}") for k in range(23)])  # exact: 5**22 has 52 bits
_EXACT = np.uint64(1 << 53)
_DIGITS = 19  # as many as always fit 64 bits
_SPLITTER = float((1 << 27) + 1)


@hot
def _quotient(mantissa: np.uint64, power: float) -> tuple[int, float]:
    """The correctly rounded `mantissa` / `power`, or left to the caller when that takes more than 106 bits to decide.

    The mantissa is high + low exactly, quotient * power is product + error exactly (Dekker, 1971), so what
    `quotient` lacks is known with a relative error below 2**-100 of the quotient.
    """
    high = float(mantissa)
    low = float(np.int64(mantissa - np.uint64(high)))
    quotient = high / power
    product = quotient * power
    a = quotient * _SPLITTER
    a -= a - quotient
    b = power * _SPLITTER
    b -= b - power
    error = ((a * b - product) + a * (power - b) + (quotient - a) * b) + (quotient - a) * (power - b)
    rest = ((high - product) - error + low) / power
    doubt = quotient * 2.0**-96
    least, most = quotient + (rest - doubt), quotient + (rest + doubt)
    return (READ if least == most else LEFT), least


@hot
def number(text: Any, at: int) -> tuple[int, float, int]:
    """The decimal number at `at`: whether it is one, its value if that could be decided here, and where it ends.

    Exact products and quotients of what float64 holds exactly are rounded once (Clinger, 1990).
    """
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    mantissa = np.uint64(0)
    first = start = at
    while 48 <= text[at] <= 57:
        mantissa = mantissa * np.uint64(10) + np.uint64(text[at] - 48)
        at += 1
    n_digits = at - start
    power = 0
    if text[at] == _POINT:
        at += 1
        start = at
        while 48 <= text[at] <= 57:
            mantissa = mantissa * np.uint64(10) + np.uint64(text[at] - 48)
            at += 1
        power = start - at
        n_digits -= power
    if n_digits == 0:
        return MISREAD, 0.0, at
    if text[at] == 69 or text[at] == 101:  # E, e
        at += 1
        falling = text[at] == _MINUS
        if falling or text[at] == _PLUS:
            at += 1
        start = at
        exponent = 0
        while 48 <= text[at] <= 57:
            exponent = min(10 * exponent + (text[at] - 48), 100_000)
            at += 1
        if at == start:
            return MISREAD, 0.0, at
        power += -exponent if falling else exponent
    if n_digits > _DIGITS:
        while text[first] == 48 or text[first] == _POINT:  # zeros in front take no room
            n_digits -= text[first] == 48
            first += 1
        if n_digits > _DIGITS:
            return LEFT, 0.0, at
    known, value = READ, 0.0
    if mantissa == 0:
        pass
    elif not -22 <= power <= 22:
        known = LEFT
    elif mantissa <= _EXACT:
        value = float(mantissa)
        value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
    elif power < 0:
        known, value = _quotient(mantissa, _POWERS[-power])
    else:
        known = LEFT
    return known, -value if negative else value, at


# Features brought to one scale within each query.


@hot
def bounds(features: Any, queries: Any, marker: float, least: Any, most: Any) -> None:
    """Widen `least` and `most`, a row for each query, to what its documents have.

    Columns that the documents lack are 0; magnitudes from `marker` on do not count.
    """
    n_columns = features.shape[1]
    for i in range(len(queries)):
        low, high = least[queries[i]], most[queries[i]]
        for j in range(len(low)):
            value = np.float64(features[i, j]) if j < n_columns else 0.0
            if abs(value) < marker:
                low[j] = min(low[j], value)
                high[j] = max(high[j], value)


@hot
def place(features: Any, queries: Any, to: Any, least: Any, most: Any, rescale: bool, out: Any) -> None:
    """Write each document's features to row `to` of `out`, cut off at the bounds of its query.

    To `rescale`, write how far along from the one bound to the other they are, 0 where the bounds are the same.
    """
    n_columns = features.shape[1]
    for i in range(len(queries)):
        low, high, row = least[queries[i]], most[queries[i]], out[to[i]]
        for j in range(len(low)):
            value = np.float64(features[i, j]) if j < n_columns else 0.0
            if not low[j] <= high[j]:
                value = 0.0  # nothing but marks
            else:
                value = min(max(value, low[j]), high[j])
                if rescale:
                    span = high[j] - low[j]
                    if span == 0.0:
                        value = 0.0
                    elif span < np.inf:
                        value = (value - low[j]) / span
                    else:  # too wide for float64, but half of it is not
                        value = (0.5 * value - 0.5 * low[j]) / (0.5 * high[j] - 0.5 * low[j])
            row[j] = value


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
