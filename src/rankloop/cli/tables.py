"""Tables for the terminal: what is available, and the results of experiments."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankloop.experiments.harness.progress import duration
from rankloop.extras import MissingExtra

if TYPE_CHECKING:
    from rankloop.experiments.harness.reproduce import Verdict


def tell(verdict: Verdict, *, console: Console) -> None:
    """The claims of one experiment: a table on a terminal, a line for each elsewhere."""
    held = sum(claim.holds for claim in verdict.claims)
    resumed = f", {verdict.resumed} of them resumed" if verdict.resumed else ""
    work = f"{verdict.ran + verdict.resumed} jobs{resumed}, {duration(verdict.seconds)} of computing"
    head = f"{verdict.experiment}: {held} of {len(verdict.claims)} claims hold ({work})"
    if not console.is_terminal:
        console.print(head, soft_wrap=True, markup=False)
        for claim in verdict.claims:
            word = "holds " if claim.holds else "BROKEN"
            told = f"  {word}  {claim.text}: {claim.measured} [{claim.name}, worded {claim.worded}]"
            console.print(told, soft_wrap=True, markup=False)
        for note in verdict.notes:
            console.print(f"  {note}", soft_wrap=True, markup=False)
        return
    table = Table(title=head, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "claim", "measured", "worded"):
        table.add_column(heading, overflow="fold")
    for claim in verdict.claims:
        mark = Text("✓", style="bold green") if claim.holds else Text("✗ broken", style="bold red")
        table.add_row(mark, Text(claim.text), Text(claim.measured), Text(claim.worded))
    console.print(table)
    for note in verdict.notes:
        console.print(note, markup=False)


def describe(kind: str) -> dict[str, str]:
    """Everything of a kind, each with one line: rankers, environments, measures or experiments."""
    if kind == "rankers":
        from rankloop.rankers import registry

        return {name: _ranker_line(name) for name in registry.names()}
    if kind == "environments":
        from rankloop.cli.environments import environment_names

        return environment_names()
    if kind == "measures":
        return _describe_measures()
    if kind == "experiments":
        from rankloop import experiments

        try:
            return {name: experiments.get(name).title for name in experiments.names()}
        except MissingExtra as missing:  # what there is can be listed all the same
            return dict.fromkeys(experiments.names(), str(missing))
    raise ValueError(f"kind must be one of rankers, environments, measures, experiments, got {kind!r}")


def _ranker_line(name: str) -> str:
    from rankloop.rankers import registry

    try:
        return _first_sentence(registry.find(name))
    except ValueError as error:  # of another package, which may be broken; the list is not
        return f"cannot be used: {error}"


def _first_sentence(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def _describe_measures() -> dict[str, str]:
    from rankloop import measures

    described = {}
    for name in measures.names():
        measure = measures.get(name)
        traits = [
            "loss" if measure.is_loss else "gain",
            "linear in the relevance" if measure.linear else "not linear in the relevance",
        ]
        if measure.binary:
            traits.append("binary relevance only")
        ending = {"none": "", "optional": "[@k]", "required": "@k"}[measure.cutoffs]
        described[name + ending] = ", ".join(traits)
    return described
