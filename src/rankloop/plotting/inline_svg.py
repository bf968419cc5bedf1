"""Puts a figure's SVG into an HTML page: no outside names, no clashing ids, colours that follow the page."""

from __future__ import annotations

import html
import re

from rankloop.plotting.report_style import NIGHT, variable


def inline(text: str, *, prefix: str, description: str, caption_share: float) -> str:
    """The `<svg>` element of a figure, ready to stand in a page.

    Parameters
    ----------
    prefix : str
        Put before every id, since several pictures share the page.
    description : str
        A description of the picture for screen readers.
    caption_share : float
        The share of the height taken by the caption at the bottom, which is left out of view; the page sets it
        as text.
    """
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r"<!--.*?-->|<style.*?</style>", "", svg, flags=re.DOTALL
    )  # a style would dress the whole page
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    for colour in NIGHT:
        svg = svg.replace(colour, f"var({variable(colour)})")
    head, rest = svg.split(">", 1)
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    if box is None:
        raise ValueError("text must be an SVG with a viewBox that starts at 0 0")
    width, height = float(box[1]), float(box[2]) * (1.0 - caption_share)
    label = html.escape(description, quote=True)
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">{rest.strip()}'
