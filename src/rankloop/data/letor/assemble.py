"""Blocks of documents, parsed several at a time, put together to a dataset."""

import math
import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankloop.data import text_blocks
from rankloop.data.dataset import Dataset, Features
from rankloop.data.letor import parse_block
from rankloop.data.letor.options import Options
from rankloop.data.letor.parse_block import Documents, Rules
from rankloop.data.letor.presets import MARKER
from rankloop.kernels import text as query_scale

_MOST_THREADS = 4  # a disk or gzip hardly feeds more


def read(files: Sequence[Path], options: Options, *, name: str) -> Dataset:
    """Read files as if they were one."""
    as_written = not options.rescale and not options.marks
    rules = Rules(
        in_comment=options.in_comment,
        first_feature=options.first_feature,
        n_features=options.n_features,
        max_grade=sys.float_info.max if options.max_grade is None else options.max_grade,
        limit=float(np.finfo(options.dtype if as_written else np.float64).max),
    )
    blocks = deque(_documents(files, rules))
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
            query_scale.bounds(
                block.features, queries[rows], MARKER if options.marks else math.inf, least, most
            )
    out: Features = np.empty((len(queries), shape[1]), options.dtype)
    for begin in begins[:-1]:
        block = blocks.popleft()
        rows = slice(begin, begin + len(block.grades))
        query_scale.place(block.features, queries[rows], to[rows], least, most, options.rescale, out)
    return out


def _documents(files: Sequence[Path], rules: Rules) -> Iterator[Documents]:
    waiting: deque[tuple[int, Future[Documents]]] = deque()
    n_lines = [0] * len(files)
    n_columns = 0

    def next_documents() -> Documents:
        file, future = waiting.popleft()
        try:
            documents = future.result()
        except parse_block.Mistake as mistake:
            raise ValueError(f"{files[file]}, line {n_lines[file] + mistake.line}: {mistake}") from None
        n_lines[file] += documents.n_lines
        return documents

    n_threads = min(os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(n_threads) as pool:
        for file, path in enumerate(files):
            for block in text_blocks.blocks(path):
                waiting.append((file, pool.submit(parse_block.parse, block, rules, n_columns=n_columns)))
                # The first tells the others how wide the rows are, and has the kernels compiled.
                if n_columns == 0 or len(waiting) > n_threads:
                    documents = next_documents()
                    n_columns = max(n_columns, documents.features.shape[1])
                    yield documents
        while waiting:
            yield next_documents()
