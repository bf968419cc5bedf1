"""Learning from logs: click models estimated from them, and what other rankings would have been worth."""

from rankloop.logs.evaluation import Evaluation, PropensityWarning, TooFewSamples, evaluate, on_policy
from rankloop.logs.pbm import ClickModelWarning, FittedPBM, fit_pbm

__all__ = [
    "ClickModelWarning",
    "Evaluation",
    "FittedPBM",
    "PropensityWarning",
    "TooFewSamples",
    "evaluate",
    "fit_pbm",
    "on_policy",
]
