"""Lines of learning-to-rank text as arrays, and a message for a malformed line."""

import math
import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import text as kernels

LARGEST_ID = (
    100_000  # where the number of features is not given: rows are dense, and a typing error is likelier
)
_TOKEN = re.compile(rb"[^\s#]*")
_SHOWN = 40


class Rules(NamedTuple):
    """What a line may say."""

    in_comment: bool  # the query is named in the comment
    first_feature: int  # the id of the first column
    n_features: int | None
    max_grade: float
    limit: float  # the largest magnitude of a feature


class Documents(NamedTuple):
    """The documents of a block."""

    features: NDArray[np.float64]  # only as many columns as the block needs
    grades: NDArray[np.float64]
    queries: list[bytes]  # for each run of documents of one query
    lengths: NDArray[np.int64]
    comments: list[str] | None
    n_lines: int


class Mistake(Exception):
    """A line that breaks the rules."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def parse(block: bytes, rules: Rules, *, n_columns: int = 0) -> Documents:
    """Read a block of whole lines; `n_columns` says how many columns to expect where the rules do not.

    Raises
    ------
    Mistake
        For the first line that breaks the rules, counted within the block from 1.
    """
    text = np.frombuffer(block, np.uint8)
    n_lines = kernels.n_lines(text)
    width = rules.n_features or max(n_columns, 1)
    n_left = 1024
    while True:
        features, grades = np.zeros((n_lines, width)), np.zeros(n_lines)
        runs, comments = np.zeros((n_lines, 3), np.int64), np.zeros((n_lines, 2), np.int64)
        seen, left = np.full(width, -1), np.zeros((n_left + width, 5), np.int64)
        wrong, at, n_documents, n_runs, n_left = kernels.parse(
            text, rules.in_comment, rules.first_feature, rules.max_grade, rules.limit,
            features, grades, runs, comments, seen, left,
        )  # fmt: skip
        if wrong == kernels.FULL:
            n_left = 4 * len(left)
        elif wrong == kernels.BEYOND and rules.n_features is None and _id(block, at) <= LARGEST_ID:
            # What was read of the block is read again; but widths at least double, and most files tell on line 1.
            width = max(_id(block, at) - rules.first_feature + 1, min(2 * width, LARGEST_ID))
            n_left = 1024
        else:
            break
    # The numbers left come before the mistake, if there is one.
    for row, column, begin, end, token in left[:n_left].tolist():
        value = float(block[begin:end])
        if column >= 0:
            features[row, column] = value
            trouble = kernels.TOO_LARGE if abs(value) > rules.limit else kernels.FINE
        else:
            grades[row] = value
            trouble = (
                kernels.BELOW_ZERO
                if value < 0
                else kernels.ABOVE_SCALE
                if value > rules.max_grade
                else kernels.FINE
            )
        if trouble != kernels.FINE:
            raise _mistake(block, token, trouble, rules)
    if wrong != kernels.FINE:
        raise _mistake(block, at, wrong, rules)
    used = np.flatnonzero(seen >= 0)
    begins = np.append(runs[:n_runs, 2], n_documents)
    spans = comments[:n_documents]
    return Documents(
        features=features[:n_documents, : int(used[-1]) + 1 if len(used) else 0],
        grades=grades[:n_documents],
        queries=[block[begin:end] for begin, end in runs[:n_runs, :2].tolist()],
        lengths=np.diff(begins),
        comments=_texts(block, spans) if (spans[:, 1] > spans[:, 0]).any() else None,
        n_lines=n_lines,
    )


def _texts(block: bytes, spans: NDArray[np.int64]) -> list[str] | None:
    texts = [block[begin:end].decode(errors="backslashreplace").strip() for begin, end in spans.tolist()]
    return texts if any(texts) else None


def _token(block: bytes, at: int) -> str:
    found = _TOKEN.match(block, at)
    return found[0].decode(errors="backslashreplace") if found else ""


def _id(block: bytes, at: int) -> int:
    return int(_token(block, at).partition(":")[0][:_SHOWN])


def _mistake(block: bytes, at: int, wrong: int, rules: Rules) -> Mistake:
    token = _token(block, at)
    shown = token if len(token) <= _SHOWN else token[:_SHOWN] + "..."
    feature, _, value = shown.partition(":")
    if wrong == kernels.QUERY and rules.in_comment:
        what = "expected the query id in a comment at the end of the line, found none"
    elif wrong == kernels.QUERY:
        what = f"expected qid:<query> after the grade, found {shown!r}"
    elif wrong == kernels.GRADE or (wrong == kernels.ABOVE_SCALE and math.isinf(float(token))):
        what = f"grade is not a finite number: {shown!r}"
    elif wrong == kernels.BELOW_ZERO:
        what = f"grade is negative: {shown!r}"
    elif wrong == kernels.ABOVE_SCALE:
        what = f"grade is above {rules.max_grade:g}: {shown!r}"
    elif wrong == kernels.PAIR:
        what = f"expected <feature>:<number>, found {shown!r}"
    elif wrong == kernels.BELOW_FIRST:
        what = f"feature ids count from {rules.first_feature}, found {shown!r}"
    elif wrong == kernels.BEYOND and rules.n_features is None:
        what = f"feature id is above {LARGEST_ID:,}, found {shown!r}; n_features= allows it"
    elif wrong == kernels.BEYOND:
        what = f"feature id is not one of {rules.n_features}, found {shown!r}"
    elif wrong == kernels.TWICE:
        what = f"feature {feature} is given twice"
    elif wrong == kernels.TOO_LARGE and math.isfinite(float(token.partition(":")[2])):
        what = f"feature {feature} is too large for float32: {value!r}"
    else:
        what = f"feature {feature} is not a finite number: {value!r}"
    return Mistake(block.count(b"\n", 0, at) + 1, what)
