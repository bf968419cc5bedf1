"""The comparisons of Chen, Zhao and Li (2022): six algorithms, in worlds of clicks that stay the same or alternate."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop import data, environments, rankers
from rankloop.base import Ranker
from rankloop.environments import Periodic, PositionBased
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.experiments import runs
from rankloop.experiments.experiment import Job, seeded
from rankloop.experiments.own import OnOwnData
from rankloop.experiments.pbm_2022 import own_log
from rankloop.experiments.pbm_2022.setting import HORIZON, N_ITEMS, N_POSITIONS, PHASE, POINTS, STOCHASTIC
from rankloop.experiments.shared_runs import play_once
from rankloop.rankers import registry

RUNS = 10
QUICK_HORIZON, QUICK_PHASE, QUICK_RUNS = 20_000, 2_000, 2

FTRL, TOP_RANK, PIE, PMED, EXP3, MW = "FTRL-PBM", "TopRank", "PBM-PIE", "PMED", "RankedExp3", "MW"
ALGORITHMS = (FTRL, TOP_RANK, PIE, PMED, EXP3, MW)
EXCHANGING, REVERSING = "halves exchanged", "all reversed"
CHANGES = (STOCHASTIC, EXCHANGING, REVERSING)
FITTED = "our own EM"
_LOG = "clicks/yandex_wscd/trainSample.jsonl.gz"
_POINTS = 200
# Seconds of a million rounds, roughly: costly jobs start first. PMED's optimisation holds the interpreter, so its jobs
# are spread over the whole time, each beside one that is compiled.
_COST = {FTRL: 1.0, TOP_RANK: 0.1, PIE: 3.2, EXP3: 0.2, MW: 0.6}


class Panel(NamedTuple):
    """One picture: whose click probabilities, and how they change."""

    name: str
    source: str
    change: str

    @property
    def title(self) -> str:
        """What stands above it."""
        return f"({self.name}) {self.source.rpartition('@')[0] or self.source}, {self.change}"


class Comparison(OnOwnData):
    """What the figures and the table share: who plays, how a job is played, and the table of rewards and regrets.

    Parameters
    ----------
    also : sequence of str, optional
        Rankers to play, draw and list beside the six, by any name that `rankloop.rankers.registry.find` knows, such
        as "mypackage.rankers:Mine". Claims are about the six alone.
    """

    def __init__(self, *, also: Sequence[str] = ()) -> None:
        for name in also:
            make(
                name, horizon=QUICK_HORIZON, quick=True
            )  # whoever cannot play is refused before anything runs
        self.also = tuple(also)

    def run(self, job: Job) -> pl.DataFrame:
        """Average reward and regret as the rounds go by, two hundred times in a run."""
        told = job.settings
        people = world(told["source"], told["change"], phase=told["phase"])
        ranker = make(told["algorithm"], horizon=told["rounds"], quick=told["quick"])
        points = POINTS if told["algorithm"] == FTRL else _POINTS
        trace = play_once(ranker, people, rounds=told["rounds"], seed=job.seed, points=points)
        shown = slice(points // _POINTS - 1, None, points // _POINTS)
        rounds = trace.rounds[shown]
        columns = {
            "round": rounds,
            "reward": trace.total[shown] / rounds,
            "regret": trace.regret[shown],
            "ideal": people.ideal(rounds) / rounds,
        }
        return pl.DataFrame({key: told[key] for key in ("panel", "source", "change", "algorithm")} | columns)

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        rows = []
        for panel in map(
            Panel._make, results.select("panel", "source", "change").unique(maintain_order=True).rows()
        ):
            for algorithm in (*ALGORITHMS, *self.also):
                (reward, its_error), (regret, error) = (
                    runs.mean_and_error(ends(results, panel.name, algorithm, column=column))
                    for column in ("reward", "regret")
                )
                line = {"panel": panel.title, "algorithm": algorithm, "average reward": round(reward, 4)}
                rows.append(
                    line
                    | {"± reward": round(its_error, 4), "regret": round(regret), "± regret": round(error)}
                )
        return pl.DataFrame(rows)


def panels(sources: Sequence[str], names: str) -> tuple[Panel, ...]:
    """Each source with each change, named in this sequence."""
    pairs = [(source, change) for source in sources for change in CHANGES]
    return tuple(Panel(name, *pair) for name, pair in zip(names, pairs, strict=True))


def why_not_fitted() -> str | None:
    """What is missing to estimate click probabilities from the Yandex log, or None."""
    if importlib.util.find_spec("rankloop.logs") is None or not hasattr(data, "read_clicks"):
        return "this version cannot fit click models to logs"
    try:
        data.find(_LOG)
    except data.DataMissing as missing:
        return str(missing)
    return None


def fitted_users() -> PositionBased:
    """The ten most frequent items of the Yandex log on its first five positions, as our EM estimates them.

    New ones at each call: users keep count of themselves, and jobs run at the same time.
    """
    attraction, examination = _fitted()
    return PositionBased(attraction=attraction, examination=examination)


@cache
def _fitted() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    reader: Any = data
    log = reader.read_clicks(data.find(_LOG))
    found = importlib.import_module("rankloop.logs").fit_pbm(log.select(positions=N_POSITIONS, top=N_ITEMS))
    return np.asarray(found.attraction, np.float64), np.asarray(found.examination, np.float64)


def users(source: str) -> PositionBased:
    """The users of the odd phases: "gap 0.03", "gap 0.01", "Yandex", the fitted ones, or those of one's own log."""
    if source in own_log.KNOWN:
        own = own_log.KNOWN[source]
        return PositionBased(attraction=own.attraction, examination=own.examination)
    if source == FITTED:
        return fitted_users()
    return cast(PositionBased, environments.named(source.lower().replace("gap ", "gap-")))


