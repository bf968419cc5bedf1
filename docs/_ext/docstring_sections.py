"""Sections of our own in docstrings, and citations in them.

`Notation` and `Departures` are not among numpydoc's sections: they are taken out before it reads a docstring and put
back afterwards. In `References`, a title that stands in references.bib becomes a citation, so that a docstring stays
plain text for `help`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpydoc.docscrape import NumpyDocString
from pybtex.database import parse_file
from sphinx.application import Sphinx

OWN = ("Notation", "Departures")
AFTER = (".. rubric:: References", ".. rubric:: Examples")
NumpyDocString.sections |= {name: [] for name in OWN}  # known, so that numpydoc does not warn of them


def sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Heading and body of each section of a docstring; the part above the first heading has no heading."""
    heading, body, i = "", [], 0
    while i < len(lines):
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[i + 1]) and lines[i].strip():
            yield heading, body
            heading, body, i = lines[i].strip(), [], i + 2
        else:
            body.append(lines[i])
            i += 1
    yield heading, body


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text.lower()).split())


class Docstrings:
    """Rewrites docstrings before numpydoc reads them."""

    def __init__(self, bibliography: Path) -> None:
        entries = parse_file(str(bibliography)).entries
        self.own: dict[str, list[str]] = {}
        self.keys = {_plain(entry.fields["title"]): key for key, entry in entries.items()}

    def cited(self, body: list[str]) -> list[str]:
        """`body` with a citation behind every reference whose title is known."""
        known = _plain(" ".join(body))
        found = [key for title, key in self.keys.items() if f" {title} " in f" {known} "]
        body = [re.sub(r"^(\s*[A-Z])\. ", r"\1\\. ", line) for line in body]  # a name, not an item of a list
        return [*body, "See " + ", ".join(f":cite:t:`{key}`" for key in found) + ".", ""] if found else body

    def take_out(self, name: str, lines: list[str]) -> list[str]:
        """The docstring without our own sections, and with citations."""
        written: list[str] = []
        self.own[name] = []
        for heading, body in sections(lines):
            if heading in OWN:
                self.own[name] += [f".. rubric:: {heading}", "", *body, ""]
                continue
            text = self.cited(body) if heading == "References" else body
            written += [*([heading, "-" * len(heading)] if heading else []), *text, ""]
        return written

    def put_back(self, name: str, lines: list[str]) -> list[str]:
        """What numpydoc made, with our own sections before the references and examples."""
        place = next((i for i, line in enumerate(lines) if line in AFTER), len(lines))
        return [*lines[:place], "", *self.own.pop(name, []), *lines[place:]]


def setup(app: Sphinx) -> dict[str, Any]:
    """Run before and after numpydoc, whose listener has priority 500."""
    docstrings = Docstrings(Path(app.srcdir) / "references.bib")

    def before(_app: Any, _what: str, name: str, _of: Any, _options: Any, lines: list[str]) -> None:
        lines[:] = docstrings.take_out(name, lines)

    def after(_app: Any, _what: str, name: str, _of: Any, _options: Any, lines: list[str]) -> None:
        lines[:] = docstrings.put_back(name, lines)

    app.connect("autodoc-process-docstring", before, priority=400)
    app.connect("autodoc-process-docstring", after, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
