"""What rankers of fixed items that learn from clicks have in common: size, horizon, memory."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from rankloop import rankers
from rankloop.rankers.click_ranker import ClickRanker, check_counts

CLASSES = [
    found
    for name in rankers.__all__
    if isinstance(found := getattr(rankers, name), type) and issubclass(found, ClickRanker)
]


def make(kind: Any, **settings: Any) -> Any:
    horizon = {"horizon": 100} if "horizon" in inspect.signature(kind).parameters else {}
    return kind(**settings, **horizon)


@pytest.mark.parametrize("kind", CLASSES)
def test_size(kind: Any) -> None:
    assert (make(kind, n_items=4).n_positions, make(kind, n_items=4, n_positions=2).n_positions) == (4, 2)
    with pytest.raises(ValueError, match="n_positions must be at most n_items=4, got 5"):
        make(kind, n_items=4, n_positions=5)
    with pytest.raises(ValueError, match="n_items must be"):
        make(kind, n_items=0)


@pytest.mark.parametrize(
    ("kind", "missing", "enough"),
    [
        (rankers.MW, "eta or gamma", {"eta": 0.1, "gamma": 0.1}),
        (rankers.RankedExp3, "gamma", {"gamma": 0.1}),
        (rankers.TopRank, "delta", {"delta": 0.1}),
    ],
)
def test_a_horizon_is_needed_unless_all_that_follows_from_it_is_given(
    kind: Any, missing: str, enough: dict[str, float]
) -> None:
    assert kind(n_items=3, **enough).horizon is None
    for name in enough:
        given = {other: value for other, value in enough.items() if other != name}
        with pytest.raises(ValueError, match=f"where {missing} is None, got None"):
            kind(n_items=3, **given)
    with pytest.raises(ValueError, match="horizon must be"):
        kind(n_items=3, horizon=0)


@pytest.mark.parametrize("kind", CLASSES)
def test_memory_grows_with_the_size_and_is_never_far_below_the_state(kind: Any) -> None:
    ranker = make(kind, n_items=40, n_positions=20)
    state = sum(part.nbytes for part in ranker.state)
    assert kind.bytes_for(n_items=40, n_positions=20) >= 0.5 * state
    assert kind.bytes_for(n_items=80, n_positions=40) > kind.bytes_for(n_items=40, n_positions=20)


def test_counts_are_clicks_of_displays() -> None:
    check_counts(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]]))
    for S in ([[-1.0, 0.0]], [[0.0, 2.0]]):
        with pytest.raises(ValueError, match="must be click counts"):
            check_counts(np.array(S), np.array([[0.0, 1.0]]))
