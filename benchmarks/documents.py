"""Linear rankers of documents: labels at the top, or clicks, beside plain NumPy and beside one pass and a sort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import RenderableType

from benchmarks import bare, numpy_pdgd, numpy_rtopkf
from benchmarks.timing import BARE, FUSED, NUMPY, Contender, Effort, Race, played, race, short, table, verdict
from rankloop import data, environments, rankers
from rankloop.kernels import sorting

SETS = {"MQ2008": "ltr/mq2008", "Yahoo sample": "ltr/yahoo_sample", "MSLR-WEB": "ltr/mslr"}
MEASURE = "ndcg@10"
CLICKED = ("20 documents x 46", (20, 46)), ("120 documents x 136", (120, 136))
AIM_OVER_NUMPY, AIM_OVER_BARE = 20.0, 0.5


@dataclass(frozen=True, slots=True)
class Learner:
    """A ranker of ours for so many features, and the same gradient in NumPy, if there is one."""

    ours: Callable[[int], Any]
    plain: Callable[[numpy_rtopkf.Seen], np.ndarray | float] | None = None


def _papers(d: int, **arguments: Any) -> rankers.RTopKF:
    return rankers.RTopKF(n_features=d, learning_rate="camera-ready", **arguments)


LEARNERS = {
    "RTopKF": Learner(lambda d: rankers.RTopKF(n_features=d)),
    "the paper's, squared": Learner(partial(_papers, surrogate="squared"), numpy_rtopkf.squared),
    "the paper's, KL": Learner(partial(_papers, surrogate="kl"), numpy_rtopkf.kl),
    "the paper's, RankSVM": Learner(partial(_papers, surrogate="ranksvm", k=2), numpy_rtopkf.ranksvm),
    "the paper's, SmoothDCG": Learner(
        partial(_papers, surrogate="smooth_dcg", epsilon=numpy_rtopkf.EPSILON), numpy_rtopkf.smooth_dcg
    ),
    "ListNet": Learner(lambda d: rankers.ListNet(n_features=d)),
    "ListNet, the paper's": Learner(
        lambda d: rankers.ListNet(n_features=d, learning_rate=(0.01, 0.5)), numpy_rtopkf.listnet
    ),
}
CLICK_LEARNERS: dict[str, Any] = {"PDGD": rankers.PDGD, "DBGD": rankers.DBGD, "MGD": rankers.MGD}


def datasets() -> dict[str, data.Dataset]:
    """Those that are on this machine, as the experiments use them; made-up queries where none is."""
    found = {}
    for name, place in SETS.items():
        try:
            found[name] = data.read_letor(data.find(place), normalize="query").bounded()
        except data.DataMissing:
            continue
    return found or {"made up": data.synthetic_letor(n_queries=800, n_features=46, seed=2016)}


def measure(
    effort: Effort,
    tell: Callable[[str], None],
    *,
    sets: Callable[[], dict[str, data.Dataset]] = datasets,
    clicked: Any = CLICKED,
) -> list[Race]:
    """Race the contenders of each learner on each dataset, then those that learn from clicks."""
    races = []
    for name, dataset in sets().items():
        stream = environments.QueryStream(dataset, measure=MEASURE)
        queries = numpy_rtopkf.Queries.of(stream)
        for label, learner in LEARNERS.items():
            tell(f"documents: {label}, {name}")
            contenders = {FUSED: played(partial(learner.ours, stream.n_features), stream)}
            if learner.plain is not None:
                contenders[NUMPY] = of_numpy(learner, queries)
            contenders[BARE] = bare_pass(stream)
            races.append(race(f"{name}: {label}", contenders, effort=effort))
    for size, (n, d) in clicked:
        users = users_for(n, d)
        for label, kind in CLICK_LEARNERS.items():
            tell(f"documents: {label}, {size}")
            contenders = {FUSED: played(partial(kind, n_features=d), users)}
            if label == "PDGD":
                contenders[NUMPY] = pdgd_in_numpy(users)
            contenders[BARE] = bare_pass(users)
            races.append(race(f"{size}: {label}", contenders, effort=effort))
    return races


def users_for(n_documents: int, n_features: int) -> environments.ClickedQueries:
    """Informational users of 200 made-up queries."""
    queries = data.synthetic_letor(
        n_queries=200, n_features=n_features, seed=1, list_length=(n_documents, n_documents)
    )
    return environments.ClickedQueries(queries.with_dtype("float32"), clicks="informational")


def of_numpy(learner: Learner, queries: numpy_rtopkf.Queries) -> Contender:
    """The same ranker in plain NumPy, with the same schedules, new for every slice."""

    def ready(rounds: int) -> Callable[[], object]:
        ranker = plain(learner, queries, np.random.default_rng(1))
        sequence = sequence_of(len(queries.each), rounds).tolist()
        return lambda: ranker.play(queries, sequence)

    return ready


def plain(learner: Learner, queries: numpy_rtopkf.Queries, rng: np.random.Generator) -> numpy_rtopkf.Descent:
    """The NumPy version of `learner`."""
    n_features = queries.each[0].X.shape[1]
    ours = learner.ours(n_features)
    assert learner.plain is not None
    return numpy_rtopkf.Descent(
        learner.plain,
        n_features=n_features,
        learning_rate=ours.learning_rate,
        exploration=getattr(ours, "exploration", None),
        rng=rng,
    )


def pdgd_in_numpy(users: environments.ClickedQueries) -> Contender:
    """PDGD and its users in plain NumPy, new for every slice."""
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


def bare_pass(users: environments.QueryStream | environments.ClickedQueries) -> Contender:
    """The least that a round can cost: one pass over the features of a list, and one sort."""
    n, features, offsets = users.n_positions, users.params.features, users.params.offsets
    w = np.random.default_rng(1).normal(size=features.shape[1])
    scores, items, scratch = np.empty(n), np.empty(n, np.int64), sorting.scratch(n)

    def ready(rounds: int) -> Callable[[], object]:
        sequence = sequence_of(len(offsets) - 1, rounds)
        words = np.random.default_rng(1).bit_generator.random_raw(rounds)
        return lambda: bare.score_and_sort(features, offsets, sequence, words, w, scores, items, scratch)

    return ready


def sequence_of(n_queries: int, rounds: int) -> np.ndarray:
    """Every query once a pass, in an order that is new each time."""
    rng = np.random.default_rng(1)
    return np.concatenate([rng.permutation(n_queries) for _ in range(-(-rounds // n_queries))])[:rounds]


def tables(races: list[Race]) -> list[RenderableType]:
    """One table, and a line for each aim."""
    compared = [one for one in races if NUMPY in one.seconds]
    lines = []
    for other, aim in ((NUMPY, AIM_OVER_NUMPY), (BARE, AIM_OVER_BARE)):
        lowest = min(compared, key=lambda one: one.over(other))
        reached = sum(one.over(other) >= aim for one in compared)
        said = f"{reached} of {len(compared)} reach it; lowest {short(lowest.over(other))}x, {lowest.row}"
        lines.append(verdict(reached == len(compared), f"fused over {other}, aim {aim:g}x: {said}"))
    return [table(f"Documents, {MEASURE} or clicks", races, (FUSED, NUMPY, BARE), (NUMPY, BARE)), *lines]
