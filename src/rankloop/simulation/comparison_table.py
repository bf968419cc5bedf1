"""A comparison as a table: Markdown, LaTeX or HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from rankloop.simulation.paired_differences import paired_differences, smaller_is_better
from rankloop.simulation.significance import mean_interval

if TYPE_CHECKING:
    from rankloop.simulation.comparison import Comparison

_LATEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_MARKDOWN = {sign: f"\\{sign}" for sign in "\\|*_`<"}


class Cell(NamedTuple):
    """A mean, half the width of its interval (empty for a single seed), and how it stands to the best."""

    mean: str
    reach: str
    best: bool
    like_best: bool


class Table(NamedTuple):
    """A row for each ranker, a column for each world."""

    measure: str
    rankers: list[str]
    worlds: list[str]
    rows: list[list[Cell]]
    note: str


def counted(found: Comparison) -> str:
    """How much was played, in words."""
    parts = ((len(found.rankers), "ranker"), (len(found.worlds), "world"))
    who = " in ".join(_count(n, thing) for n, thing in parts)
    return f"{who}: {_count(int(found.rounds[-1]), 'round')}, {_count(len(found.seeds), 'seed')}"


def cells(found: Comparison, measure: str, at: int | None) -> Table:
    """The table, ready to be written."""
    place = found.place(at)
    pairs = paired_differences(found, measure, against=None, test="t", place=place)
    apart = {(each.world, frozenset((each.ranker, each.other))) for each in pairs if each.better}
    columns = []
    for world in found.worlds:
        ends = [
            mean_interval(found.values(world, name, measure)[:, place], level=found.level)
            for name in found.rankers
        ]
        means = [float(mean) for mean, _, _ in ends]
        best = (min if smaller_is_better(found, world, measure) else max)(means)
        leader = list(found.rankers)[means.index(best)]
        largest = max(map(abs, means))
        column = []
        for name, (mean, low, high) in zip(found.rankers, ends, strict=True):
            near = len(found.seeds) > 1 and name != leader and (world, frozenset((name, leader))) not in apart
            column.append(Cell(*_rounded(float(mean), float(high - low) / 2, largest), name == leader, near))
        columns.append(column)
    rows = [list(row) for row in zip(*columns, strict=True)]
    when = int(found.rounds[place])
    return Table(measure, list(found.rankers), list(found.worlds), rows, _note(found, measure, when))


def _note(found: Comparison, measure: str, when: int) -> str:
    what = {
        "regret": "Regret",
        "mean_value": "Mean value of a round",
        "value": "Value of a round since the point before",
    }[measure]
    after = f"{what} after {_count(when, 'round')}"
    if len(found.seeds) == 1:
        return f"{after}. One seed: no intervals and no test. Bold: the best."
    return (
        f"{after}: mean over {len(found.seeds)} seeds ± half of its {found.level:.0%} interval. Bold: the best. "
        "≈: not significantly worse than it (paired t test, Holm's correction over all pairs of all worlds)."
    )


def _rounded(mean: float, reach: float, largest: float) -> tuple[str, str]:
    # Two figures of the uncertainty and as many decimals of the mean, but no more than six figures of the largest.
    scale = reach if math.isfinite(reach) and reach > 0.0 else abs(mean) / 100.0
    most = 5 - math.floor(math.log10(largest)) if largest > 0.0 else 0
    decimals = 0 if scale == 0.0 else max(0, min(most, 1 - math.floor(math.log10(scale))))
    shown = round(mean, decimals) + 0.0  # never -0
    return f"{shown:,.{decimals}f}", "" if math.isnan(reach) else f"{reach:,.{decimals}f}"


def markdown(table: Table) -> str:
    """The table in Markdown, with columns that align as plain text too."""
    rows = [["", *(_changed(world, _MARKDOWN) for world in table.worlds)]]
    for name, row in zip(table.rankers, table.rows, strict=True):
        rows.append([_changed(name, _MARKDOWN), *(_plain(cell, "**{}**", "±", "≈") for cell in row)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    lines = [
        "| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |"
        for row in rows
    ]
    return "\n".join([*lines, "", table.note])


def latex(table: Table) -> str:
    """The table in LaTeX, for the package booktabs."""
    head = " & ".join(["", *(_changed(world, _LATEX) for world in table.worlds)])
    body = "\n".join(
        " & ".join(
            [
                _changed(name, _LATEX),
                *(_plain(cell, r"\textbf{{{}}}", r"$\pm$", r"$\approx$") for cell in row),
            ]
        )
        + r" \\"
        for name, row in zip(table.rankers, table.rows, strict=True)
    )
    note = _changed(table.note, _LATEX).replace("±", r"$\pm$").replace("≈", r"$\approx$")
    return (
        f"% {note}\n\\begin{{tabular}}{{l{'r' * len(table.worlds)}}}\n\\toprule\n{head} \\\\\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}"
    )


def html(table: Table) -> str:
    """The table in HTML."""
    number = ' class="number" style="text-align:right"'
    head = "".join(f"<th{number}>{escape(world)}</th>" for world in table.worlds)
    body = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        + "".join(f"<td{number}>{_plain(cell, '<b>{}</b>', '±', '≈')}</td>" for cell in row)
        + "</tr>"
        for name, row in zip(table.rankers, table.rows, strict=True)
    )
    return (
        f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f"<p>{escape(table.note)}</p>"
    )


FORMS = {"markdown": markdown, "latex": latex, "html": html}


def fragment(found: Comparison) -> str:
    """What a notebook shows of a comparison."""
    head = f"<p><b>Comparison</b> of {escape(counted(found))}</p>"
    try:
        return head + found.table(form="html")
    except ValueError as error:  # the regret is not known, and was asked for
        return f"{head}<p>{escape(str(error))}</p>"


def _plain(cell: Cell, bold: str, between: str, like: str) -> str:
    text = f"{cell.mean} {between} {cell.reach}" if cell.reach else cell.mean
    return bold.format(text) if cell.best else f"{like} {text}" if cell.like_best else text


def _changed(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(letter, letter) for letter in text)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Names and texts as an HTML list of definitions."""
    return (
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows) + "</dl>"
    )
