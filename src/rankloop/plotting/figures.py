"""The look of our figures: large type, few lines, names at the curves, a caption that says what to see.

Figures are plain `Figure` objects, never pyplot's: nothing global is touched.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from rankloop.plotting.line_labels import label_line_ends

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike

# Okabe and Ito's colours, which people with any kind of colour blindness can tell apart, darkened for thin lines.
BLUE, ORANGE, GREEN, PURPLE, GOLD, SKY = "#0068a8", "#c84e00", "#00805c", "#a8458a", "#a87400", "#3f93c4"
INK, MUTED, GRID, PAPER = "#1d2530", "#5b6673", "#dfe3e8", "#ffffff"

TITLE_SIZE, LABEL_SIZE, TICK_SIZE, CAPTION_SIZE = 16.0, 13.0, 12.0, 12.0
_CAPTION_LINE = CAPTION_SIZE * 1.5 / 72.0  # inches
_LEFT, _TOP, _BOTTOM, _BETWEEN = 0.85, 0.82, 0.72, 1.0  # inches around and between panels
_TOP_UNTITLED = 0.5


ENDINGS = ("png", "svg", "pdf")
_WORDS = {"title", "subtitle", "caption"}  # the texts around the panels, by their names


class Picture(Figure):
    """A figure that a notebook shows as the result of a cell, whether or not pyplot has been imported."""

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        self.savefig(written, format="png", dpi=100, facecolor=self.get_facecolor())
        return written.getvalue()


def canvas(
    *,
    title: str,
    caption: str,
    subtitle: str = "",
    width: float = 8.6,
    height: float = 4.9,
    rows: int = 1,
    columns: int = 1,
    named_panels: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with its title above, its caption below, and panels between them.

    `width` and `height` are inches; the caption's lines are added to the height. The caption carries the name
    "caption", so that the report can set it as text of its own. `finish` makes room for the names of the lines.
    Without a title or a caption nothing is left free for it; `named_panels` have a line more above them.
    """
    lines = textwrap.wrap(caption, width=round(width * 72.0 / (CAPTION_SIZE * 0.56)))
    below = len(lines) * _CAPTION_LINE + 0.2 if lines else 0.0
    above = (_TOP if title else _TOP_UNTITLED) + (0.3 if subtitle else 0.0) + (0.2 if named_panels else 0.0)
    total = height + below
    figure = Picture(figsize=(width, total), dpi=150, facecolor=PAPER)
    FigureCanvasAgg(figure)
    if title:
        figure.text(
            0.15 / width,
            1 - 0.14 / total,
            title,
            size=TITLE_SIZE,
            weight="bold",
            color=INK,
            va="top",
            gid="title",
        )
    if subtitle:
        figure.text(
            0.15 / width, 1 - 0.47 / total, subtitle, size=CAPTION_SIZE, color=MUTED, va="top", gid="subtitle"
        )
    if lines:
        figure.text(
            0.15 / width,
            (below - 0.05) / total,
            "\n".join(lines),
            size=CAPTION_SIZE,
            color=MUTED,
            va="top",
            linespacing=1.4,
            gid="caption",
        )
    slot_width = (width - 0.08) / columns
    between = _BETWEEN + (0.2 if named_panels else 0.0)
    panel_height = (height - above - _BOTTOM - (rows - 1) * between) / rows
    panels = []
    for row in range(rows):
        for column in range(columns):
            left = column * slot_width + _LEFT
            bottom = below + _BOTTOM + (rows - 1 - row) * (panel_height + between)
            place = (left / width, bottom / total, (slot_width - _LEFT) / width, panel_height / total)
            panels.append(_dress(figure.add_axes(place)))
    return figure, panels


