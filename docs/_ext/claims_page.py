"""Writes the page of all statements of the papers: `python docs/_ext/claims_page.py > docs/claims.md`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rankloop.claims import STATUSES, statements
from rankloop.cli.papers import claim_status, count_statements


def page() -> Iterator[str]:
    """The lines of the page."""
    stated = statements()
    yield from ("# Statements of the papers", "")
    yield (
        "Every statement of the three papers, in our words: where it stands, what became of it, and which test or "
        "experiment decides it. `rankloop claims` prints the same, and `make docs` writes this page from it. A test is "
        "named as pytest takes it; `experiment:name:claim` is a claim of `rankloop reproduce name`."
    )
    yield from ("", f"{count_statements(stated)}.", "", "| status | meaning |", "|---|---|")
    for status, meaning in STATUSES.items():
        yield f"| {status} | {meaning} |"
    for paper, own in groupby(stated, key=lambda each: each.paper):
        yield from ("", f"## {paper}", "")
        for each in own:
            status = claim_status(each)
            yield f"- **{each.id}**, {_escaped(each.place)}: {_escaped(each.statement)}"
            yield f"  *{status[0].upper()}{status[1:]}*: {_escaped(each.how)}."
            yield from (f"  `{judge}`" for judge in each.where)
    yield ""


def _escaped(text: str) -> str:
    for sign in "\\|*_<$[]":
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    print("\n".join(page()), end="")
