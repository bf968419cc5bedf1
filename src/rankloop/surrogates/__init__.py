"""Losses that replace a ranking measure and have a gradient, and estimates of the gradient from a few labels."""

from rankloop.surrogates import estimators, moments
from rankloop.surrogates.losses import (
    KL,
    CalibratedSquared,
    CentredSquared,
    ListNet,
    RankSVM,
    SmoothDCG,
    Squared,
    Surrogate,
    get,
    names,
    require,
)

__all__ = [
    "KL",
    "CalibratedSquared",
    "CentredSquared",
    "ListNet",
    "RankSVM",
    "SmoothDCG",
    "Squared",
    "Surrogate",
    "estimators",
    "get",
    "moments",
    "names",
    "require",
]
