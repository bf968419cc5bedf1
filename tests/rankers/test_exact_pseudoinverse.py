"""The exact pseudo-inverse against NumPy's, and against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.rankers.feedexp3 import pseudoinverse


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (12, 7), (30, 16)])
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_it_is_that_of_numpy(shape: tuple[int, int], rank: int) -> None:
    rng = np.random.default_rng(sum(shape) + rank)
    H = rng.integers(-2, 3, (shape[0], rank)) @ rng.integers(-2, 3, (rank, shape[1]))
    np.testing.assert_allclose(pseudoinverse(H), np.linalg.pinv(H.astype(float), rcond=1e-10), atol=1e-12)


def test_rows_that_stand_twice_share() -> None:
    H = np.array([[1, 0], [1, 0], [0, 2]])
    assert pseudoinverse(H).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.5]]


def test_of_zeros() -> None:
    assert pseudoinverse(np.zeros((3, 2), np.int64)).tolist() == [[0.0] * 3] * 2


def test_every_entry_is_the_nearest_number() -> None:
    assert pseudoinverse(np.array([[3]])).tolist() == [[1 / 3]]
    assert pseudoinverse(np.array([[1, 1, 1]])).tolist() == [[1 / 3]] * 3
