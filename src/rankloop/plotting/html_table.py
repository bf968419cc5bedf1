"""A table of numbers and words as HTML."""

from __future__ import annotations

from html import escape
from typing import Any


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
