"""What rankers answer to a service: the memory they allocate, what they are called, and how items change."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Ranker
from rankloop.servable import Servable

KINDS = [kind for name in rankers.__all__ if inspect.isclass(kind := getattr(rankers, name))]
INSTEAD: dict[str, dict[str, Any]] = {
    "MW": {"eta": 0.05, "gamma": 0.1},
    "RankedExp3": {"gamma": 0.1},
    "TopRank": {"delta": 1e-4},
    "PBMPIE": {"horizon": 1000},
}
SIZES = [(300, 300), (400, 20), (40, 40), (2_000, 3)]


def _nbytes(part: Any) -> int:
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(map(_nbytes, part)) if isinstance(part, tuple) else 0


def _allocated(ranker: Any, n: int) -> int:
    return sum(map(_nbytes, (ranker.state, ranker.params, ranker.scratch(n), ranker.blank_ticket(n))))


def _arguments(kind: type[Ranker], n: int, m: int) -> dict[str, Any]:
    known = inspect.signature(kind).parameters
    given = dict(INSTEAD.get(kind.__name__, {}))
    if "n_features" in known:
        return given | {"n_features": n}
    if "order" in known:
        return {"order": np.arange(n)}
    if "relevance" in known:
        return {"relevance": np.eye(n)}
    if kind.__name__ == "FeedExp3":
        n = {300: 6, 400: 5, 40: 4, 2_000: 3}[n]
    return given | {"n_items": n} | ({"n_positions": m} if "n_positions" in known else {})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_bytes_for_is_what_is_allocated(kind: type[Ranker], n: int, m: int) -> None:
    if kind.__name__ == "PMED":
        n, m = n // 4, max(m // 4, 1)
    arguments = _arguments(kind, n, m)
    ranker = kind(**arguments)
    real = _allocated(ranker, ranker.n_positions or n)
    asked = {"n_items": n} | {k: v for k, v in arguments.items() if k not in ("order", "relevance")}
    predicted = kind.bytes_for(**asked)
    assert 0.8 * real - 1_024 <= predicted <= 1.2 * real + 1_024, (predicted, real)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_ranker_says_what_it_is_in_one_sentence(kind: type[Ranker]) -> None:
    assert kind.summary != Servable.summary
    assert kind.summary.endswith(".")
    assert len(kind.summary) < 100


@pytest.mark.parametrize("name", ["PMED", "GRAB", "MW", "PBMTS", "PBMPIE", "FTRLPBM", "FeedExp3"])
def test_ten_thousand_items_on_all_positions_are_known_to_be_too_many(name: str) -> None:
    """The number is there at once, and before anything is allocated."""
    assert getattr(rankers, name).bytes_for(n_items=10_000) > 1_000_000_000


def test_the_default_counts_the_positions_that_the_constructor_takes() -> None:
    class AllShown(Servable):
        def __init__(self, *, n_items: int) -> None: ...

    class SomeShown(Servable):
        def __init__(self, *, n_items: int, n_positions: int | None = None) -> None: ...

    assert AllShown.bytes_for(n_items=1_000) == 24_000
    assert SomeShown.bytes_for(n_items=1_000) == 24_000_000
    assert SomeShown.bytes_for(n_items=1_000, n_positions=5) == 120_000
    with pytest.raises(ValueError, match="AllShown cannot change its items"):
        AllShown(n_items=1).carry(None, np.array([0]))
