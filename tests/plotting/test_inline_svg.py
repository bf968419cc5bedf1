"""A figure's SVG inside of a page: no outside names, no clashing ids, colours that follow the page."""

from __future__ import annotations

import pytest

from rankloop.plotting import figures
from rankloop.plotting.inline_svg import inline
from rankloop.plotting.report_style import NIGHT, variable

SVG = f"""<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 200 100" version="1.1">
<metadata>when and by whom</metadata><style type="text/css">*{{fill: red}}</style><!-- a note -->
<defs><path id="p1"/></defs><use xlink:href="#p1" style="stroke: {figures.BLUE}" clip-path="url(#p1)"/>
</svg>
"""


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
    assert f"var({variable(figures.BLUE)})" in svg
    assert not [colour for colour in NIGHT if colour in svg]
    assert "falls &amp; &quot;settles&quot;" in svg


def test_an_svg_of_unknown_size_is_refused() -> None:
    with pytest.raises(ValueError, match="viewBox"):
        made(SVG.replace("viewBox", "box"))
