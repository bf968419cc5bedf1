"""Learning-to-rank text made documents: blocks of lines parsed by several threads, put together to a dataset."""

from __future__ import annotations

import math
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.data.dataset import Dataset, Features
from rankloop.data.letor import MARKER, Options
from rankloop.data.text import line_blocks
from rankloop.kernels import text as kernels

# Where the number of features is not given: rows are dense, and a typing error is likelier.
LARGEST_ID = 100_000
_TOKEN = re.compile(rb"[^\s#]*")
_SHOWN = 40
# Bytes: small enough for a processor's cache, large enough for Python's part of the work not to matter.
SIZE = 1 << 21


class Documents(NamedTuple):
    """The documents of a block."""

    features: NDArray[np.float64]  # only as many columns as the block needs
    grades: NDArray[np.float64]
    queries: list[bytes]  # for each run of documents of one query
    lengths: NDArray[np.int64]
    comments: list[str] | None


class Mistake(Exception):
    """A line that breaks the rules."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def parse_block(block: bytes, options: Options, *, n_columns: int = 0) -> Documents:
    """Read a block of whole lines; `n_columns` says how many columns to expect where the options do not.

    A `Mistake` is the first line that breaks the rules, counted within the block from 1.
    """
    text = np.frombuffer(block, np.uint8)
    n_lines = kernels.n_lines(text)
    limit, highest_grade = options.largest, options.highest_grade
    width = options.n_features or max(n_columns, 1)
    n_left = 1024
    while True:
        features, grades = np.zeros((n_lines, width)), np.zeros(n_lines)
        runs, comments = np.zeros((n_lines, 3), np.int64), np.zeros((n_lines, 2), np.int64)
        seen, left = np.full(width, -1), np.zeros((n_left + width, 5), np.int64)
        wrong, at, n_documents, n_runs, n_left = kernels.parse(
            text, options.in_comment, options.first_feature, highest_grade, limit,
            features, grades, runs, comments, seen, left,
        )  # fmt: skip
        if wrong == kernels.FULL:
            n_left = 4 * len(left)
        elif wrong == kernels.BEYOND and options.n_features is None and _id(block, at) <= LARGEST_ID:
            # What was read of the block is read again; but widths at least double, and most files tell on line 1.
            width = max(_id(block, at) - options.first_feature + 1, min(2 * width, LARGEST_ID))
            n_left = 1024
        else:
            break
    # The numbers left come before the mistake, if there is one.
    for row, column, begin, end, token in left[:n_left].tolist():
        value = float(block[begin:end])
        if column >= 0:
            features[row, column] = value
            trouble = kernels.TOO_LARGE if abs(value) > limit else kernels.FINE
        else:
            grades[row] = value
            above = kernels.ABOVE_SCALE if value > highest_grade else kernels.FINE
            trouble = kernels.BELOW_ZERO if value < 0 else above
        if trouble != kernels.FINE:
            raise _mistake(block, token, trouble, options)
    if wrong != kernels.FINE:
        raise _mistake(block, at, wrong, options)
    used = np.flatnonzero(seen >= 0)
    begins = np.append(runs[:n_runs, 2], n_documents)
    spans = comments[:n_documents]
    return Documents(
        features=features[:n_documents, : int(used[-1]) + 1 if len(used) else 0],
        grades=grades[:n_documents],
        queries=[block[begin:end] for begin, end in runs[:n_runs, :2].tolist()],
        lengths=np.diff(begins),
        comments=_texts(block, spans) if (spans[:, 1] > spans[:, 0]).any() else None,
    )


def _texts(block: bytes, spans: NDArray[np.int64]) -> list[str] | None:
    texts = [block[begin:end].decode(errors="backslashreplace").strip() for begin, end in spans.tolist()]
    return texts if any(texts) else None


def _token(block: bytes, at: int) -> str:
    token = _TOKEN.match(block, at)
    return token[0].decode(errors="backslashreplace") if token else ""


def _id(block: bytes, at: int) -> int:
    return int(_token(block, at).partition(":")[0][:_SHOWN])


def _mistake(block: bytes, at: int, wrong: int, options: Options) -> Mistake:
    token = _token(block, at)
    shown = token if len(token) <= _SHOWN else token[:_SHOWN] + "..."
    feature, _, value = shown.partition(":")
    if wrong == kernels.QUERY and options.in_comment:
        what = "expected the query id in a comment at the end of the line, found none"
    elif wrong == kernels.QUERY:
        what = f"expected qid:<query> after the grade, found {shown!r}"
    elif wrong == kernels.GRADE or (wrong == kernels.ABOVE_SCALE and math.isinf(float(token))):
        what = f"grade is not a finite number: {shown!r}"
    elif wrong == kernels.BELOW_ZERO:
        what = f"grade is negative: {shown!r}"
    elif wrong == kernels.ABOVE_SCALE:
        what = f"grade is above {options.highest_grade:g}: {shown!r}"
    elif wrong == kernels.PAIR:
        what = f"expected <feature>:<number>, found {shown!r}"
    elif wrong == kernels.BELOW_FIRST:
        what = f"feature ids count from {options.first_feature}, found {shown!r}"
    elif wrong == kernels.BEYOND and options.n_features is None:
        what = f"feature id is above {LARGEST_ID:,}, found {shown!r}; n_features= allows it"
    elif wrong == kernels.BEYOND:
        what = f"feature id is not one of {options.n_features}, found {shown!r}"
    elif wrong == kernels.TWICE:
        what = f"feature {feature} is given twice"
    elif wrong == kernels.TOO_LARGE and math.isfinite(float(token.partition(":")[2])):
        what = f"feature {feature} is too large for float32: {value!r}"
    else:
        what = f"feature {feature} is not a finite number: {value!r}"
    return Mistake(block.count(b"\n", 0, at) + 1, what)


_MOST_THREADS = 4  # a disk or gzip hardly feeds more


def read_documents(files: Sequence[Path], options: Options, *, name: str) -> Dataset:
    """Read files as if they were one."""
    blocks = deque(_documents(files, options))
    n_features = options.n_features or max((block.features.shape[1] for block in blocks), default=0)
    n_documents = sum(len(block.grades) for block in blocks)
    if n_documents == 0 or n_features == 0:
        several = " and the others" if len(files) > 1 else ""
        raise ValueError(f"{files[0]}{several}: no {'features' if n_documents else 'documents'} in the file")
    grades = np.concatenate([block.grades for block in blocks])
    comments = None
    if any(block.comments is not None for block in blocks):
        comments = [text for block in blocks for text in block.comments or [""] * len(block.grades)]
    names: dict[bytes, int] = {}
    runs = [names.setdefault(query, len(names)) for block in blocks for query in block.queries]
    queries = np.repeat(np.array(runs, np.int64), np.concatenate([block.lengths for block in blocks]))
    order = np.argsort(queries, kind="stable")
    to = np.empty_like(order)
    to[order] = np.arange(len(order))
    return Dataset(
        features=_features(blocks, queries, to, (len(names), n_features), options),
        relevance=grades[order],
        offsets=np.concatenate(([0], np.cumsum(np.bincount(queries)))),
        query_ids=tuple(query.decode(errors="backslashreplace") for query in names),
        name=name,
        max_grade=options.max_grade or max(1, math.ceil(grades.max())),
        comments=None if comments is None else tuple(comments[document] for document in order.tolist()),
    )


def _features(
    blocks: deque[Documents],
    queries: NDArray[np.int64],
    to: NDArray[np.int64],
    shape: tuple[int, int],
    options: Options,
) -> Features:
    """Empties `blocks` on the way, so that features are never there twice."""
    least = np.full(shape, -np.inf)
    most = np.full(shape, np.inf)
    begins = np.cumsum([0, *(len(block.grades) for block in blocks)]).tolist()
    if options.rescale or options.marks:
        least, most = most, least
        for block, begin in zip(blocks, begins, strict=False):
            rows = slice(begin, begin + len(block.grades))
            kernels.bounds(block.features, queries[rows], MARKER if options.marks else math.inf, least, most)
    out: Features = np.empty((len(queries), shape[1]), options.dtype)
    for begin in begins[:-1]:
        block = blocks.popleft()
        rows = slice(begin, begin + len(block.grades))
        kernels.place(block.features, queries[rows], to[rows], least, most, options.rescale, out)
    return out


def _documents(files: Sequence[Path], options: Options) -> Iterator[Documents]:
    waiting: deque[tuple[Path, int, Future[Documents]]] = deque()
    n_columns = 0

    def next_documents() -> Documents:
        path, line, future = waiting.popleft()
        try:
            return future.result()
        except Mistake as mistake:
            raise ValueError(f"{path}, line {line - 1 + mistake.line}: {mistake}") from None

    n_threads = min(os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(n_threads) as pool:
        for path in files:
            for line, block in line_blocks(path, size=SIZE):
                whole = block if block.endswith(b"\n") else block + b"\n"
                waiting.append((path, line, pool.submit(parse_block, whole, options, n_columns=n_columns)))
                # The first tells the others how wide the rows are, and has the kernels compiled.
                if n_columns == 0 or len(waiting) > n_threads:
                    documents = next_documents()
                    n_columns = max(n_columns, documents.features.shape[1])
                    yield documents
        while waiting:
            yield next_documents()
