"""Click models as tables: the same chances as the models themselves have, click by click."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from rankloop.feedback import (
    Browsing,
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)

_RNG = np.random.default_rng(1)
ATTRACTION = np.array([0.9, 0.2, 0.5, 0.7])
MODELS: list[ClickModel] = [
    CascadeModel(attraction=ATTRACTION),
    DependentClickModel(attraction=ATTRACTION, continuation=[0.9, 0.4, 0.6]),
    DynamicBayesianModel(attraction=ATTRACTION, satisfaction=[0.1, 0.8, 0.3, 0.5], continuation=0.7),
    PositionBasedModel(attraction=ATTRACTION, examination=[1.0, 0.4, 0.3, 0.2]),
    UserBrowsingModel(attraction=ATTRACTION, examination=_RNG.random((4, 4))),
    ClickChainModel(attraction=ATTRACTION, continuation=[0.9, 0.7, 0.2]),
    TrustBiasModel(
        attraction=ATTRACTION,
        examination=[1.0, 0.6, 0.3],
        true_clicks=[0.9, 0.8, 0.7],
        false_clicks=[0.4, 0.2, 0.1],
    ),
]


def chance_of(tables: Browsing, items: Any, clicks: Any) -> float:
    """The chance that a user clicks just so, straight from what `Browsing` says."""
    reading, stopped, last = 1.0, 0.0, 0
    for j, (item, clicked) in enumerate(zip(items, clicks, strict=True)):
        p = tables.examination[j, last] * tables.attraction[item, j]
        goes_on = tables.after_click[item, j] if clicked else tables.after_none[j]
        here = reading * (p if clicked else 1 - p)
        stopped = (0.0 if clicked else stopped) + here * (1 - goes_on)
        reading = here * goes_on
        last = j + 1 if clicked else last
    return reading + stopped


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_tables_have_the_chances_of_the_model(model: ClickModel) -> None:
    for items in ([2, 0, 3], [1, 3], [0]):
        tables = model.browsing(len(items))
        assert tables.attraction.shape == (4, len(items))
        for clicks in product((0, 1), repeat=len(items)):
            exact = float(model.likelihood(items, clicks))
            assert chance_of(tables, items, clicks) == pytest.approx(exact, abs=1e-14)


def test_more_positions_than_the_model_has_are_refused() -> None:
    with pytest.raises(ValueError, match=r"n_positions must be at most 3.*got 4"):
        MODELS[1].browsing(4)
    with pytest.raises(ValueError, match="n_positions"):
        MODELS[0].browsing(0)
