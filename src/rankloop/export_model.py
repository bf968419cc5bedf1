"""A learnt linear ranker as a model that a search engine evaluates itself: in Elasticsearch, OpenSearch or Solr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import numbers

Scale = Mapping[str, float]
# What the engines call a scale of features, its two numbers, and the class that does it in Solr.
_SCALES: dict[tuple[str, ...], tuple[str, str, tuple[str, str]]] = {
    ("mean", "standard_deviation"): ("standard", "StandardNormalizer", ("avg", "std")),
    ("minimum", "maximum"): ("min_max", "MinMaxNormalizer", ("min", "max")),
}


def ltr_model(
    name: str, weights: ArrayLike, features: Sequence[str], *, scales: Mapping[str, Scale] | None = None
) -> dict[str, Any]:
    """The model for the learning-to-rank plugin of Elasticsearch and OpenSearch.

    It is the body of `POST _ltr/_featureset/SET/_createmodel`. The set must have its features in the same order for
    the same bits, since the plugin adds in that order.

    Parameters
    ----------
    name : str
        What to call the model.
    weights : array_like
        One for each feature; the plugin computes in float32, and so they are rounded to that.
    features : sequence of str
        The names of the features in the engine.
    scales : mapping of str to mapping of str to float, optional
        How features were scaled before the ranker learnt from them, by name: `mean` and `standard_deviation`, or
        `minimum` and `maximum`. The engine then does the same.

    Returns
    -------
    dict
        The body, for `json.dumps`.

    Examples
    --------
    >>> ltr_model("shop", [2.0, 0.5], ["bm25", "stars"])["model"]["model"]["definition"]
    {'bm25': 2.0, 'stars': 0.5}
    """
    w, normalizers = _read(weights, features, scales)
    model: dict[str, Any] = {"type": "model/linear", "definition": dict(zip(features, w, strict=True))}
    if normalizers:
        model["feature_normalizers"] = {
            feature: {_SCALES[tuple(scale)][0]: scale} for feature, scale in normalizers.items()
        }
    return {"model": {"name": name, "model": model}}


def solr_model(
    name: str,
    weights: ArrayLike,
    features: Sequence[str],
    *,
    scales: Mapping[str, Scale] | None = None,
    store: str = "_DEFAULT_",
) -> dict[str, Any]:
    """The `LinearModel` for Solr: the body of `PUT schema/model-store`.

    Parameters
    ----------
    name : str
        What to call the model.
    weights : array_like
        One for each feature.
    features : sequence of str
        The names of the features in Solr.
    scales : mapping of str to mapping of str to float, optional
        As for `ltr_model`.
    store : str, optional
        The feature store that has the features.

    Returns
    -------
    dict
        The body, for `json.dumps`.

    Examples
    --------
    >>> solr_model("shop", [2.0, 0.5], ["bm25", "stars"])["params"]
    {'weights': {'bm25': 2.0, 'stars': 0.5}}
    """
    w, normalizers = _read(weights, features, scales)
    entries: list[dict[str, Any]] = []
    for feature in features:
        entries.append({"name": feature})
        if feature in normalizers:
            scale = normalizers[feature]
            _, kind, words = _SCALES[tuple(scale)]
            params = {word: str(number) for word, number in zip(words, scale.values(), strict=True)}
            entries[-1]["norm"] = {"class": f"org.apache.solr.ltr.norm.{kind}", "params": params}
    return {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "store": store,
        "name": name,
        "features": entries,
        "params": {"weights": dict(zip(features, w, strict=True))},
    }


def _read(
    weights: ArrayLike, features: Sequence[str], scales: Mapping[str, Scale] | None
) -> tuple[list[float], dict[str, dict[str, float]]]:
    """Weights and scales as the engines round them; each is a double that is a float32 as well, however it is read."""
    given = np.atleast_1d(numbers("weights", weights))
    names = list(features)
    if given.shape != (len(names),) or not names:
        raise ValueError(f"features must be {given.size} names, one for each weight, got {names!r:.200}")
    if len({*names}) != len(names) or not all(isinstance(one, str) and one for one in names):
        raise ValueError(f"features must be names, none twice, got {names!r:.200}")
    w = [_single(f"the weight of {name!r}", one) for name, one in zip(names, given.tolist(), strict=True)]
    normalizers: dict[str, dict[str, float]] = {}
    for name, scale in (scales or {}).items():
        if name not in names:
            raise ValueError(f"scales must be of features, there is none called {name!r}")
        keys = next((keys for keys in _SCALES if {*keys} == {*scale}), None)
        if keys is None:
            words = " or ".join(", ".join(keys) for keys in _SCALES)
            raise ValueError(f"the scale of {name!r} must have {words}, got {dict(scale)!r:.200}")
        low, high = (_single(f"{key} of {name!r}", scale[key]) for key in keys)
        if high <= (low if keys[0] == "minimum" else 0.0):
            above = "minimum" if keys[0] == "minimum" else "0"
            raise ValueError(
                f"{keys[1]} of {name!r} must be above {above} in float32, got {scale[keys[1]]!r}"
            )
        normalizers[name] = dict(zip(keys, (low, high), strict=True))
    return w, normalizers


def _single(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{what} must be a number, got {value!r:.80}")
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))
    if not np.isfinite(rounded):
        raise ValueError(f"{what} must be finite in float32, got {value!r}")
    return rounded
