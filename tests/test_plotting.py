"""The look of figures and pages: captions, names at the lines, files that stay the same, pictures inside of a page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rankloop import plotting
from rankloop.plotting import NIGHT, inline, label_line_ends, variable

SVG = f"""<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 200 100" version="1.1">
<metadata>when and by whom</metadata><style type="text/css">*{{fill: red}}</style><!-- a note -->
<defs><path id="p1"/></defs><use xlink:href="#p1" style="stroke: {plotting.BLUE}" clip-path="url(#p1)"/>
</svg>
"""


def test_a_caption_is_found_again_and_takes_its_own_room() -> None:
    caption = "Look at the end of the line. " * 10
    figure, panels = plotting.canvas(title="t", caption=caption, rows=2, columns=2)
    text, share = plotting.caption_of(figure)
    assert text == caption.strip()
    assert len(panels) == 4
    assert all(axes.get_position().y0 > share for axes in panels)


def test_rows_leave_room_for_their_names() -> None:
    _, panels = plotting.canvas(title="t", caption="c", columns=2, width=9.0)
    for axes, names in zip(panels, (["a", "b"], ["a very long name of a ranker", "b"]), strict=True):
        plotting.row_axis(axes, names)
    starts = [min(label.get_window_extent().x0 for label in axes.get_yticklabels()) for axes in panels]
    assert starts[0] > 0
    assert starts[1] > panels[0].get_window_extent().x1
    assert [label.get_text() for label in panels[1].get_yticklabels()] == [
        "b",
        "a very long name of a ranker",
    ]


def test_a_power_law_is_named_and_its_expected_slope_drawn() -> None:
    _, (axes,) = plotting.canvas(title="t", caption="c")
    plotting.rate_curve(axes, [1, 10, 100], [2, 20, 200], exponent=1 / 2, label="lost", colour=plotting.BLUE)
    theory, dots = axes.get_lines()
    assert list(theory.get_ydata()) == pytest.approx([20, 200 / 10**0.5, 200])
    assert dots.get_label() == r"lost: $\mathbf{T^{1.00}}$"
    assert plotting.power_text(0.5, 0.67) == r"$\mathbf{T^{0.50–0.67}}$"


def test_no_global_plotting_state() -> None:
    code = (
        "import sys; from rankloop import plotting; "
        "plotting.finish(plotting.canvas(title='', caption='')[0]); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_pdf_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    for name in ("one", "two"):
        figure, _ = plotting.canvas(title="A title", caption="c")
        plotting.save(figure, tmp_path / name, ending="pdf")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes().startswith(b"%PDF")


def test_titles_are_left_out_on_request_and_stay_in_the_figure(tmp_path: Path) -> None:
    figure, (axes,) = plotting.canvas(title="A title", subtitle="more", caption="A caption. " * 20)
    axes.plot([1, 2], [3, 4], label="_line")
    heights = []
    for titles in (True, False, True):
        plotting.save(figure, tmp_path / "figure.svg", ending="svg", titles=titles)
        text = (tmp_path / "figure.svg").read_text()
        assert [f'id="{name}"' in text for name in ("title", "subtitle", "caption")] == [titles] * 3
        box = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', text)
        assert box is not None
        heights.append(float(box[1]))
    assert heights[1] < heights[0] - 72  # an inch and more was taken by the words
    assert heights[2] == heights[0]


def test_nothing_is_left_free_for_words_that_are_not_there() -> None:
    bare, panels = plotting.canvas(title="", caption="")
    assert not bare.texts
    assert panels[0].get_position().y1 > plotting.canvas(title="t", caption="")[1][0].get_position().y1


def test_a_notebook_shows_a_figure() -> None:
    figure, _ = plotting.canvas(title="t", caption="c")
    assert isinstance(figure, plotting.Picture)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_names_stand_beside_the_axes_in_the_colour_of_their_line_and_apart() -> None:
    figure, (axes,) = plotting.canvas(title="t", caption="c")
    for height, (name, colour) in enumerate(
        {"one": plotting.BLUE, "other": plotting.ORANGE, "_none": plotting.INK}.items()
    ):
        plotting.curve(axes, [0, 1], [0, 1 + 0.001 * height], label=name, colour=colour)
    label_line_ends(axes, size=13, right=0.98)
    written = {text.get_text(): text for text in figure.texts}
    assert "_none" not in written
    assert written["one"].get_color() == plotting.BLUE
    boxes = [written[name].get_window_extent() for name in ("one", "other")]
    assert boxes[0].y1 < boxes[1].y0
    assert all(axes.get_window_extent().x1 < box.x0 and box.x1 < 0.99 * figure.bbox.width for box in boxes)


def test_axes_without_named_lines_keep_their_place() -> None:
    _, (axes,) = plotting.canvas(title="t", caption="c")
    before = axes.get_position().bounds
    label_line_ends(axes, size=13, right=0.5)
    assert axes.get_position().bounds == before


def made(text: str = SVG, *, share: float = 0.25) -> str:
    return inline(text, prefix="toy-curve", description='falls & "settles"', caption_share=share)


def test_only_the_drawing_is_left() -> None:
    svg = made()
    assert svg.startswith('<svg viewBox="0 0 200 75" role="img"')
    for gone in ("xmlns", "xlink", "metadata", "<style", "<!--", "<?xml"):
        assert gone not in svg


def test_ids_and_references_carry_the_prefix() -> None:
    svg = made()
    assert 'id="toy-curve-p1"' in svg
    assert 'href="#toy-curve-p1"' in svg
    assert "url(#toy-curve-p1)" in svg


def test_colours_become_variables_and_words_are_escaped() -> None:
    svg = made()
    assert f"var({variable(plotting.BLUE)})" in svg
    assert not [colour for colour in NIGHT if colour in svg]
    assert "falls &amp; &quot;settles&quot;" in svg


def test_an_svg_of_unknown_size_is_refused() -> None:
    with pytest.raises(ValueError, match="viewBox"):
        made(SVG.replace("viewBox", "box"))
