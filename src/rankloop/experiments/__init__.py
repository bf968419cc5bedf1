"""The papers reproduced: each experiment is one file with jobs, claims and figures, run by ``rankloop reproduce``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankloop.extras import require

if TYPE_CHECKING:
    from rankloop.experiments.experiment import Experiment

__all__ = ["check_installed", "get", "names"]

# name -> "module:class"; the module is imported when the experiment is requested.
_KNOWN = {
    "top1-2015-fig1": "rankloop.experiments.top1_2015.fig1:Top1Figure1",
    "top1-2015-fig2": "rankloop.experiments.top1_2015.fig2:Top1Figure2",
    "top1-2015-rates": "rankloop.experiments.top1_2015.rates:Top1Rates",
    "top1-2015-jester": "rankloop.experiments.top1_2015.jester:Top1Jester",
    "top-2016-fig1": "rankloop.experiments.top_2016.fig1:TopFigure1",
    "top-2016-regret": "rankloop.experiments.top_2016.regret:TopRegret",
    "top-2016-impossible": "rankloop.experiments.top_2016.impossible:TopImpossible",
    "top-2016-beyond": "rankloop.experiments.top_2016.beyond:TopBeyond",
    "pbm-2022-fig1": "rankloop.experiments.pbm_2022.comparison:PBMFigure1",
    "pbm-2022-fig2": "rankloop.experiments.pbm_2022.comparison:PBMFigure2",
    "pbm-2022-table1": "rankloop.experiments.pbm_2022.table1:PBMTable1",
    "pbm-2022-ftrl": "rankloop.experiments.pbm_2022.ftrl:PBMFTRL",
    "pbm-2022-bounds": "rankloop.experiments.pbm_2022.bounds:PBMBounds",
    "pbm-2022-estimators": "rankloop.experiments.pbm_2022.estimators:PBMEstimators",
    "pbm-2022-solver": "rankloop.experiments.pbm_2022.solver:PBMSolver",
    "pbm-2022-leader": "rankloop.experiments.pbm_2022.leader:PBMLeader",
    "beyond-precision": "rankloop.experiments.beyond_precision:BeyondPrecision",
    "beyond-top-both-worlds": "rankloop.experiments.beyond_both_worlds:BeyondBothWorlds",
    "oltr-comparison": "rankloop.experiments.oltr_comparison:OLTRComparison",
}


def check_installed() -> None:
    """MissingExtra unless the libraries are there that every experiment needs."""
    require("matplotlib", "polars", "rich", extra="cli,data,plot", for_="an experiment")


def names() -> list[str]:
    """Every experiment, in the order in which ``all`` runs them."""
    return list(_KNOWN)


def get(name: str, *, also: Sequence[str] = ()) -> Experiment:
    """The experiment called `name`.

    Parameters
    ----------
    name : str
        The name, as `names` gives it.
    also : sequence of str, optional
        Further rankers to play in a comparison (pbm-2022-fig1, pbm-2022-fig2, pbm-2022-table1), by any name
        that `rankloop.rankers.registry.find` knows, such as "mypackage.rankers:Mine".

    Examples
    --------
    >>> get("top1-1995")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: name must be one of top1-2015-fig1, ..., got 'top1-1995'
    """
    if name not in _KNOWN:
        raise ValueError(f"name must be one of {', '.join(_KNOWN)}, got {name!r}")
    check_installed()
    module, _, attribute = _KNOWN[name].partition(":")
    kind = getattr(importlib.import_module(module), attribute)
    taken = inspect.signature(kind).parameters
    if also and "also" not in taken:
        raise ValueError(f"experiment {name!r} compares no further rankers, got also={list(also)}")
    experiment: Experiment = kind(also=also) if also else kind()
    return experiment
