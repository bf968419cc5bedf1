"""Calls that create a ranker and change its items, with the features that are stored for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from rankloop.serving.client.answers import EventAnswer, RankerAnswer, read
from rankloop.serving.client.bodies import SupportsArray, json_bytes, packed_features
from rankloop.serving.client.calls import Call, of
from rankloop.serving.client.explaining import FeaturePart
from rankloop.serving.clock import new_id


@dataclass(frozen=True)
class ItemFeatures:
    """The features that are stored for an item.

    Parameters
    ----------
    item : str
        The item.
    since : int
        The row of the log that stored them.
    features : list of FeaturePart
        Each with its value, and where the ranker has weights, its present weight and the product of the two.
    """

    item: str
    since: int
    features: list[FeaturePart]


def create(
    name: str,
    *,
    algorithm: str,
    items: Sequence[str] | None = None,
    parameters: dict[str, Any] | None = None,
    policy: dict[str, Any] | None = None,
    seed: int | None = None,
    features: Sequence[Sequence[float]] | SupportsArray | None = None,
    feature_names: Sequence[str] | None = None,
) -> Call[RankerAnswer]:
    """Create a ranker. The same again changes nothing; the same name with anything else is a conflict.

    Parameters
    ----------
    name : str
        The name of the ranker: letters, digits, dot, dash, underscore.
    algorithm : str
        The class of the ranker, such as "TopFTRL".
    items : sequence of str, optional
        The items to rank; for rankers with features those whose features are stored, if any.
    parameters : dict, optional
        The parameters of the ranker.
    policy : dict, optional
        `deadline_seconds`, `parking_seconds` and `late` ("ignore" or "learn").
    seed : int, optional
        The seed of the lists; drawn by the service where it is left out.
    features : array of shape (n_items, n_columns), optional
        For rankers with features, a row for each of `items`, stored as float32.
    feature_names : sequence of str, optional
        Names of all features that the ranker takes, for explanations.

    Returns
    -------
    RankerAnswer
        The ranker; `duplicate` if it was there already.
    """
    body: dict[str, Any] = {"name": name, "algorithm": algorithm, "parameters": parameters or {}}
    body |= {"items": items, "policy": policy, "seed": seed, "feature_names": feature_names}
    return _post("/v1/rankers", RankerAnswer, body | _packed(features))


def change_items(
    name: str,
    *,
    add: Sequence[str] | None = None,
    retire: Sequence[str] | None = None,
    update: Sequence[str] | None = None,
    features: Sequence[Sequence[float]] | SupportsArray | None = None,
    feature_names: Sequence[str] | None = None,
) -> Call[EventAnswer]:
    """Add items, retire items, or store other features for items.

    Parameters
    ----------
    name : str
        The name of the ranker.
    add : sequence of str, optional
        Items to add.
    retire : sequence of str, optional
        Items that are no longer shown.
    update : sequence of str, optional
        Items that stay, and get other features.
    features : array of shape (n_items, n_columns), optional
        For rankers with features, a row for each of `add`, then for each of `update`.
    feature_names : sequence of str, optional
        Names of all features that the ranker takes, from now on.

    Returns
    -------
    EventAnswer
        What became of the change.
    """
    body: dict[str, Any] = {"add": add or [], "retire": retire or [], "event_id": new_id()}
    body |= {"update": update, "feature_names": feature_names}
    return _post(f"{of(name)}/items", EventAnswer, body | _packed(features))


def item_features(name: str, item: str) -> Call[ItemFeatures]:
    """Return the features that are stored for an item.

    Parameters
    ----------
    name : str
        The name of the ranker.
    item : str
        The item.

    Returns
    -------
    ItemFeatures
        Its features.
    """
    path = f"{of(name)}/features/{quote(item, safe='')}"
    return Call("GET", path, lambda told: read(ItemFeatures, told))


def _packed(features: Any) -> dict[str, Any]:
    return {} if features is None else {"features": packed_features(features)}


def _post(path: str, answer: Any, body: dict[str, Any]) -> Call[Any]:
    given = {name: value for name, value in body.items() if value is not None}
    return Call("POST", path, lambda told: read(answer, told), json_bytes(given))
