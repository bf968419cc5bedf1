"""What the papers state, statement by statement: where it stands, what became of it, and which test decides it."""

from __future__ import annotations

import tomllib
from dataclasses import astuple, dataclass
from functools import cache
from importlib import resources

__all__ = ["PAPERS", "STATUSES", "Statement", "statements"]

PAPERS = ("2015", "2016", "2022")
"""The papers, by year."""

STATUSES = {
    "verified": "a test or an experiment's claim decides it, and it holds",
    "corrected": "it does not hold as printed, or answers what the paper leaves open; a test decides what does hold",
    "background": "nothing to compute: motivation, or a result of another paper",
    "cannot be judged here": "for the reason given",
}
"""What may have become of a statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a paper.

    Parameters
    ----------
    id : str
        The year of the paper and a number, such as "2015-050"; it never changes.
    paper : str
        Authors, year and title.
    place : str
        Where it stands.
    statement : str
        What it says, in our words.
    status : str
        One of `STATUSES`.
    errata : tuple of str
        The errata that concern it, as docs/errata.md labels them.
    where : tuple of str
        What decides it: tests, as pytest names them, and claims, as "experiment:name:claim".
    how : str
        How they do; for a statement that nothing decides, the reason.
    """

    id: str
    paper: str
    place: str
    statement: str
    status: str
    errata: tuple[str, ...]
    where: tuple[str, ...]
    how: str

    @property
    def year(self) -> str:
        """The paper's year, the first part of the id."""
        return self.id.partition("-")[0]

    @property
    def decided(self) -> bool:
        """Whether what `where` names decides it."""
        return self.status in ("verified", "corrected")


@cache
def _read(year: str) -> tuple[Statement, ...]:
    text = resources.files("rankloop.claims").joinpath(f"{year}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return tuple(
        Statement(
            id=entry["id"],
            paper=table["paper"],
            place=entry["place"],
            statement=entry["statement"],
            status=entry["status"],
            errata=tuple(entry.get("errata", ())),
            where=tuple(entry.get("where", ())),
            how=entry.get("how") or entry["reason"],
        )
        for entry in table["statement"]
    )


def statements(
    *, paper: str | None = None, status: str | None = None, word: str | None = None
) -> list[Statement]:
    """The statements in the order of the papers: of one `paper` (its year), of one `status`, with `word` in any field.

    Examples
    --------
    >>> len(statements())
    223
    >>> statements(word="Theorem 12")[0].id
    '2015-064'
    """
    if paper is not None and paper not in PAPERS:
        raise ValueError(f"paper must be one of {', '.join(PAPERS)}, got {paper!r}")
    if status is not None and status not in STATUSES:
        raise ValueError(f"status must be one of {', '.join(STATUSES)}, got {status!r}")
    return [
        each
        for year in PAPERS
        for each in _read(year)
        if paper in (None, year) and status in (None, each.status)
        if word is None or word.lower() in _text(each).lower()
    ]


def _text(each: Statement) -> str:
    return "\n".join("\n".join(part) if isinstance(part, tuple) else part for part in astuple(each))
