"""Standard errors out of an information matrix in blocks: items of one query each, bordered by what all share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_LEAST = 1e-10  # information that is added to each chance, so that one without any has a huge error


class Layout(NamedTuple):
    """For each chance: its block (-1 where it is shared), its place there, the block's length, and its start."""

    block: NDArray[np.int64]
    place: NDArray[np.int64]
    size: NDArray[np.int64]
    start: NDArray[np.int64]


class Blocks(NamedTuple):
    """The matrix: all blocks one after the other, their rows of the border, and the shared corner."""

    inner: Numbers
    border: Numbers
    shared: Numbers


def layout(block: NDArray[np.int64], n_shared: int) -> tuple[Layout, Blocks]:
    """An empty matrix for chances of items in these blocks, and `n_shared` more behind them."""
    n = len(block)
    order = np.argsort(block, kind="stable")
    sizes = np.bincount(block)
    first = np.cumsum(sizes) - sizes
    place = np.empty(n, np.int64)
    place[order] = np.arange(n) - first[block[order]]
    begins = np.cumsum(sizes**2) - sizes**2
    rest = np.full(n_shared, -1)
    where = Layout(
        np.concatenate((block, rest)),
        np.concatenate((place, np.arange(n_shared))),
        np.concatenate((sizes[block], rest)),
        np.concatenate((begins[block], rest)),
    )
    return where, Blocks(
        np.zeros(int((sizes**2).sum())), np.zeros((n, n_shared)), np.zeros((n_shared, n_shared))
    )


def variances(where: Layout, matrix: Blocks, *, extra: Numbers) -> Numbers:
    """The diagonal of the inverse, after `extra` was added to the diagonal."""
    n, n_shared = matrix.border.shape
    corner = matrix.shared + np.diag(extra[n:] + _LEAST)
    groups = []
    of_items = np.arange(n)
    for d in np.unique(where.size[:n]):
        members = of_items[where.size[:n] == d]
        members = members[np.lexsort((where.place[members], where.block[members]))].reshape(-1, d)
        begins = where.start[members[:, 0]]
        block = matrix.inner[begins[:, None] + np.arange(d * d)].reshape(-1, d, d).copy()
        block[:, np.arange(d), np.arange(d)] += extra[members] + _LEAST
        inverse = np.linalg.inv(block)
        pulled = inverse @ matrix.border[members]
        corner -= np.einsum("bij,bik->jk", matrix.border[members], pulled)
        groups.append((members, np.einsum("bii->bi", inverse), pulled))
    spread = _inverse(corner)
    found = np.empty(n + n_shared)
    found[n:] = np.diag(spread)
    for members, own, pulled in groups:
        found[members] = own + np.einsum("bij,jk,bik->bi", pulled, spread, pulled)
    return np.maximum(found, 0.0)


def _inverse(matrix: Numbers) -> Numbers:
    # A direction that nothing is known of has an eigenvalue near 0, of either sign: its variance is huge, not small.
    values, vectors = np.linalg.eigh(matrix)
    least = max(float(values.max(initial=0.0)) * 1e-13, _LEAST)
    inverse: Numbers = (vectors / np.maximum(values, least)) @ vectors.T
    return inverse
