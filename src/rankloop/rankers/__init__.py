"""One file per algorithm, with its kernels above and its class below; a file is loaded when its ranker is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as `__getattr__` opens, for type checkers and editors
    from rankloop.rankers.cascade import CascadeKLUCB as CascadeKLUCB
    from rankloop.rankers.cascade import CascadeRobustUCB as CascadeRobustUCB
    from rankloop.rankers.click_mix import ClickMix as ClickMix
    from rankloop.rankers.dueling import DBGD as DBGD
    from rankloop.rankers.dueling import MGD as MGD
    from rankloop.rankers.feedexp3 import FeedExp3 as FeedExp3
    from rankloop.rankers.ftpl import FTPL as FTPL
    from rankloop.rankers.ftrl_pbm import FTRLPBM as FTRLPBM
    from rankloop.rankers.full_information import CalibratedSquared as CalibratedSquared
    from rankloop.rankers.full_information import ListNet as ListNet
    from rankloop.rankers.grab import GRAB as GRAB
    from rankloop.rankers.linear_bandits import CascadeLinTS as CascadeLinTS
    from rankloop.rankers.linear_bandits import CascadeLinUCB as CascadeLinUCB
    from rankloop.rankers.linear_bandits import LinTSPBM as LinTSPBM
    from rankloop.rankers.linear_bandits import LinUCBPBM as LinUCBPBM
    from rankloop.rankers.mw import MW as MW
    from rankloop.rankers.neural import NeuralPDGD as NeuralPDGD
    from rankloop.rankers.neural import NeuralRTopK as NeuralRTopK
    from rankloop.rankers.p2_lin_rank import P2LinRank as P2LinRank
    from rankloop.rankers.pbm_pie import PBMPIE as PBMPIE
    from rankloop.rankers.pbm_ts import PBMTS as PBMTS
    from rankloop.rankers.pdgd import PDGD as PDGD
    from rankloop.rankers.pege import PEGE as PEGE
    from rankloop.rankers.pl_rank import PLRank as PLRank
    from rankloop.rankers.pmed import PMED as PMED
    from rankloop.rankers.precision_ftrl import PrecisionFTRL as PrecisionFTRL
    from rankloop.rankers.query_memory import QueryMemory as QueryMemory
    from rankloop.rankers.ranked_exp3 import RankedExp3 as RankedExp3
    from rankloop.rankers.reference import BestInHindsight as BestInHindsight
    from rankloop.rankers.reference import Fixed as Fixed
    from rankloop.rankers.reference import Uniform as Uniform
    from rankloop.rankers.rtop1f import RTop1F as RTop1F
    from rankloop.rankers.rtopkf import RTopKF as RTopKF
    from rankloop.rankers.semi_bandit_ftrl import SemiBanditFTRL as SemiBanditFTRL
    from rankloop.rankers.top_ftrl import TopFTRL as TopFTRL
    from rankloop.rankers.top_rank import TopRank as TopRank

_NAMES = {
    "cascade": "CascadeKLUCB CascadeRobustUCB",
    "click_mix": "ClickMix",
    "dueling": "DBGD MGD",
    "feedexp3": "FeedExp3",
    "ftpl": "FTPL",
    "ftrl_pbm": "FTRLPBM",
    "full_information": "CalibratedSquared ListNet",
    "grab": "GRAB",
    "linear_bandits": "CascadeLinTS CascadeLinUCB LinTSPBM LinUCBPBM",
    "mw": "MW",
    "neural": "NeuralPDGD NeuralRTopK",
    "p2_lin_rank": "P2LinRank",
    "pbm_pie": "PBMPIE",
    "pbm_ts": "PBMTS",
    "pdgd": "PDGD",
    "pege": "PEGE",
    "pl_rank": "PLRank",
    "pmed": "PMED",
    "precision_ftrl": "PrecisionFTRL",
    "query_memory": "QueryMemory",
    "ranked_exp3": "RankedExp3",
    "reference": "BestInHindsight Fixed Uniform",
    "rtop1f": "RTop1F",
    "rtopkf": "RTopKF",
    "semi_bandit_ftrl": "SemiBanditFTRL",
    "top_ftrl": "TopFTRL",
    "top_rank": "TopRank",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
_NEED_TORCH = _NAMES["neural"].split()
__all__ = sorted(_MODULES.keys() - _NEED_TORCH, key=lambda name: (not name.isupper(), name))


if not TYPE_CHECKING:  # a checker would take every name for known, and of any type

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'rankloop.rankers' has no attribute {name!r}")
        return getattr(importlib.import_module(f"rankloop.rankers.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({name for name in globals() if not name.startswith("_")} | {*_MODULES})
