from __future__ import annotations

import subprocess
import sys

import pytest

from rankloop.plotting import figures
from rankloop.plotting.thinning import thin


def test_a_caption_is_found_again_and_takes_its_own_room() -> None:
    caption = "Look at the end of the line. " * 10
    figure, panels = figures.canvas(title="t", caption=caption, rows=2, columns=2)
    text, share = figures.caption_of(figure)
    assert text == caption.strip()
    assert len(panels) == 4
    assert all(axes.get_position().y0 > share for axes in panels)


def test_rows_leave_room_for_their_names() -> None:
    _, panels = figures.canvas(title="t", caption="c", columns=2, width=9.0)
    for axes, names in zip(panels, (["a", "b"], ["a very long name of a ranker", "b"]), strict=True):
        figures.row_axis(axes, names)
    starts = [min(label.get_window_extent().x0 for label in axes.get_yticklabels()) for axes in panels]
    assert starts[0] > 0
    assert starts[1] > panels[0].get_window_extent().x1
    assert [label.get_text() for label in panels[1].get_yticklabels()] == [
        "b",
        "a very long name of a ranker",
    ]


def test_a_power_law_is_named_and_its_expected_slope_drawn() -> None:
    _, (axes,) = figures.canvas(title="t", caption="c")
    figures.rate_curve(axes, [1, 10, 100], [2, 20, 200], exponent=1 / 2, label="lost", colour=figures.BLUE)
    theory, dots = axes.get_lines()
    assert list(theory.get_ydata()) == pytest.approx([20, 200 / 10**0.5, 200])
    assert dots.get_label() == r"lost: $\mathbf{T^{1.00}}$"
    assert figures.power_text(0.5, 0.67) == r"$\mathbf{T^{0.50–0.67}}$"


def test_thinning_keeps_the_first_and_the_last_row() -> None:
    kept = thin(10_000, points=300)
    assert (kept[0], kept[-1]) == (0, 9_999)
    assert len(kept) <= 300


def test_no_global_plotting_state() -> None:
    code = (
        "import sys; from rankloop.plotting import figures; "
        "figures.finish(figures.canvas(title='', caption='')[0]); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
