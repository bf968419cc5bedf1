"""How figures and pages look: large type, few lines, names at the curves, a caption that says what to see.

Figures are plain `Figure` objects, never pyplot's: nothing global is touched.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from rankloop.spacing import spread

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike, NDArray

# Okabe and Ito's colours, which people with any kind of colour blindness can tell apart, darkened for thin lines.
BLUE, ORANGE, GREEN, PURPLE, GOLD, SKY = "#0068a8", "#c84e00", "#00805c", "#a8458a", "#a87400", "#3f93c4"
INK, MUTED, GRID, PAPER = "#1d2530", "#5b6673", "#dfe3e8", "#ffffff"

TITLE_SIZE, LABEL_SIZE, TICK_SIZE, CAPTION_SIZE = 16.0, 13.0, 12.0, 12.0
_CAPTION_LINE = CAPTION_SIZE * 1.5 / 72.0  # inches
_LEFT, _TOP, _BOTTOM, _BETWEEN = 0.85, 0.82, 0.72, 1.0  # inches around and between panels
_TOP_UNTITLED = 0.5
_GAP = 0.16  # inches between a line's end and its label
ENDINGS = ("png", "svg", "pdf")
WIDTHS = {"column": 3.4, "page": 7.0}  # inches, of a paper in two columns
SMALLEST = 0.62  # of the sizes above: 8 points for labels
# Lines that differ in print without colour, too.
STYLES: tuple[Any, ...] = (
    "-",
    (0, (6, 1.6)),
    (0, (1.2, 1.2)),
    (0, (6, 1.6, 1.2, 1.6)),
    (0, (3, 1.2)),
    (0, (9, 3)),
)
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
    large: dict[str, Any] = {"size": TITLE_SIZE, "weight": "bold", "color": INK}
    small: dict[str, Any] = {"size": CAPTION_SIZE, "color": MUTED}
    for name, text, top, look in (
        ("title", title, total - 0.14, large),
        ("subtitle", subtitle, total - 0.47, small),
        ("caption", "\n".join(lines), below - 0.05, small | {"linespacing": 1.4}),
    ):
        if text:
            figure.text(0.15 / width, top / total, text, va="top", gid=name, **look)
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
    style: Any = "-",
) -> Line2D:
    """A line, with the band (low, high) around it; `dashed` ones are thinner, whatever their `style`."""
    if band is not None:
        axes.fill_between(x, *band, color=colour, alpha=0.18, linewidth=0)
    (line,) = axes.plot(
        x,
        y,
        color=colour,
        label=label,
        linewidth=1.4 if dashed else 2.4,
        linestyle=(0, (5, 3)) if dashed else style,
        marker="o" if points else None,
        markersize=6,
        solid_capstyle="round",
    )
    return line


def mean_curve(
    axes: Axes,
    means: pl.DataFrame,
    *,
    label: str,
    colour: str,
    banded: bool = True,
    scale: ArrayLike = 1.0,
    dashed: bool = False,
    points: bool = False,
) -> Line2D:
    """The mean of many runs and its band, over `scale`, against the first column of `means`; see `runs.over_runs`."""
    x, mean, low, high = (means[column].to_numpy() for column in (means.columns[0], "mean", "low", "high"))
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
    place: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"),
        "xytext": (4, -4),
        "textcoords": "offset points",
    }
    axes.annotate(text, (0.0, y), size=TICK_SIZE, color=MUTED, va="top", **place)


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
    look: dict[str, Any] = {"marker": "o", "markersize": 9, "markeredgewidth": 1.8, "elinewidth": line}
    axes.errorbar(x, y, xerr=error, color=colour, markerfacecolor=colour if filled else PAPER, **look)


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
    ordered = sorted(values)
    low, high = (f"{value:{form}}" for value in (ordered[0], ordered[-1]))
    return low if low == high else f"{low} to {high}"


def power_law(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Exponent and constant of the line y = constant * x**exponent fitted by least squares in logarithms.

    >>> exponent, constant = power_law([1, 10, 100], [2, 20, 200])
    >>> round(exponent, 6), round(constant, 6)
    (1.0, 2.0)
    """
    at, level = (np.log(np.asarray(values, dtype=float)) for values in (x, y))
    exponent, intercept = np.polyfit(at, level, 1)
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


def shrink(figure: Figure, factor: float) -> None:
    """Draw everything smaller by a `factor`, type and lines included."""
    from matplotlib.lines import Line2D
    from matplotlib.spines import Spine
    from matplotlib.text import Text

    figure.set_size_inches(*(factor * figure.get_size_inches()))
    for axes in figure.get_axes():
        axes.tick_params(which="major", labelsize=factor * TICK_SIZE, pad=3.5 * factor, length=3.5 * factor)
        axes.tick_params(which="minor", length=2.0 * factor)
        axes.xaxis.labelpad *= factor
    ticks = {
        label for axes in figure.get_axes() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())
    }
    for part in figure.findobj():
        if isinstance(part, Text) and part not in ticks:
            part.set_fontsize(factor * float(part.get_fontsize()))
        elif isinstance(part, (Line2D, Spine)):
            part.set_linewidth(factor * part.get_linewidth())


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
        colour, box = figure.get_facecolor(), None if titles else "tight"
        figure.savefig(path, format=ending, metadata=metadata, facecolor=colour, bbox_inches=box)
        for text in hidden:
            text.set_visible(True)


