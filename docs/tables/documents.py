"""NDCG@10 on queries that were not trained on: rankers of documents with features."""

from collections.abc import Callable

from cells import cell, markdown

from rankloop import data, environments, rankers, simulation
from rankloop.base import Ranker

ROUNDS, FEATURES, SEEDS = 20_000, 20, range(1, 11)


def top_k(surrogate: str | None, *, k: int = 1) -> Callable[[], Ranker]:
    """RTopKF with this surrogate."""
    return lambda: rankers.RTopKF(n_features=FEATURES, surrogate=surrogate, k=k)


SEEN = {"squared": 1, "kl": 1, "smooth_dcg": 1, "ranksvm": 2}  # surrogate: labels that it needs
RANKERS: dict[str, tuple[str, Callable[[], Ranker]]] = {
    "[RTopKF](rankers/RTopKF.md)": ("top 1", top_k(None)),
    "[RTopKF](rankers/RTopKF.md), `k=2`": ("top 2", top_k(None, k=2)),
    **{f'the same, `surrogate="{name}"`': (f"top {k}", top_k(name, k=k)) for name, k in SEEN.items()},
    "[ListNet](rankers/ListNet.md)": ("all", lambda: rankers.ListNet(n_features=FEATURES)),
    "[CalibratedSquared](rankers/CalibratedSquared.md)": (
        "all",
        lambda: rankers.CalibratedSquared(n_features=FEATURES),
    ),
    "[Uniform](rankers/Uniform.md)": ("none", rankers.Uniform),
}


def values(make: Callable[[], Ranker], seed: int) -> tuple[float, float]:
    """Mean NDCG@10 while learning, and on new queries; the seed makes the queries, too."""
    queries = data.synthetic_letor(n_queries=500, n_features=FEATURES, seed=seed)
    train, test = (environments.QueryStream(part, measure="ndcg@10") for part in queries.split(train=0.8))
    ranker = make()
    learning = simulation.play(ranker, train, rounds=ROUNDS, seed=seed, points=10).mean_value
    if isinstance(ranker, rankers.Uniform):
        return learning, simulation.play(ranker, test, rounds=ROUNDS, seed=seed, points=10).mean_value
    return learning, float(test.greedy_values(ranker.state.w).mean())


def table() -> str:
    """All rankers."""
    rows = []
    for name, (seen, make) in RANKERS.items():
        learning, new = zip(*(values(make, seed) for seed in SEEDS), strict=True)
        rows.append([name, seen, cell(learning, digits=3), cell(new, digits=3)])
    return markdown(["", "labels revealed", "while learning", "new queries"], rows)
