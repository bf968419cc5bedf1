"""Losses that replace a ranking measure and have a gradient, and estimates of the gradient from a few labels."""

from rankloop.surrogates import estimators, moments
from rankloop.surrogates.calibrated_squared import CalibratedSquared
from rankloop.surrogates.centred_squared import CentredSquared
from rankloop.surrogates.kl import KL
from rankloop.surrogates.listnet import ListNet
from rankloop.surrogates.ranksvm import RankSVM
from rankloop.surrogates.registry import get, names, require
from rankloop.surrogates.smooth_dcg import SmoothDCG
from rankloop.surrogates.squared import Squared
from rankloop.surrogates.surrogate import Surrogate

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
