"""What a user reveals of a shown list, and how users click."""

from rankloop.feedback.click_models import (
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
from rankloop.feedback.logs import Candidates, ClickLog, LoggedLists, Sessions
from rankloop.feedback.model_file import (
    ClickParameters,
    SavedModel,
    UnconvergedWarning,
    read_model,
    read_parameters,
)
from rankloop.feedback.revealed import Clicks, FullRelevance, Nothing, Signal, TopClicks, TopK

__all__ = [
    "Browsing",
    "Candidates",
    "CascadeModel",
    "ClickChainModel",
    "ClickLog",
    "ClickModel",
    "ClickParameters",
    "Clicks",
    "DependentClickModel",
    "DynamicBayesianModel",
    "FullRelevance",
    "LoggedLists",
    "Nothing",
    "PositionBasedModel",
    "SavedModel",
    "Sessions",
    "Signal",
    "TopClicks",
    "TopK",
    "TrustBiasModel",
    "UnconvergedWarning",
    "UserBrowsingModel",
    "read_model",
    "read_parameters",
]
