"""Fewer points for a line, and names that do not cover each other."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop.spacing import spread, thin


def test_thinning_keeps_the_first_and_the_last_row() -> None:
    kept = thin(10_000, points=300)
    assert (kept[0], kept[-1]) == (0, 9_999)
    assert len(kept) <= 300


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_labels_stay_in_order_apart_and_inside(wanted: list[float]) -> None:
    placed = spread(wanted, gaps=[0.1] * len(wanted), low=0.0, high=1.0)
    by_wish = [place for _, place in sorted(zip(wanted, placed, strict=True))]
    assert by_wish == sorted(by_wish)
    assert all(after - before >= 0.1 - 1e-9 for before, after in itertools.pairwise(by_wish))
    assert by_wish[0] >= 0.05 - 1e-9
    assert by_wish[-1] <= 0.95 + 1e-9


def test_labels_move_only_where_they_must_and_share_the_room() -> None:
    assert spread([0.9, 0.2, 0.5], gaps=[0.1, 0.2, 0.1], low=0.0, high=1.0) == [0.9, 0.2, 0.5]
    placed = spread([0.5] * 20, gaps=[0.1] * 20, low=0.0, high=1.0)
    assert placed == pytest.approx([0.025 + 0.05 * i for i in range(20)])
    assert spread([], gaps=[], low=0.0, high=1.0) == []
    with pytest.raises(ValueError, match="one entry for each of the 2 positions, got 1"):
        spread([0.1, 0.2], gaps=[0.1], low=0.0, high=1.0)
