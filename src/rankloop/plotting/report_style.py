"""The style of the report: print, phone, light and dark."""

from __future__ import annotations

from pathlib import Path

from rankloop.plotting import figures

# Each colour of our figures, and its counterpart on a dark page.
NIGHT = {
    figures.INK: "#e6eaef",
    figures.MUTED: "#9aa6b4",
    figures.GRID: "#2d3642",
    figures.PAPER: "#141a21",
    figures.BLUE: "#5ab4f0",
    figures.ORANGE: "#ff9450",
    figures.GREEN: "#3ccba0",
    figures.PURPLE: "#e292c8",
    figures.GOLD: "#e3b341",
    figures.SKY: "#8fcdf2",
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

_NAMES = {"ink": figures.INK, "muted": figures.MUTED, "line": figures.GRID, "link": figures.BLUE}
_ROOT = "".join(f"--{name}:var({variable(colour)});" for name, colour in _NAMES.items())
STYLE = f"""
:root {{ color-scheme: light dark; {_DAY_RULES}{_ROOT} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_NIGHT_RULES} }} }}
{(Path(__file__).parent / "report.css").read_text(encoding="utf-8")}"""
