from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop.experiments.plotting import figures
from rankloop.experiments.plotting.line_labels import spread

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


def test_a_caption_is_found_again_and_takes_its_own_room() -> None:
    caption = "Look at the end of the line. " * 10
    figure, panels = figures.canvas(title="t", caption=caption, rows=2, columns=2)
    text, share = figures.caption_of(figure)
    assert text == caption.strip()
    assert len(panels) == 4
    assert all(axes.get_position().y0 > share for axes in panels)


def test_thinning_keeps_the_first_and_the_last_row() -> None:
    kept = figures.thin(10_000, points=300)
    assert (kept[0], kept[-1]) == (0, 9_999)
    assert len(kept) <= 300


def test_no_global_plotting_state() -> None:
    code = (
        "import sys; from rankloop.experiments import drawing; "
        "drawing.finish(drawing.canvas(title='', caption='')[0]); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
