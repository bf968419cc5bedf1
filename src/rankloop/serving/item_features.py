"""The features that are stored for one item, with the weight that the ranker gives each of them now."""

from __future__ import annotations

import numpy as np

from rankloop.serving.api import ItemFeatures
from rankloop.serving.errors import NotFound
from rankloop.serving.explain import feature_parts
from rankloop.serving.served_ranker import ServedRanker


def item_features(served: ServedRanker, item: str) -> ItemFeatures:
    """The features of one item."""
    catalogue = served.fold.stored
    if item not in catalogue.present:
        raise NotFound(f"{item!r} has no stored features", field="item")
    row = catalogue.vectors(np.array([catalogue.present[item]]))[0]
    weights = served.fold.ranker.weights_now()
    known = np.zeros(len(row)) if weights is None else weights[: len(row)]
    return ItemFeatures(item, catalogue.since(item), feature_parts(row, known, catalogue.feature_names))
