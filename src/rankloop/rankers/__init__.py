"""One file per algorithm, each named after its paper's name for it."""

from rankloop.rankers.best_in_hindsight import BestInHindsight
from rankloop.rankers.calibrated_squared import CalibratedSquared
from rankloop.rankers.cascade_kl_ucb import CascadeKLUCB
from rankloop.rankers.cascade_lin_ts import CascadeLinTS
from rankloop.rankers.cascade_lin_ucb import CascadeLinUCB
from rankloop.rankers.cascade_robust_ucb import CascadeRobustUCB
from rankloop.rankers.dbgd import DBGD
from rankloop.rankers.feedexp3 import FeedExp3
from rankloop.rankers.fixed import Fixed
from rankloop.rankers.ftpl import FTPL
from rankloop.rankers.ftrl_pbm import FTRLPBM
from rankloop.rankers.grab import GRAB
from rankloop.rankers.lin_ts_pbm import LinTSPBM
from rankloop.rankers.lin_ucb_pbm import LinUCBPBM
from rankloop.rankers.listnet import ListNet
from rankloop.rankers.mgd import MGD
from rankloop.rankers.mw import MW
from rankloop.rankers.neural import NeuralPDGD as NeuralPDGD  # not in __all__: they need torch
from rankloop.rankers.neural import NeuralRTopK as NeuralRTopK
from rankloop.rankers.pbm_pie import PBMPIE
from rankloop.rankers.pbm_ts import PBMTS
from rankloop.rankers.pdgd import PDGD
from rankloop.rankers.pege import PEGE
from rankloop.rankers.pl_rank import PLRank
from rankloop.rankers.pmed import PMED
from rankloop.rankers.precision_ftrl import PrecisionFTRL
from rankloop.rankers.ranked_exp3 import RankedExp3
from rankloop.rankers.rtop1f import RTop1F
from rankloop.rankers.rtopkf import RTopKF
from rankloop.rankers.semi_bandit_ftrl import SemiBanditFTRL
from rankloop.rankers.top_ftrl import TopFTRL
from rankloop.rankers.top_rank import TopRank
from rankloop.rankers.uniform import Uniform

__all__ = [
    "DBGD",
    "FTPL",
    "FTRLPBM",
    "GRAB",
    "MGD",
    "MW",
    "PBMPIE",
    "PBMTS",
    "PDGD",
    "PEGE",
    "PMED",
    "BestInHindsight",
    "CalibratedSquared",
    "CascadeKLUCB",
    "CascadeLinTS",
    "CascadeLinUCB",
    "CascadeRobustUCB",
    "FeedExp3",
    "Fixed",
    "LinTSPBM",
    "LinUCBPBM",
    "ListNet",
    "PLRank",
    "PrecisionFTRL",
    "RTop1F",
    "RTopKF",
    "RankedExp3",
    "SemiBanditFTRL",
    "TopFTRL",
    "TopRank",
    "Uniform",
]
