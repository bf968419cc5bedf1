"""Wrong learners and wrong constants under which a claim must break: a claim that survives them says nothing.

A mutation changes the rows of an experiment as a mistake would have: the rows of a random order stand where the
learner's should, or a number is scaled. The tests judge every claim of the quick version twice, on the rows as they
are and on the mutated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from rankloop.experiments.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mistake by name, and what it does to the rows; two mutations of one name make the same change."""

    name: str
    change: Callable[[pl.DataFrame], pl.DataFrame]


def _where(values: Mapping[str, Any]) -> pl.Expr:
    return pl.all_horizontal(pl.lit(True), *(pl.col(column) == value for column, value in values.items()))


def _place(values: Mapping[str, Any]) -> str:
    return f" ({', '.join(map(str, values.values()))})" if values else ""


def instead(other: Any, of: Any, *, column: str = "learner", **where: Any) -> Mutation:
    """The rows of `other` in the place of those of `of`, among the rows with the values of `where`.

    >>> rows = pl.DataFrame({"learner": ["FTPL", "Uniform"], "regret": [1, 9]})
    >>> mutation = instead("Uniform", "FTPL")
    >>> mutation.name, sorted(mutation.change(rows).rows())
    ('Uniform in the place of FTPL', [('FTPL', 9), ('Uniform', 9)])
    """

    def change(rows: pl.DataFrame) -> pl.DataFrame:
        among = _where(where)
        theirs = rows.filter(among & (pl.col(column) == other))
        if theirs.is_empty():
            raise ValueError(f"no rows of {other!r} to put in the place of {of!r}{_place(where)}")
        theirs = theirs.with_columns(pl.lit(of).alias(column).cast(rows.schema[column]))
        return pl.concat([rows.filter(~(among & (pl.col(column) == of))), theirs])

    return Mutation(f"{other} in the place of {of}{_place(where)}", change)


def altered(name: str, *, where: Mapping[str, Any] | pl.Expr | None = None, **columns: Any) -> Mutation:
    """Columns with other values, or expressions of the old ones, in the rows that have the values of `where`.

    >>> rows = pl.DataFrame({"learner": ["FTPL", "Uniform"], "regret": [1.0, 9.0]})
    >>> altered("twice as bad", where={"learner": "FTPL"}, regret=2 * pl.col("regret")).change(rows).rows()
    [('FTPL', 2.0), ('Uniform', 9.0)]
    """
    among = where if isinstance(where, pl.Expr) else _where(where or {})

    def change(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(
            pl.when(among).then(value).otherwise(pl.col(column)).cast(rows.schema[column]).alias(column)
            for column, value in columns.items()
        )

    return Mutation(name, change)


def times(factor: float, column: str = "regret", **where: Any) -> Mutation:
    """A column as so many times what it was.

    >>> times(2, rounds=10).name
    'regret times 2 (10)'
    """
    name = f"{column} times {factor:g}{_place(where)}"
    return altered(name, where=where, **{column: factor * pl.col(column)})


def together(name: str, *mutations: Mutation) -> Mutation:
    """One mistake made of several changes, one after the other."""

    def change(rows: pl.DataFrame) -> pl.DataFrame:
        for mutation in mutations:
            rows = mutation.change(rows)
        return rows

    return Mutation(name, change)


def survivors(experiment: Experiment, results: pl.DataFrame, *, quick: bool) -> list[str]:
    """The claims that still hold after their own mutation, each with what was measured then: there must be none."""
    judged: dict[str, dict[str, tuple[bool, str]]] = {}
    sentences = []
    for claim in experiment.claims(results, quick=quick):
        name = claim.mutation.name
        if name not in judged:
            again = experiment.claims(claim.mutation.change(results), quick=quick)
            judged[name] = {other.name: (other.holds, other.measured) for other in again}
        holds, measured = judged[name][claim.name]
        if holds and not claim.failed:
            sentences.append(f"{claim.name} survives {name!r}: {measured}")
    return sentences
