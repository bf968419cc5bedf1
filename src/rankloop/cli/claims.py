"""The command `rankloop claims`: the statements of the papers, on the terminal, as JSON, or as the page of the docs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rankloop.claims import Statement


def claims(
    word: Annotated[
        str | None, typer.Argument(help="Only statements with this text in them.", show_default="all")
    ] = None,
    paper: Annotated[
        str | None, typer.Option(help="Only of this paper: 2015, 2016 or 2022.", show_default="all")
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            help="Only verified, corrected, background or 'cannot be judged here'.", show_default="all"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/claims.md.")] = False,
) -> None:
    """Every statement of the papers: where it stands, what became of it, and which test decides it.

    [b]Examples[/b]

      rankloop claims "Theorem 7"

      rankloop claims --paper 2022 --status corrected

      rankloop claims --json
    """
    from rankloop.claims import statements

    if as_json and markdown:
        raise ValueError("--json and --markdown exclude each other")
    found = statements(paper=paper, status=status, word=word)
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False))
    elif markdown:
        typer.echo("\n".join(_page(found)), nl=False)
    else:
        typer.echo("\n".join(_lines(found)))


def _lines(found: list[Statement]) -> Iterator[str]:
    for paper, own in groupby(found, key=lambda each: each.paper):
        yield paper
        for each in own:
            yield ""
            yield f"{each.id}  {each.place}  {_status(each)}"
            yield f"  {each.statement}"
            yield f"  {'how' if each.decided else 'why not'}: {each.how}"
            yield from (f"  where: {judge}" for judge in each.where)
        yield ""
    yield _count(found)


def _status(each: Statement) -> str:
    return f"{each.status} ({', '.join(each.errata)})" if each.errata else each.status


def _count(found: list[Statement]) -> str:
    from rankloop.claims import STATUSES

    counts = {status: sum(each.status == status for each in found) for status in STATUSES}
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{len(found)} statements" + (f": {told}" if told else "")


def _page(found: list[Statement]) -> Iterator[str]:
    from rankloop.claims import STATUSES

    yield "# Statements of the papers"
    yield ""
    yield (
        "Every statement of the three papers, in our words: where it stands, what became of it, and which test or "
        "experiment decides it. `rankloop claims` prints the same, and `make docs` writes this page from it. A test is "
        "named as pytest takes it; `experiment:name:claim` is a claim of `rankloop reproduce name`."
    )
    yield ""
    yield f"{_count(found)}."
    yield ""
    yield "| status | meaning |"
    yield "|---|---|"
    for status, meaning in STATUSES.items():
        yield f"| {status} | {meaning} |"
    for paper, own in groupby(found, key=lambda each: each.paper):
        yield ""
        yield f"## {paper}"
        yield ""
        for each in own:
            status = _status(each)
            yield f"- **{each.id}**, {_escaped(each.place)}: {_escaped(each.statement)}"
            yield f"  *{status[0].upper()}{status[1:]}*: {_escaped(each.how)}."
            yield from (f"  `{judge}`" for judge in each.where)
    yield ""


def _escaped(text: str) -> str:
    for sign in "\\|*_<$[]":
        text = text.replace(sign, f"\\{sign}")
    return text
