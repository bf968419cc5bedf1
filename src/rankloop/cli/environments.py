"""Environments by name, including those of real users.

`rankloop.environments` knows the simulated ones; ratings come from `rankloop.data`, and only this layer may
the two be put together.
"""

from __future__ import annotations

from rankloop import data, environments
from rankloop.compiled import CompiledEnvironment

_PEOPLE = {
    "jester": (
        "real users and the jokes they like (Jester), drawn with replacement",
        "ratings/jester_users_0001_2500.csv.gz",
    ),
    "movielens": (
        "real users and the films they like (MovieLens), drawn with replacement",
        "ratings/ml-latest-small",
    ),
}

_DOCUMENTS = {
    "documents": ("synthetic queries with documents of 20 features, whose labels are revealed", None),
    **{
        f"documents-{kind}": (f"the same, with {kind} users who click on ten shown documents", kind)
        for kind in ("perfect", "navigational", "informational", "near-random")
    },
}


def environment_names() -> dict[str, str]:
    """Every name with its description."""
    return environments.names() | {
        name: description for name, (description, _) in (_DOCUMENTS | _PEOPLE).items()
    }


def environment(name: str, *, n_items: int | None = None, measure: str | None = None) -> CompiledEnvironment:
    """The environment called `name`; of real users, those who rated all of the `n_items` most-rated items.

    None of either leaves it to the environment; see `rankloop.environments.named`.

    >>> environment("bernoulli", n_items=3).n_items
    3
    """
    if name in _DOCUMENTS:
        return _documents(name, n_items=n_items, measure=measure)
    if name not in _PEOPLE:
        if name not in environments.names():
            raise ValueError(f"environment must be one of {', '.join(environment_names())}, got {name!r}")
        return environments.named(name, n_items=n_items, measure=measure)
    try:
        ratings = data.read_ratings(data.find(_PEOPLE[name][1]))
    except data.DataMissing as missing:
        raise ValueError(str(missing)) from None
    relevance = ratings.most_rated(10 if n_items is None else n_items).relevance()
    return environments.FixedItems(environments.users.listed(relevance), measure=measure or "dcg")


def _documents(name: str, *, n_items: int | None, measure: str | None) -> CompiledEnvironment:
    if n_items is not None:
        raise ValueError(f"n_items must be left out: every query of {name!r} has its own, got {n_items}")
    queries = data.synthetic_letor(n_queries=500, n_features=20, seed=1)
    kind = _DOCUMENTS[name][1]
    if kind is None:
        return environments.QueryStream(queries, measure=measure or "ndcg@10")
    return environments.ClickedQueries(queries, clicks=kind, measure=measure)
