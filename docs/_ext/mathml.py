"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def _write(translator: Any, node: nodes.Element, *, display: str) -> None:
    try:
        formula = convert(node.astext(), display=display)
    except Exception as problem:
        raise ValueError(
            f"{node.source}:{node.line}: cannot read {node.astext()!r}: {problem!r}"
        ) from problem
    if "\\" in formula:  # a command that the converter does not know is passed on as it stands
        raise ValueError(f"{node.source}:{node.line}: unknown command in {node.astext()!r}")
    formula = formula.replace(
        "<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>'
    )  # a slash, not an operator
    translator.body.append(f'<div class="formula">{formula}</div>' if display == "block" else formula)
    raise nodes.SkipNode


def _inline(translator: Any, node: nodes.Element) -> None:
    _write(translator, node, display="inline")


def _block(translator: Any, node: nodes.Element) -> None:
    _write(translator, node, display="block")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; `html_math_renderer = "mathml"` chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
