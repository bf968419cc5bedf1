"""The style of the report: print, phone, light and dark."""

from __future__ import annotations

from rankloop.experiments.plotting import figures

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

STYLE = f"""
:root {{ color-scheme: light dark; {_DAY_RULES} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_NIGHT_RULES} }} }}
""" + """
:root { --ink: var(INK); --muted: var(MUTED); --line: var(GRID); --link: var(BLUE); }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0 0.25rem; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 0; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.4rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
a { color: var(--link); }
.quiet { color: var(--muted); font-size: 0.92rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 0.7rem;
  padding: 1.2rem 1.3rem; margin: 1.4rem 0; }
.head { display: flex; flex-wrap: wrap; gap: 0.4rem 0.8rem; align-items: center; justify-content: space-between; }
.verdict { font-weight: 650; white-space: nowrap; }
.verdict.good { color: var(--good); }
.verdict.bad { color: var(--bad); }
figure { margin: 1.1rem 0 0.4rem; }
figure svg { display: block; width: 100%; height: auto; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { color: var(--muted); font-size: 0.95rem; max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.95rem; }
th, td { text-align: left; vertical-align: top; padding: 0.45rem 0.7rem 0.45rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
td.measured { font-variant-numeric: tabular-nums; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.9em; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1rem; margin: 0.4rem 0; font-size: 0.92rem; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  main { padding: 0.8rem 0.6rem 3rem; }
  section { padding: 0.9rem 0.8rem; }
  .claims thead { display: none; }
  .claims tr { display: block; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  .claims td { display: block; border: 0; padding: 0.1rem 0; }
  .wide svg { min-width: 34rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.4rem; }
}
@media print {
  body { background: none; }
  main { max-width: none; padding: 0; }
  section { border: 0; padding: 0; break-inside: auto; }
  figure, tr { break-inside: avoid; }
  a { color: inherit; text-decoration: none; }
}
""".replace("INK", variable(figures.INK)).replace("MUTED", variable(figures.MUTED)).replace(
    "GRID", variable(figures.GRID)
).replace("BLUE", variable(figures.BLUE))