def _dress(axes: Axes) -> Axes:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MUTED)
    axes.tick_params(which="both", labelsize=TICK_SIZE, color=MUTED, labelcolor=INK)
    axes.grid(True, which="major", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_facecolor("none")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    return axes


def name_axes(axes: Axes, *, x: str, y: str, title: str = "") -> None:
    """Label the axes; `y` is written flat above its axis, where it is easy to read."""
    axes.set_xlabel(x, size=LABEL_SIZE, color=INK, labelpad=6)
    head = f"{title}\n{y}" if title else y
    axes.set_title(head, loc="left", size=LABEL_SIZE, color=INK, pad=8)


def curve(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    *,
    label: str,
    colour: str,
    band: tuple[ArrayLike, ArrayLike] | None = None,
    dashed: bool = False,
    points: bool = False,
) -> Line2D:
    """A line, with the band (low, high) around it."""
    if band is not None:
        axes.fill_between(x, *band, color=colour, alpha=0.18, linewidth=0)
    (line,) = axes.plot(
        x,
        y,
        color=colour,
        label=label,
        linewidth=1.4 if dashed else 2.4,
        linestyle=(0, (5, 3)) if dashed else "-",
        marker="o" if points else None,
        markersize=6,
        solid_capstyle="round",
    )
    return line


def mean_curve(
    axes: Axes,
    found: pl.DataFrame,
    *,
    label: str,
    colour: str,
    banded: bool = True,
    scale: ArrayLike = 1.0,
    dashed: bool = False,
    points: bool = False,
) -> Line2D:
    """The mean of many runs and its band, over `scale`, against the first column of `found`; see `runs.over_runs`."""
    x, mean, low, high = (found[column].to_numpy() for column in (found.columns[0], "mean", "low", "high"))
    unit = np.asarray(scale)
    band = (low / unit, high / unit) if banded else None
    return curve(axes, x, mean / unit, label=label, colour=colour, band=band, dashed=dashed, points=points)


def rate_curve(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    *,
    exponent: float,
    label: str,
    colour: str,
    band: tuple[ArrayLike, ArrayLike] | None = None,
) -> None:
    """Dots with the power law fitted to them in their name; dashed, the expected power through the last dot."""
    theory = [y[-1] * (at / x[-1]) ** exponent for at in x]
    curve(axes, x, theory, label="_theory", colour=colour, dashed=True)
    named = f"{label}: {power_text(power_law(x, y)[0])}"
    curve(axes, x, y, label=named, colour=colour, band=band, points=True)


def power_text(low: float, high: float | None = None) -> str:
    """T to a power, or to a range of powers, as a label."""
    first, last = f"{low:.2f}", f"{low if high is None else high:.2f}"
    return rf"$\mathbf{{T^{{{first if first == last else first + '–' + last}}}}}$"


def guide(axes: Axes, y: float, text: str) -> None:
    """A thin horizontal line with its meaning written on it."""
    axes.axhline(y, color=MUTED, linewidth=1.1, linestyle=(0, (2, 2)), label="_guide")
    axes.annotate(
        text,
        (0.0, y),
        xycoords=("axes fraction", "data"),
        xytext=(4, -4),
        textcoords="offset points",
        size=TICK_SIZE,
        color=MUTED,
        va="top",
    )


def log_axis(axes: Axes, *, x: bool = True, y: bool = False) -> None:
    """Logarithmic axes whose ticks are plain numbers: 1,000 and not 10^3."""
    for wanted, axis, scale in ((x, axes.xaxis, axes.set_xscale), (y, axes.yaxis, axes.set_yscale)):
        if wanted:
            scale("log")
            axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
            axis.set_minor_formatter(NullFormatter())


def count_axis(axes: Axes) -> None:
    """Write the numbers of a linear x axis with their thousands marked."""
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))


def time_axis(axes: Axes, *, end: float, label: str) -> None:
    """Rounds from 0 to the `end` along a linear x axis, with three ticks, and the label above."""
    axes.set_xlim(0, end)
    axes.set_xticks([0, end / 2, end])
    count_axis(axes)
    name_axes(axes, x="round t", y=label)


