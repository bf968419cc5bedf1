"""Learning from logs: click models fitted to them, and off-policy evaluation of other rankings."""

from rankloop.extras import require

require("scipy", extra="scipy", for_="rankloop.logs")

from rankloop.logs.click_models import MODELS, ModelComparison, compare_models, fit_model
from rankloop.logs.counterfactual import FittedRanker, fit_ranker
from rankloop.logs.fitted_models import Estimate, FittedModel, Score
from rankloop.logs.judgments import Judgments
from rankloop.logs.neural import FittedNeuralRanker, fit_neural_ranker
from rankloop.logs.off_policy import Evaluation, PropensityWarning, TooFewSamples, evaluate, on_policy
from rankloop.logs.pbm import ClickModelWarning, FittedPBM, fit_pbm
from rankloop.logs.regression import FittedRegression, fit_regression_em

__all__ = [
    "MODELS",
    "ClickModelWarning",
    "Estimate",
    "Evaluation",
    "FittedModel",
    "FittedNeuralRanker",
    "FittedPBM",
    "FittedRanker",
    "FittedRegression",
    "Judgments",
    "ModelComparison",
    "PropensityWarning",
    "Score",
    "TooFewSamples",
    "compare_models",
    "evaluate",
    "fit_model",
    "fit_neural_ranker",
    "fit_pbm",
    "fit_ranker",
    "fit_regression_em",
    "on_policy",
]
