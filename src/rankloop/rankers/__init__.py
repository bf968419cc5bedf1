"""One file per algorithm, each named after its paper's name for it."""

from rankloop.rankers.best_in_hindsight import BestInHindsight
from rankloop.rankers.calibrated_squared import CalibratedSquared
from rankloop.rankers.feedexp3 import FeedExp3
from rankloop.rankers.fixed import Fixed
from rankloop.rankers.ftpl import FTPL
from rankloop.rankers.ftrl_pbm import FTRLPBM
from rankloop.rankers.listnet import ListNet
from rankloop.rankers.precision_ftrl import PrecisionFTRL
from rankloop.rankers.rtop1f import RTop1F
from rankloop.rankers.rtopkf import RTopKF
from rankloop.rankers.uniform import Uniform

__all__ = [
    "FTPL",
    "FTRLPBM",
    "BestInHindsight",
    "CalibratedSquared",
    "FeedExp3",
    "Fixed",
    "ListNet",
    "PrecisionFTRL",
    "RTop1F",
    "RTopKF",
    "Uniform",
]
