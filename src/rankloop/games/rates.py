"""Every measure at every k: the table of rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rankloop import measures
from rankloop.arguments import one_of, whole
from rankloop.games.cells import Cells, find_cells
from rankloop.games.classify_cells import classify_cells
from rankloop.games.classify_ranking import thresholds
from rankloop.games.ranking_game import ranking_game
from rankloop.measures import Measure

PAPER, LATER, OURS = "2015", "2023", "ours"
SOURCES = {
    PAPER: "Chaudhuri and Tewari 2015",
    LATER: "Zhang and Tewari 2023",
    OURS: "rankloop's own finding: computed, and proved only as far as the docs say",
}


@dataclass(frozen=True)
class Row:
    """A measure: its class and who found it, for k = 1, 2, ..., m."""

    measure: str
    classes: tuple[str, ...]
    sources: tuple[str, ...]


def rates(
    *, n_items: int, names: Sequence[str] | None = None, grades: int = 2, route: str = "structure"
) -> list[Row]:
    """The class of each measure for every k.

    >>> [row.classes for row in rates(n_items=3, names=["dcg", "ndcg"])]
    [('hard', 'easy', 'easy'), ('hopeless', 'hard', 'easy')]
    """
    m = whole("n_items", n_items, at_least=1)
    one_of("route", route, ("cells", "structure"))
    rows = []
    for name in names if names is not None else usual_measures(m, grades=grades):
        scored = measures.get(name)
        classes = []
        cells: Cells | None = None
        for k in range(1, m + 1):
            game = ranking_game(measure=scored, n_items=m, k=k, grades=grades)
            if route == "cells":
                cells = cells or find_cells(game)
                classes.append(classify_cells(game, cells=cells).class_)
                continue
            if k == 1:
                globally, locally = thresholds(game)
            reached = "hopeless" if k < globally else "hard" if k < locally else "easy"
            classes.append("trivial" if locally == 0 else reached)
        sources = tuple(source(scored, k, m, graded=grades > 2) for k in range(1, m + 1))
        rows.append(Row(scored.name, tuple(classes), sources))
    return rows


def usual_measures(n_items: int, *, grades: int = 2) -> list[str]:
    """The measures of the table: all of the package, with a few cut-offs."""
    cuts = sorted({n for n in (1, 2, 3, 5, 10) if n < n_items})
    names = ["sum_loss", "pairwise_loss", "dcg"]
    names += [f"dcg@{n}" for n in cuts if n > 1] + [f"precision@{n}" for n in cuts]
    names += ["ndcg"] + [f"ndcg@{n}" for n in cuts] + ["average_precision", "auc", "err"]
    names += [f"err@{n}" for n in cuts if n > 1]
    return [name for name in names if grades == 2 or not measures.get(name).binary]


def source(measure: Measure, k: int, n_items: int, *, graded: bool = False) -> str:
    """Who proved the rate: of the measures without cut-off, and of precision; all cut-offs of others are ours."""
    family = measure.family
    if measure.cutoff is not None and family != "precision":
        return OURS
    if graded:
        return PAPER if k == 1 and family in ("sum_loss", "dcg", "ndcg") and n_items >= 3 else OURS
    in_paper = ("sum_loss", "pairwise_loss", "dcg", "ndcg", "average_precision", "auc")
    if k == 1 and family in in_paper and n_items >= (4 if family == "auc" else 3):
        return PAPER
    return LATER if family in ("sum_loss", "pairwise_loss", "dcg", "precision") else OURS