def world(source: str, change: str, *, phase: int) -> ClickWorlds:
    """Users that stay the same, or alternate."""
    still = users(source)
    if change == STOCHASTIC:
        return still
    return (Periodic.exchanging if change == EXCHANGING else Periodic.reversing)(still, phase=phase)


def make(algorithm: str, *, horizon: int, quick: bool) -> Ranker:
    """The algorithm with its own paper's constants; PMED's plan is renewed when rounds have grown by half."""
    size: dict[str, Any] = {"n_items": N_ITEMS, "n_positions": N_POSITIONS}
    found: dict[str, Callable[[], Ranker]] = {
        FTRL: lambda: rankers.FTRLPBM(**size),
        TOP_RANK: lambda: rankers.TopRank(horizon=horizon, **size),
        PIE: lambda: rankers.PBMPIE(horizon=horizon, check_order=False, **size),
        PMED: lambda: rankers.PMED(growth=4.0 if quick else 1.5, tolerance=0.2 if quick else 0.05, **size),
        EXP3: lambda: rankers.RankedExp3(horizon=horizon, **size),
        MW: lambda: rankers.MW(horizon=horizon, **size),
    }
    if algorithm in found:
        return found[algorithm]()
    kind = registry.find(algorithm)
    taken, offered = inspect.signature(kind).parameters, size | {"horizon": horizon}
    return kind(**{name: value for name, value in offered.items() if name in taken})


def _code(algorithm: str) -> dict[str, str]:
    """A setting for rankers of other packages: a hash of their file, so that rows of older code are made again."""
    if algorithm in ALGORITHMS:
        return {}
    source = Path(inspect.getfile(registry.find(algorithm)))
    return {"code": hashlib.sha256(source.read_bytes()).hexdigest()[:16]}


def jobs(
    wanted: Sequence[Panel], *, quick: bool, also: Sequence[str] = (), count: int | None = None
) -> list[Job]:
    """One job for each panel, algorithm and seed."""
    rounds, phase = (QUICK_HORIZON, QUICK_PHASE) if quick else (HORIZON, PHASE)
    count = count or (QUICK_RUNS if quick else RUNS)
    found = []
    for place, panel in enumerate(wanted):
        told: dict[str, Any] = {"panel": panel.name, "source": panel.source, "change": panel.change}
        told |= {"rounds": rounds, "phase": phase, "quick": quick}
        for algorithm in (*ALGORITHMS, *also):
            own = _code(algorithm)
            for seed in range(1, count + 1):
                cost = _COST.get(algorithm, 6.0 - 3.6 * (seed + place / len(wanted)) / (count + 1))
                name = f"({panel.name}) {algorithm}"
                found.append(seeded(name, seed=seed, cost=cost, algorithm=algorithm, **told, **own))
    return found


def curve(results: pl.DataFrame, panel: str, algorithm: str) -> pl.DataFrame:
    """Average reward up to each round: the mean over the runs, and a standard error below and above it."""
    return runs.over_runs(runs.chosen(results, panel=panel, algorithm=algorithm), "reward", errors=1)


def ends(results: pl.DataFrame, panel: str, algorithm: str, *, column: str = "regret") -> NDArray[np.float64]:
    """`column` at the end of every run, by seed."""
    return runs.ends(results, column, panel=panel, algorithm=algorithm)
