"""Learning from logs: click models fitted to them, and off-policy evaluation of other rankings."""

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
