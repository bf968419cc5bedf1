from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def test_a_pdf_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    for name in ("one", "two"):
        figure, _ = figures.canvas(title="A title", caption="c")
        figures.save(figure, tmp_path / name, ending="pdf")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes().startswith(b"%PDF")


def test_titles_are_left_out_on_request_and_stay_in_the_figure(tmp_path: Path) -> None:
    figure, (axes,) = figures.canvas(title="A title", subtitle="more", caption="A caption. " * 20)
    axes.plot([1, 2], [3, 4], label="_line")
    heights = []
    for titles in (True, False, True):
        figures.save(figure, tmp_path / "figure.svg", ending="svg", titles=titles)
        text = (tmp_path / "figure.svg").read_text()
        assert [f'id="{name}"' in text for name in ("title", "subtitle", "caption")] == [titles] * 3
        box = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', text)
        assert box is not None
        heights.append(float(box[1]))
    assert heights[1] < heights[0] - 72  # an inch and more was taken by the words
    assert heights[2] == heights[0]


def test_nothing_is_left_free_for_words_that_are_not_there() -> None:
    bare, panels = figures.canvas(title="", caption="")
    assert not bare.texts
    assert panels[0].get_position().y1 > figures.canvas(title="t", caption="")[1][0].get_position().y1


def test_a_notebook_shows_a_figure() -> None:
    figure, _ = figures.canvas(title="t", caption="c")
    assert isinstance(figure, figures.Picture)
    assert figure._repr_png_().startswith(b"\x89PNG")
