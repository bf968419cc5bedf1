"""Names at the ends of lines: apart, in order, inside of the figure."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop.plotting import figures
from rankloop.plotting.line_labels import label_line_ends, spread

positions = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(positions)
def test_labels_stay_in_order_apart_and_inside(wanted: list[float]) -> None:
    placed = spread(wanted, gaps=[0.1] * len(wanted), low=0.0, high=1.0)
    by_wish = [place for _, place in sorted(zip(wanted, placed, strict=True))]
    assert by_wish == sorted(by_wish)
    assert all(after - before >= 0.1 - 1e-9 for before, after in itertools.pairwise(by_wish))
    assert by_wish[0] >= 0.05 - 1e-9
    assert by_wish[-1] <= 0.95 + 1e-9


def test_labels_with_room_enough_do_not_move() -> None:
    assert spread([0.9, 0.2, 0.5], gaps=[0.1, 0.2, 0.1], low=0.0, high=1.0) == [0.9, 0.2, 0.5]


def test_too_many_labels_share_the_room() -> None:
    placed = spread([0.5] * 20, gaps=[0.1] * 20, low=0.0, high=1.0)
    assert placed == pytest.approx([0.025 + 0.05 * i for i in range(20)])


def test_no_labels_no_positions_and_wrong_gaps_are_named() -> None:
    assert spread([], gaps=[], low=0.0, high=1.0) == []
    with pytest.raises(ValueError, match="one entry for each of the 2 positions, got 1"):
        spread([0.1, 0.2], gaps=[0.1], low=0.0, high=1.0)


def test_names_stand_beside_the_axes_in_the_colour_of_their_line_and_apart() -> None:
    figure, (axes,) = figures.canvas(title="t", caption="c")
    for height, (name, colour) in enumerate(
        {"one": figures.BLUE, "other": figures.ORANGE, "_none": figures.INK}.items()
    ):
        figures.curve(axes, [0, 1], [0, 1 + 0.001 * height], label=name, colour=colour)
    label_line_ends(axes, size=13, right=0.98)
    written = {text.get_text(): text for text in figure.texts}
    assert "_none" not in written
    assert written["one"].get_color() == figures.BLUE
    boxes = [written[name].get_window_extent() for name in ("one", "other")]
    assert boxes[0].y1 < boxes[1].y0
    assert all(axes.get_window_extent().x1 < box.x0 and box.x1 < 0.99 * figure.bbox.width for box in boxes)


def test_axes_without_named_lines_keep_their_place() -> None:
    _, (axes,) = figures.canvas(title="t", caption="c")
    before = axes.get_position().bounds
    label_line_ends(axes, size=13, right=0.5)
    assert axes.get_position().bounds == before
