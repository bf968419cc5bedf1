"""Rounds per second of RTop-kF with each surrogate and of ListNet, beside plain NumPy and beside a pass and a sort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks import bare_topk, numpy_rtopkf
from benchmarks.speed import of_rankloop, points_for
from benchmarks.timing import Contender, Effort, race
from rankloop import data, environments, rankers, simulation
from rankloop.kernels import sorting

SETS = {"MQ2008": "ltr/mq2008", "Yahoo sample": "ltr/yahoo_sample", "MSLR-WEB": "ltr/mslr"}
SYNTHETIC = "synthetic"
MEASURE = "ndcg@10"

FUSED = "rankloop, fused"
NUMPY = "NumPy, round by round"
BARE = "bare: score and sort"
PLAIN = "bare: the same in plain numba"

AIM_OVER_NUMPY = 20.0
AIM_OVER_BARE = 0.5
AIM_OVER_BEFORE = 2.0
# Fused over plain numba as of commit 7bc34f6.
BEFORE = {
    "MQ2008": {"squared": 1.436, "kl": 1.937, "ranksvm": 1.828, "smooth_dcg": 1.231},
    "Yahoo sample": {"squared": 2.588, "kl": 3.955, "ranksvm": 3.973, "smooth_dcg": 2.443},
    "MSLR-WEB": {"squared": 2.861, "kl": 4.284, "ranksvm": 4.139, "smooth_dcg": 2.614},
}

_MOST_ROUNDS = 200_000


@dataclass(frozen=True, slots=True)
class Learner:
    """A ranker of ours for so many features, and the same gradient in NumPy."""

    ours: Callable[[int], Any]
    plain: Callable[[numpy_rtopkf.Seen], np.ndarray | float]


def _papers(d: int, **arguments: Any) -> rankers.RTopKF:
    return rankers.RTopKF(n_features=d, learning_rate="camera-ready", **arguments)


LEARNERS = {
    "squared": Learner(lambda d: _papers(d, surrogate="squared"), numpy_rtopkf.squared),
    "kl": Learner(lambda d: _papers(d, surrogate="kl"), numpy_rtopkf.kl),
    "ranksvm": Learner(lambda d: _papers(d, surrogate="ranksvm", k=2), numpy_rtopkf.ranksvm),
    "smooth_dcg": Learner(
        lambda d: _papers(d, surrogate="smooth_dcg", epsilon=numpy_rtopkf.EPSILON), numpy_rtopkf.smooth_dcg
    ),
    "ListNet": Learner(
        lambda d: rankers.ListNet(n_features=d, learning_rate=(0.01, 0.5)), numpy_rtopkf.listnet
    ),
}
# Without constants, beside bare only. No aim is set for them, nor for ListNet, which learns from every document.
DEFAULTS: dict[str, Callable[[int], Any]] = {
    "RTopKF": lambda d: rankers.RTopKF(n_features=d),
    "RTopKF, k = 2": lambda d: rankers.RTopKF(n_features=d, k=2),
    "ListNet, adagrad": lambda d: rankers.ListNet(n_features=d),
}
WITHOUT_AIM = ("ListNet", *DEFAULTS)


@dataclass(frozen=True, slots=True)
class Rates:
    """Rounds per second of each contender for one learner on one dataset."""

    learner: str
    dataset: str
    size: str
    rounds_per_second: dict[str, float]

    def fused_over(self, contender: str) -> float:
        """How many rounds the fused loop plays while `contender` plays one."""
        return self.rounds_per_second[FUSED] / self.rounds_per_second[contender]


@dataclass(frozen=True, slots=True)
class Missing:
    """Datasets that are not on this machine, in one line."""

    line: str


def datasets() -> tuple[dict[str, data.Dataset], list[Missing]]:
    """Those that are here, as the experiments use them; and made-up queries where some are not."""
    found, missing = {}, []
    for name, place in SETS.items():
        try:
            found[name] = data.read_letor(data.find(place), normalize="query").bounded()
        except data.DataMissing:
            missing.append(place)
    if not missing:
        return found, []
    found[SYNTHETIC] = data.synthetic_letor(n_queries=800, n_features=46, seed=2016)
    line = f"No {', '.join(missing)} in {data.folder()} (set RANKLOOP_DATA); synthetic queries instead."
    return found, [Missing(line)]


def measure(effort: Effort, tell: Callable[[str], None]) -> list[Rates | Missing]:
    """Race the contenders of each learner on each dataset."""
    queries, missing = datasets()
    found: list[Rates | Missing] = [*missing]
    for name, dataset in queries.items():
        stream = environments.QueryStream(dataset, measure=MEASURE)
        apart = numpy_rtopkf.Queries.of(stream)
        for learner in (*LEARNERS, *DEFAULTS):
            tell(f"feedback at the top: {learner}, {name}")
            racers = contenders(learner, stream, apart)
            if learner in BEFORE.get(name, {}):
                racers[PLAIN] = in_plain_numba(LEARNERS[learner].ours, stream)
            seconds = race(racers, effort=effort, most_rounds=_MOST_ROUNDS)
            rates = {contender: 1 / spent for contender, spent in seconds.items()}
            found.append(Rates(learner, name, _size(dataset), rates))
    return found


def contenders(
    name: str, stream: environments.QueryStream, apart: numpy_rtopkf.Queries
) -> dict[str, Contender]:
    """Everybody who plays `name` on the queries of `stream`, in the order of the table."""
    ours = DEFAULTS[name] if name in DEFAULTS else LEARNERS[name].ours
    return {
        FUSED: of_rankloop(partial(ours, stream.n_features), stream, fused=True),
        **({} if name in DEFAULTS else {NUMPY: of_numpy(LEARNERS[name], apart)}),
        BARE: score_and_sort(ours, stream),
    }


def of_numpy(learner: Learner, queries: numpy_rtopkf.Queries) -> Contender:
    """The same ranker in plain NumPy, with the same schedules, new for every slice."""

    def ready(rounds: int) -> Callable[[], object]:
        ranker = plain(learner, queries, np.random.default_rng(1))
        sequence = sequence_of(len(queries.each), rounds).tolist()
        return lambda: numpy_rtopkf.summary(
            ranker.play(queries, sequence), queries, sequence, points_for(rounds)
        )

    return ready


def plain(learner: Learner, queries: numpy_rtopkf.Queries, rng: np.random.Generator) -> numpy_rtopkf.Descent:
    """The NumPy version of `learner`."""
    n_features = queries.each[0].X.shape[1]
    ours = learner.ours(n_features)
    exploration = getattr(ours, "exploration", None)
    return numpy_rtopkf.Descent(
        learner.plain,
        n_features=n_features,
        learning_rate=ours.learning_rate,
        exploration=exploration,
        rng=rng,
    )


def score_and_sort(ours: Callable[[int], Any], stream: environments.QueryStream) -> Contender:
    """The least that a round can cost, with weights that have learnt and no longer change."""
    w = _learnt(ours, stream)
    n, features, offsets = stream.n_positions, stream.params.features, stream.params.offsets
    scores, items, scratch = np.empty(n), np.empty(n, np.int64), sorting.scratch(n)

    def ready(rounds: int) -> Callable[[], object]:
        sequence = sequence_of(len(offsets) - 1, rounds)
        words = np.random.default_rng(1).bit_generator.random_raw(rounds)
        return lambda: bare_topk.score_and_sort(features, offsets, sequence, words, w, scores, items, scratch)

    return ready


def in_plain_numba(ours: Callable[[int], Any], stream: environments.QueryStream) -> Contender:
    """The same with nothing of ours: a ruler that stays the same when our kernels change."""
    w = _learnt(ours, stream)
    n, features, offsets = stream.n_positions, stream.params.features, stream.params.offsets
    scores, items = np.empty(n), np.empty(n, np.int64)

    def ready(rounds: int) -> Callable[[], object]:
        sequence = sequence_of(len(offsets) - 1, rounds)
        return lambda: bare_topk.plain_score_and_sort(features, offsets, sequence, w, scores, items)

    return ready


def _learnt(ours: Callable[[int], Any], stream: environments.QueryStream) -> np.ndarray:
    ranker = ours(stream.n_features)
    stream.restart()
    simulation.play(ranker, stream, rounds=1_000, seed=1, fused=True, progress=False)
    weights: np.ndarray = ranker.state.w
    return weights


def sequence_of(n_queries: int, rounds: int, *, seed: int = 1) -> np.ndarray:
    """Every query once a pass, in an order that is new each time."""
    rng = np.random.default_rng(seed)
    passes = [rng.permutation(n_queries) for _ in range(-(-rounds // n_queries))]
    return np.concatenate(passes)[:rounds]


def _size(dataset: data.Dataset) -> str:
    lengths = dataset.lengths
    return f"{dataset.n_features} features, {lengths.mean():.0f} documents a list, at most {lengths.max()}"


def tables(found: list[Rates | Missing]) -> list[RenderableType]:
    """A row for each learner and dataset, what the datasets are, what is missing, and a line for each aim."""
    rates = [one for one in found if isinstance(one, Rates)]
    title = f"Feedback at the top: rounds per second, {MEASURE}"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    for column in ("fused", "NumPy", "bare", "plain", "over NumPy", "over bare", "over plain"):
        table.add_column(column, justify="right", no_wrap=True)
    sizes = {one.dataset: one.size for one in rates}
    for dataset in sizes:
        table.add_section()
        table.add_row(f"[bold]{dataset}[/]")
        for one in rates:
            if one.dataset == dataset:
                table.add_row(f"  {one.learner}", *_cells(one))
    about = [f"{dataset}: {size}." for dataset, size in sizes.items()]
    return [table, *about, *(one.line for one in found if isinstance(one, Missing)), *_aims(rates)]


def _cells(one: Rates) -> list[str]:
    rate = one.rounds_per_second
    rates = [
        f"{rate[contender]:,.0f}" if contender in rate else "" for contender in (FUSED, NUMPY, BARE, PLAIN)
    ]
    over = {NUMPY: ".1f", BARE: ".2f", PLAIN: ".2f"}
    ratios = [f"{one.fused_over(other):{form}}x" if other in rate else "" for other, form in over.items()]
    return [*rates, *ratios]


def _aims(rates: list[Rates]) -> list[RenderableType]:
    aimed = [one for one in rates if one.learner not in WITHOUT_AIM]
    lines: list[RenderableType] = [
        verdict("over NumPy", {_place(one): one.fused_over(NUMPY) for one in aimed}, AIM_OVER_NUMPY),
        verdict("over bare", {_place(one): one.fused_over(BARE) for one in aimed}, AIM_OVER_BARE),
    ]
    for dataset, before in BEFORE.items():
        gains = {
            _place(one): one.fused_over(PLAIN) / before[one.learner]
            for one in rates
            if one.dataset == dataset and PLAIN in one.rounds_per_second
        }
        if gains:
            lines.append(verdict(f"over plain numba on {dataset}, over before", gains, AIM_OVER_BEFORE))
    return lines


def _place(one: Rates) -> str:
    return f"{one.learner} on {one.dataset}"


def verdict(what: str, ratios: dict[str, float], aim: float) -> str:
    """One line: how many of `ratios` reach `aim`, and the lowest."""
    lowest = min(ratios, key=lambda place: ratios[place])
    reached = sum(ratio >= aim for ratio in ratios.values())
    met = "[green]   met[/]" if reached == len(ratios) else "[red]missed[/]"
    where = f"lowest {ratios[lowest]:.2f}x, {lowest}"
    return f"{met}  RTopKF fused {what}, aim {aim:g}x: {reached} of {len(ratios)} reach it; {where}"