def row_axis(axes: Axes, names: Sequence[str]) -> None:
    """A row for each name, the first on top; the panel gives way to the widest name and to the last number below."""
    axes.set_yticks(range(len(names)), names[::-1], size=LABEL_SIZE)
    axes.set_ylim(-0.6, len(names) - 0.4)
    figure = axes.get_figure(root=True)
    assert figure is not None
    widest = max(label.get_window_extent().width for label in axes.get_yticklabels()) / figure.dpi
    slot, width = axes.get_position(), figure.get_figwidth()
    left, right = slot.x0 + (widest + 0.3 - _LEFT) / width, slot.x1 - 0.35 / width
    axes.set_position((left, slot.y0, right - left, slot.height))


def dot(
    axes: Axes, x: float, y: float, *, error: float, colour: str, filled: bool, line: float | None = None
) -> None:
    """A dot, filled or open, with its error to both sides."""
    face = colour if filled else PAPER
    axes.errorbar(
        x,
        y,
        xerr=error,
        marker="o",
        markersize=9,
        color=colour,
        markerfacecolor=face,
        markeredgewidth=1.8,
        elinewidth=line,
    )


def plain_number(value: float) -> str:
    """A number in plain notation.

    >>> plain_number(10_000), plain_number(1e6), plain_number(0.05)
    ('10,000', '1 million', '0.05')
    """
    if value >= 1e6 and value % 1e5 == 0:
        return f"{value / 1e6:g} million"
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def span(values: Iterable[float], form: str = ".0%") -> str:
    """The least and the largest of some numbers, in words.

    >>> span([0.31, 0.12]), span([1.84, 1.82], ".1f")
    ('12% to 31%', '1.8')
    """
    found = sorted(values)
    low, high = (f"{value:{form}}" for value in (found[0], found[-1]))
    return low if low == high else f"{low} to {high}"


def power_law(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Exponent and constant of the line y = constant * x**exponent fitted by least squares in logarithms.

    >>> exponent, constant = power_law([1, 10, 100], [2, 20, 200])
    >>> round(exponent, 6), round(constant, 6)
    (1.0, 2.0)
    """
    exponent, intercept = np.polyfit(
        np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float)), 1
    )
    return float(exponent), math.exp(float(intercept))


def finish(figure: Figure) -> Figure:
    """Write the names at the line ends, once the axes have their final limits."""
    width = figure.get_figwidth()
    for axes in figure.get_axes():
        own = axes.get_position()
        to_the_right = [
            other.get_position().x0 - _LEFT / width
            for other in figure.get_axes()
            if other.get_position().x0 > own.x1
            and other.get_position().y0 < own.y1
            and other.get_position().y1 > own.y0
        ]
        label_line_ends(axes, size=LABEL_SIZE, right=min(to_the_right, default=1.0 - 0.08 / width))
    return figure


def caption_of(figure: Figure) -> tuple[str, float]:
    """The caption as one line of text, and the share of the figure's height that it takes."""
    for text in figure.texts:
        if text.get_gid() == "caption":
            return " ".join(text.get_text().split("\n")), float(text.get_position()[1])
    return "", 0.0


def save(figure: Figure, path: Path, *, ending: str, titles: bool = True) -> None:
    """Write a PNG, SVG or PDF that is the same, byte for byte, whenever it is made from the same rows.

    Without `titles`, the title above and the caption below are left out, and their room too.
    """
    metadata: dict[str, Any] = {
        "png": {"Software": None},
        "svg": {"Date": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    }[ending]
    hidden = [] if titles else [text for text in figure.texts if text.get_gid() in _WORDS]
    # Text of an SVG as outlines: the picture looks the same where our font is not installed. A PDF brings its font.
    with matplotlib.rc_context({"svg.hashsalt": "rankloop", "svg.fonttype": "path", "pdf.fonttype": 42}):
        for text in hidden:
            text.set_visible(False)
        figure.savefig(
            path,
            format=ending,
            metadata=metadata,
            facecolor=figure.get_facecolor(),
            bbox_inches=None if titles else "tight",
        )
        for text in hidden:
            text.set_visible(True)
