"""The features that are stored for one item, with the weight that the ranker gives each of them now."""

from __future__ import annotations

import msgspec
import numpy as np

from rankloop.serving.errors import NotFound
from rankloop.serving.explain import FeaturePart, feature_parts
from rankloop.serving.served_ranker import ServedRanker


class ItemFeaturesAnswer(msgspec.Struct, frozen=True):
    """The stored features of an item, and the row of the log that stored them."""

    item: str
    since: int
    features: list[FeaturePart]


def item_features(served: ServedRanker, item: str) -> ItemFeaturesAnswer:
    """The features of one item."""
    catalogue = served.fold.stored
    if item not in catalogue.present:
        raise NotFound(f"{item!r} has no stored features", field="item")
    row = catalogue.vectors(np.array([catalogue.present[item]]))[0]
    weights = served.fold.ranker.weights_now()
    known = np.zeros(len(row)) if weights is None else weights[: len(row)]
    return ItemFeaturesAnswer(item, catalogue.since(item), feature_parts(row, known, catalogue.feature_names))