def label_line_ends(axes: Axes, *, size: float, right: float) -> None:
    """Write each line's label at its right end, in the line's colour, with a thin leader where it had to move.

    Lines whose label starts with an underscore (matplotlib's own way of saying "none") stay unnamed. The axes are
    made as wide as the labels allow without passing `right`, a share of the figure's width.
    """
    from matplotlib.lines import Line2D

    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    if not lines:
        return
    figure = axes.get_figure(root=True)
    assert figure is not None
    texts = [
        figure.text(0, 0, str(line.get_label()), size=size, weight="bold", linespacing=1.15, va="center")
        for line in lines
    ]
    boxes = [text.get_window_extent() for text in texts]
    widest = max(box.width for box in boxes) / figure.bbox.width
    gap = _GAP * figure.dpi / figure.bbox.width
    place = axes.get_position()
    axes.set_position((place.x0, place.y0, max(0.1, right - widest - 1.4 * gap - place.x0), place.height))
    panel = axes.get_position()
    ends = [figure.transFigure.inverted().transform(_end(axes, line)) for line in lines]
    # Half a line between labels tells where one stops.
    air = 0.45 * size * figure.dpi / 72.0
    heights = spread(
        [float(y) for _, y in ends],
        gaps=[(box.height + air) / figure.bbox.height for box in boxes],
        low=panel.y0 - 0.02 * panel.height,
        high=panel.y1 + 0.07 * panel.height,
    )
    for line, text, (x, y), height in zip(lines, texts, ends, heights, strict=True):
        text.set(position=(panel.x1 + gap, height), color=line.get_color())
        if abs(height - y) > 0.01 or panel.x1 - x > 0.01:
            leader = Line2D([x, panel.x1 + 0.8 * gap], [y, height], color=line.get_color(), linewidth=0.8)
            figure.add_artist(leader)


def _end(axes: Axes, line: Line2D) -> NDArray[np.float64]:
    points = np.asarray(line.get_xydata(), dtype=float)
    return np.asarray(axes.transData.transform(points[-1]), dtype=float)


# Each colour of our figures, and its counterpart on a dark page.
NIGHT = {
    INK: "#e6eaef",
    MUTED: "#9aa6b4",
    GRID: "#2d3642",
    PAPER: "#141a21",
    BLUE: "#5ab4f0",
    ORANGE: "#ff9450",
    GREEN: "#3ccba0",
    PURPLE: "#e292c8",
    GOLD: "#e3b341",
    SKY: "#8fcdf2",
}


def variable(colour: str) -> str:
    """The CSS variable that stands for a colour of the figures."""
    return f"--c{colour.lstrip('#')}"


def _palette(colours: dict[str, str]) -> str:
    return "".join(f"{variable(day)}:{value};" for day, value in colours.items())


_DAY_RULES = (
    _palette({day: day for day in NIGHT}) + "--page:#f6f7f9;--card:#ffffff;--good:#00694b;--bad:#b3261e;"
)
_NIGHT_RULES = _palette(NIGHT) + "--page:#0e1318;--card:#141a21;--good:#3ccba0;--bad:#ff8a80;"

_NAMES = {"ink": INK, "muted": MUTED, "line": GRID, "link": BLUE}
_ROOT = "".join(f"--{name}:var({variable(colour)});" for name, colour in _NAMES.items())
STYLE = f"""
:root {{ color-scheme: light dark; {_DAY_RULES}{_ROOT} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_NIGHT_RULES} }} }}
{(Path(__file__).parent / "report.css").read_text(encoding="utf-8")}"""


def inline(text: str, *, prefix: str, description: str, caption_share: float) -> str:
    """The `<svg>` element of a figure, ready to stand in a page.

    `prefix` goes before every id, since several pictures share the page; `description` is for screen readers. The
    caption, `caption_share` of the height at the bottom, is left out of view: the page sets it as text.
    """
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # A style would dress the whole page.
    svg = re.sub(r"<!--.*?-->|<style.*?</style>", "", svg, flags=re.DOTALL)
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
    label = escape(description, quote=True)
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">{rest.strip()}'


def table_of(rows: list[dict[str, Any]]) -> str:
    """Rows as an HTML table, with a column for each key of the first one."""
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    shown = {key: _column(values) for key, values in columns.items()}
    number = {
        key: ' class="number"' if all(isinstance(value, int | float) for value in values) else ""
        for key, values in columns.items()
    }
    head = "".join(f"<th{number[key]}>{escape(key)}</th>" for key in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{number[key]}>{escape(shown[key][i])}</td>" for key in columns) + "</tr>"
        for i in range(len(rows))
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _column(values: list[Any]) -> list[str]:
    """Numbers with the same decimals all the way down, so that they can be compared at a glance."""
    floats = [value for value in values if isinstance(value, float)]
    decimals = max((len(f"{value:.4g}".partition(".")[2]) for value in floats if abs(value) < 1e4), default=0)
    texts = []
    for value in values:
        if isinstance(value, float):
            texts.append(f"{value:,.{min(decimals, 6)}f}")
        elif isinstance(value, int) and not isinstance(value, bool):
            texts.append(f"{value:,}")
        else:
            texts.append("" if value is None else str(value))
    return texts
