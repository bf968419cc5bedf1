"""Rounds per second of PDGD on lists with features, beside plain NumPy and beside one pass over the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks import numpy_pdgd
from benchmarks.speed import of_rankloop
from benchmarks.timing import Contender, Effort, race
from benchmarks.topk import sequence_of
from rankloop import data, environments, rankers
from rankloop.kernels.jit import loop
from rankloop.kernels.rows import score

SIZES = {"20 documents x 46": (20, 46), "120 documents x 136": (120, 136)}
FUSED, NUMPY, BARE = "rankloop, fused", "NumPy, round by round", "bare: one pass over the features"
AIM_OVER_NUMPY, AIM_OVER_BARE = 20.0, 0.5
_MOST_ROUNDS = 100_000


@dataclass(frozen=True, slots=True)
class Rates:
    """Rounds per second of each contender at one size."""

    size: str
    rounds_per_second: dict[str, float]

    def fused_over(self, contender: str) -> float:
        """How many rounds the fused loop plays while `contender` plays one."""
        return self.rounds_per_second[FUSED] / self.rounds_per_second[contender]


@loop
def one_pass(features: Any, offsets: Any, sequence: Any, w: Any, scores: Any) -> None:
    """The scores X w of each query in `sequence`."""
    for i in range(len(sequence)):
        score(features[offsets[sequence[i]] : offsets[sequence[i] + 1]], w, scores)


def users_for(n_documents: int, n_features: int) -> environments.ClickedQueries:
    """Informational users of 200 made-up queries."""
    queries = data.synthetic_letor(
        n_queries=200, n_features=n_features, seed=1, list_length=(n_documents, n_documents)
    )
    return environments.ClickedQueries(queries.with_dtype("float32"), clicks="informational")


def measure(effort: Effort, tell: Callable[[str], None], *, sizes: Any = SIZES) -> list[Rates]:
    """Race the contenders at each size."""
    found = []
    for name, (n, d) in sizes.items():
        tell(f"clicks on documents: {name}")
        seconds = race(contenders(users_for(n, d)), effort=effort, most_rounds=_MOST_ROUNDS)
        found.append(Rates(name, {contender: 1 / spent for contender, spent in seconds.items()}))
    return found


def contenders(users: environments.ClickedQueries) -> dict[str, Contender]:
    """Everybody who plays these users, in the order of the table."""
    return {
        FUSED: of_rankloop(partial(rankers.PDGD, n_features=users.n_features), users, fused=True),
        NUMPY: of_numpy(users),
        BARE: bare_pass(users),
    }


def of_numpy(users: environments.ClickedQueries) -> Contender:
    """The same ranker and the same users in plain NumPy, new for every slice."""
    params, model = users.params, users.click_model
    parts = [slice(*pair) for pair in zip(params.offsets[:-1], params.offsets[1:], strict=True)]
    each = [(params.features[part], params.grades[part]) for part in parts]
    attraction, stop = np.asarray(model.attraction), np.asarray(getattr(model, "satisfaction", 0.0))

    def ready(rounds: int) -> Callable[[], object]:
        rng = np.random.default_rng(1)
        ranker = numpy_pdgd.PDGD(
            n_features=params.features.shape[1], n_positions=10, learning_rate=0.1, rng=rng
        )
        sequence = sequence_of(len(each), rounds).tolist()

        def play() -> None:
            for query in sequence:
                X, grades = each[query]
                shown, scores = ranker.rank(X)
                ranker.learn(X, shown, scores, numpy_pdgd.clicks_on(grades[shown], attraction, stop, rng))

        return play

    return ready


def bare_pass(users: environments.ClickedQueries) -> Contender:
    """The least that a linear ranker can do: the scores of each list."""
    features, offsets = users.params.features, users.params.offsets
    w, scores = np.random.default_rng(1).normal(size=features.shape[1]), np.empty(users.n_positions)

    def ready(rounds: int) -> Callable[[], object]:
        sequence = sequence_of(len(offsets) - 1, rounds)
        return lambda: one_pass(features, offsets, sequence, w, scores)

    return ready


def tables(found: list[Rates]) -> list[RenderableType]:
    """A row for each size, and a line for each aim."""
    table = Table(
        title="PDGD, ten shown, informational clicks: rounds per second",
        title_justify="left",
        title_style="bold",
    )
    for column in ("", "fused", "NumPy", "one pass", "fused over NumPy", "fused over one pass"):
        table.add_column(column, justify="right" if column else "left")
    for one in found:
        rates = [f"{one.rounds_per_second[contender]:,.0f}" for contender in (FUSED, NUMPY, BARE)]
        table.add_row(one.size, *rates, f"{one.fused_over(NUMPY):.1f}x", f"{one.fused_over(BARE):.2f}x")
    return [
        table,
        _verdict("over NumPy", [one.fused_over(NUMPY) for one in found], AIM_OVER_NUMPY),
        _verdict("over one pass", [found[-1].fused_over(BARE)], AIM_OVER_BARE),
    ]


def _verdict(what: str, ratios: list[float], aim: float) -> str:
    met = "[green]   met[/]" if min(ratios) >= aim else "[red]missed[/]"
    return f"{met}  PDGD fused {what}: {min(ratios):.2f}x, aim {aim:g}x"
