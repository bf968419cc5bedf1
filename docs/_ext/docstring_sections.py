"""Sections of our own in docstrings, and citations in them.

`Notation` and `Departures` are not among numpydoc's sections. They are shown as parts of its `Notes`. In `References`,
a title that stands in references.bib becomes a citation, so that a docstring stays plain text for `help`.
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
ORDER = ("Notes", "References", "Examples")  # what follows our own sections
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
        self.keys = {_plain(entry.fields["title"]): key for key, entry in entries.items()}

    def cited(self, body: list[str]) -> list[str]:
        """`body` with a citation behind every reference whose title is known."""
        known = _plain(" ".join(body))
        found = [key for title, key in self.keys.items() if f" {title} " in f" {known} "]
        return [*body, "See " + ", ".join(f":cite:t:`{key}`" for key in found) + ".", ""] if found else body

    def rewrite(self, lines: list[str]) -> list[str]:
        """The docstring in sections that numpydoc knows."""
        parts = list(sections(lines))
        own = [(heading, body) for heading, body in parts if heading in OWN]
        others = [(heading, body) for heading, body in parts if heading not in OWN]
        if own:
            notes = [body for heading, body in others if heading == "Notes"]
            text = [line for body in notes for line in body]
            for heading, body in own:
                text += ["", f".. rubric:: {heading}", "", *body]
            others = [(heading, body) for heading, body in others if heading != "Notes"]
            place = next((i for i, (heading, _) in enumerate(others) if heading in ORDER), len(others))
            others.insert(place, ("Notes", text))
        written = []
        for heading, body in others:
            if heading == "References":
                body = self.cited(body)
            written += [*([heading, "-" * len(heading)] if heading else []), *body, ""]
        return written


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite before numpydoc does: its listener has priority 500."""
    docstrings = Docstrings(Path(app.srcdir) / "references.bib")

    def rewrite(_app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
        lines[:] = docstrings.rewrite(lines)

    app.connect("autodoc-process-docstring", rewrite, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
