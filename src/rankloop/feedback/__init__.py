"""What a user reveals of a shown list, and how users click."""

from rankloop.feedback.browsing import Browsing
from rankloop.feedback.candidates import Candidates
from rankloop.feedback.cascade import CascadeModel
from rankloop.feedback.click_chain import ClickChainModel
from rankloop.feedback.click_log import ClickLog
from rankloop.feedback.click_model import ClickModel
from rankloop.feedback.dependent_click import DependentClickModel
from rankloop.feedback.dynamic_bayesian import DynamicBayesianModel
from rankloop.feedback.logged_lists import LoggedLists
from rankloop.feedback.model_file import SavedModel, read_model
from rankloop.feedback.parameters import ClickParameters, UnconvergedWarning, read_parameters
from rankloop.feedback.position_based import PositionBasedModel
from rankloop.feedback.revealed import Clicks, FullRelevance, Nothing, Signal, TopClicks, TopK
from rankloop.feedback.sessions import Sessions
from rankloop.feedback.trust_bias import TrustBiasModel
from rankloop.feedback.user_browsing import UserBrowsingModel

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
