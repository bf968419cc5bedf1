"""How much of a list comes back, and what may not."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop.base import Feedback
from rankloop.feedback import Clicks, FullRelevance, Nothing, TopK

KINDS: list[Feedback] = [TopK(), TopK(3), FullRelevance(), Clicks(), Nothing()]


@pytest.mark.judges("2015-001")
@given(st.integers(1, 50), st.integers(1, 50))
def test_top_k_reveals_k_positions_or_all(k: int, n: int) -> None:
    assert TopK(k).length(n) == min(k, n)
    assert FullRelevance().length(n) == Clicks().length(n) == n
    assert Nothing().length(n) == 0


def test_kinds_are_told_apart() -> None:
    assert [kind.kind for kind in KINDS] == ["relevance", "relevance", "relevance", "clicks", "nothing"]
    assert TopK(2) == TopK(2) != TopK(3)
    assert pickle.loads(pickle.dumps(TopK(2))) == TopK(2)
    assert len({*KINDS, *KINDS}) == 5


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_was_revealed_is_read_as_numbers(kind: Feedback) -> None:
    n = kind.length(5)
    for values in ([1] * n, (1,) * n, np.ones(n, np.int8), np.ones(n), np.ones(n, bool)):
        read = kind.check(values, 5)
        assert read.dtype == np.float64
        assert read.tolist() == [1.0] * n
    wrong: list[Any] = [[0.0] * (n + 1), [[0.0] * max(n, 1)], 0.0]
    if n:
        wrong += [[0.0] * (n - 1), []]
        wrong += [[*[1.0] * (n - 1), bad] for bad in (np.nan, np.inf, -np.inf, -1e-9, None, "x")]
    for revealed in wrong:
        with pytest.raises(ValueError, match="feedback"):
            kind.check(revealed, 5)


def test_a_click_is_one_or_none() -> None:
    for clicks in ([0.5, 0, 0], [2, 0, 0]):
        with pytest.raises(ValueError, match="click"):
            Clicks().check(clicks, 3)  # type: ignore[arg-type]
    assert Clicks().check([1, 0, 1], 3).tolist() == [1, 0, 1]  # type: ignore[arg-type]


def test_a_k_that_is_none_is_refused() -> None:
    for k in (0, -1, 1.5, None, "2", True):
        with pytest.raises(ValueError, match="k must"):
            TopK(k)  # type: ignore[arg-type]


def test_a_k_written_as_a_float_reveals_a_whole_number() -> None:
    assert np.arange(5)[: TopK(2.0).length(5)].tolist() == [0, 1]  # type: ignore[arg-type]
