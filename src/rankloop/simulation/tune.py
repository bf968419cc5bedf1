"""Search for a ranker's arguments with Optuna, over runs with different seeds."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankloop.arguments import whole
from rankloop.base import Environment, Ranker, import_path
from rankloop.extras import local_folder, require, write_text
from rankloop.ranges import Range
from rankloop.simulation.executors import Executor, is_threads, opened
from rankloop.simulation.play import Bar, Run, begin, check_match
from rankloop.simulation.runs import Job, Kept, Plays, identity, run_jobs
from rankloop.simulation.trace import Trace

if TYPE_CHECKING:
    import polars as pl

FINAL = -1  # the rung of the evaluation
FINAL_SEEDS = 1_000_000  # from here on, after the seed of the search, the seeds of the evaluation
_AT_ONCE = 8  # settings that are drawn together, at least; the number of workers must not change the answer
_LARGEST = 1.0 - 1e-12  # share of a range, which is below 1

Arguments = dict[str, Any]
Study = dict[str, Any]


class TunedRun(NamedTuple):
    """One run of a search.

    Parameters
    ----------
    setting : int
        Which of `Tuning.tried` played.
    rung : int
        The rung of the search, from 0; -1 for the evaluation.
    seed : int
        The seed of the run.
    value : float
        Mean value of a round.
    regret : float
        Regret after the last round; NaN where it is not known.
    explored : float
        Share of the rounds that explored.
    """

    setting: int
    rung: int
    seed: int
    value: float
    regret: float
    explored: float


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of a search.

    Parameters
    ----------
    ranker : Ranker
        The ranker as it was given.
    measure : str
        The measure of the rankings.
    is_loss : bool
        Whether a smaller value is better.
    rounds : int
        Rounds of every run.
    held_out : bool
        Whether the evaluation was in an environment of its own; otherwise in the same one, with fresh seeds.
    ranges : mapping of str to Range
        What was searched.
    tried : tuple of dict
        The settings: arguments that replace those of `ranker`. The first is empty, the ranker as it was given.
    chosen : int
        The number of the best setting.
    runs : tuple of TunedRun
        Every run, rung by rung, the evaluation last.
    """

    ranker: Ranker
    measure: str
    is_loss: bool
    rounds: int
    held_out: bool
    ranges: Mapping[str, Range]
    tried: tuple[dict[str, Any], ...]
    chosen: int
    runs: tuple[TunedRun, ...]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that were found; empty where the given ones were the best."""
        return dict(self.tried[self.chosen])

    def best(self) -> Ranker:
        """A fresh ranker with the arguments that were found."""
        return with_arguments(self.ranker, self.tried[self.chosen])

    def values(self, setting: int, *, final: bool = False) -> list[float]:
        """The mean values of the runs of a `setting`, by number; with `final` those of the evaluation."""
        return [run.value for run in self.runs if run.setting == setting and (run.rung == FINAL) == final]

    @property
    def gain(self) -> tuple[float, float]:
        """By how much the setting that was found is better in the evaluation, and the standard error of that.

        Runs with the same seed are compared. Positive is better, for losses and gains alike.
        """
        pairs = zip(self.values(self.chosen, final=True), self.values(0, final=True), strict=True)
        sign = -1.0 if self.is_loss else 1.0
        differences = [sign * (tuned - untuned) for tuned, untuned in pairs]
        gain = fmean(differences)
        squares = math.fsum((each - gain) ** 2 for each in differences)
        return gain, math.sqrt(squares / (len(differences) - 1) / len(differences))

    def __str__(self) -> str:
        count = len(self.values(0, final=True))
        where = "held-out queries or users" if self.held_out else "fresh seeds"
        before = fmean(self.values(0, final=True))
        words = (
            f"{self.measure} of {type(self.ranker).__name__} as given: {before:.4f} ({count} runs, {where})"
        )
        if self.chosen == 0:
            return f"{words}\nof {len(self.tried)} settings none was better"
        gain, error = self.gain
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.tried[self.chosen].items())
        verdict = f"better by {gain:.4f}, standard error {error:.4f}"
        if gain < 2.0 * error:
            verdict += ": no clear gain, keep what was given"
        level = fmean(self.values(self.chosen, final=True))
        return f"{words}\nwith {arguments}: {level:.4f}, {verdict}"


def tune(
    ranker: Ranker,
    environment: Environment,
    *,
    rounds: int,
    ranges: Mapping[str, Range] | None = None,
    settings: int = 16,
    factor: int = 2,
    final_runs: int = 8,
    held_out: Environment | None = None,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    executor: str | Executor = "threads",
) -> Tuning:
    """Search for the arguments with which a ranker has the best mean value over so many rounds.

    Settings are drawn by Optuna, a few at a time: the first spread evenly over the ranges, the others by its
    tree-structured Parzen estimator.
    Each plays one run; those that are among the better ones so far play more, by Optuna's successive halving. Every
    run has all of the `rounds`, because what is best in a short run is often not best in a long one, and all settings
    play the same seeds. The ranker as it is given is one of the settings, and is never given up. At the end it and
    the best one are evaluated with seeds, or in an environment, that the search has not met.

    `workers` and `executor` are as in `play_many` and do not change the answer; `progress` is one bar for the whole
    search.

    Parameters
    ----------
    ranker : Ranker
        A ranker with the arguments that stay; its state does not matter.
    environment : Environment
        Where settings are compared. Every run plays a fresh one like it.
    rounds : int
        Rounds of every run.
    ranges : mapping of str to Range, optional
        Arguments and what they may be; by default all that `ranker.tunable()` declares.
    settings : int, optional
        How many settings are drawn, the given one among them; those that are drawn twice play once.
    factor : int, optional
        About one of so many settings stays after each rung, and plays so many times the runs.
    final_runs : int, optional
        Runs of the evaluation, for each of the two settings.
    held_out : Environment, optional
        Where the evaluation is done, such as a stream of queries that `environment` does not have; by default in
        one like `environment`, with fresh seeds.
    seed : int, optional
        Chooses the settings and the seeds of all runs. The same seed gives the same answer.
    folder : str or os.PathLike, optional
        Keeps every run that ends. A search that was stopped goes on from there, and gives the same answer.

    Raises
    ------
    ValueError
        Where an argument is wrong, or the ranker declares nothing to tune.

    Examples
    --------
    >>> from rankloop import environments, rankers
    >>> from rankloop.ranges import Whole
    >>> users = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="dcg")
    >>> ranker = rankers.RTop1F(n_items=4, horizon=1_000)
    >>> tuning = tune(ranker, users, rounds=1_000, ranges={"blocks": Whole(1, 200)}, settings=4)
    >>> len(tuning.values(0, final=True))  # runs of the evaluation, of the ranker as it was given
    8
    """
    require("optuna", "polars", extra="tune", for_="tune")
    rounds = whole("rounds", rounds, at_least=1)
    settings = whole("settings", settings, at_least=2)
    factor = whole("factor", factor, at_least=2)
    final_runs = whole("final_runs", final_runs, at_least=2)
    seed = whole("seed", seed, at_least=0)
    workers = None if workers is None else whole("workers", workers, at_least=1)
    is_threads(executor)  # or it is refused
    for one in (environment, held_out):
        if one is not None:
            check_match(ranker, one.clone() if isinstance(one, Environment) else one, rounds)
    if held_out is not None and (held_out.measure, held_out.is_loss) != (
        environment.measure,
        environment.is_loss,
    ):
        raise ValueError(
            f"held_out must be measured by {environment.measure!r} as environment is, got {held_out.measure!r}"
        )
    searched = _read_ranges(ranker, ranges)
    _check_ranges(ranker, searched)
    study = {
        "ranker": import_path(type(ranker)),
        "ranges": {name: repr(each) for name, each in searched.items()},
        "rounds": rounds,
        "settings": settings,
        "factor": factor,
        "final_runs": final_runs,
        "seed": seed,
        "given": repr(ranker),
        "environment": repr(environment),
        "held_out": None if held_out is None else repr(held_out),
    }
    place = None if folder is None else local_folder(folder)
    about: list[tuple[Any, ...]] = [(), ()]
    last = environment if held_out is None else held_out
    if place is not None:
        # A run is known by all that decides it, so that several searches may share a folder.
        about = [(identity(ranker), identity(one), rounds) for one in (environment, last)]
    with (
        Bar(settings + 1, wanted=progress, label="tune") as bar,
        opened(executor, workers=workers) as (chosen, count),
    ):
        kept = Kept(None if place is None else place / "runs")
        search = _Search(ranker, rounds, kept, about, "cuda" if executor == "cuda" else chosen, count)
        best = search.find(environment, searched, settings, factor=factor, seed=seed, bar=bar)
        fresh = range(seed + FINAL_SEEDS, seed + FINAL_SEEDS + final_runs)
        search.play(last, FINAL, sorted({0, best}), fresh)
    runs = sorted(search.runs.values(), key=lambda run: (run.rung == FINAL, run.rung, run.setting, run.seed))
    tuning = Tuning(
        ranker=ranker,
        measure=environment.measure,
        is_loss=environment.is_loss,
        rounds=rounds,
        held_out=held_out is not None,
        ranges=searched,
        tried=tuple(search.tried),
        chosen=best,
        runs=tuple(runs),
    )
    if place is not None:
        write_text(
            place / "tuning.json", json.dumps(_answer(tuning, study), indent=2, allow_nan=False) + "\n"
        )
    return tuning


class _Search:
    """The settings that were tried, by number, and the runs that they have played."""

    def __init__(
        self,
        ranker: Ranker,
        rounds: int,
        kept: Kept,
        about: Sequence[tuple[Any, ...]],
        executor: str | Executor,
        workers: int,
    ) -> None:
        self.ranker, self.rounds, self.kept, self.about = ranker, rounds, kept, about
        self.executor, self.workers = executor, workers
        self.arguments = ranker.get_params()
        self.tried: list[Arguments] = [{}]
        self.numbers = {repr(self.arguments): 0}
        self.runs: dict[tuple[bool, int, int], TunedRun] = {}  # by evaluation or search, setting and seed

    def find(
        self,
        environment: Environment,
        ranges: Mapping[str, Range],
        settings: int,
        *,
        factor: int,
        seed: int,
        bar: Bar,
    ) -> int:
        """Draw settings and play them; the number of the best of those that have played all runs."""
        from optuna import create_study, pruners, samplers
        from optuna.trial import TrialState

        rungs = _ladder(settings, factor)
        at_once = max(_AT_ONCE, settings // 4)
        with _quiet():
            study = create_study(
                direction="minimize" if environment.is_loss else "maximize",
                sampler=samplers.TPESampler(seed=seed, n_startup_trials=at_once),
                pruner=pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=factor),
            )
            for shares in _spread(list(ranges), min(at_once, settings - 1), seed=seed):
                study.enqueue_trial(shares)
        complete = [0]
        for begun in range(1, settings, at_once):
            compiling = " (new code compiles once)" if begun == 1 else ""
            bar.show(begun - 1, f"{begun - 1} of {settings} settings{compiling}")
            drawn = [study.ask() for _ in range(min(at_once, settings - begun))]
            numbers = {
                trial.number: self._number(
                    {name: each.at(trial.suggest_float(name, 0.0, _LARGEST)) for name, each in ranges.items()}
                )
                for trial in drawn
            }
            before = 0
            for rung, count in enumerate(rungs):
                seeds = range(seed + before, seed + count)
                self.play(environment, rung, [0, *(numbers[trial.number] for trial in drawn)], seeds)
                before = count
                staying = []
                for trial in drawn:
                    value = self.mean(numbers[trial.number], range(seed, seed + count))
                    trial.report(value, count)
                    if count == rungs[-1]:
                        study.tell(trial, value)
                        complete.append(numbers[trial.number])
                    elif trial.should_prune():
                        study.tell(trial, state=TrialState.PRUNED)
                    else:
                        staying.append(trial)
                drawn = staying
        bar.show(settings, "evaluation")
        sign = 1.0 if environment.is_loss else -1.0
        everything = range(seed, seed + rungs[-1])
        return min(sorted(set(complete)), key=lambda number: sign * self.mean(number, everything))

    def play(self, environment: Environment, rung: int, numbers: Sequence[int], seeds: range) -> None:
        """Play these settings with these seeds, as far as they have not."""
        final = rung == FINAL
        todo = [
            (number, seed)
            for number in dict.fromkeys(numbers)
            for seed in seeds
            if (final, number, seed) not in self.runs
        ]
        jobs = []
        for number, seed in todo:
            setting = self.tried[number]
            digest = hashlib.sha256(repr((self.about[final], setting)).encode()).hexdigest()[:16]
            jobs.append(
                Job(
                    f"the run of {setting or 'the given setting'} with seed {seed}",
                    f"{'final' if final else 'search'}-{digest}-{seed}",
                    _RunOfSetting(self.ranker, setting, environment, self.rounds, seed),
                )
            )
        played = run_jobs(
            Plays(_begin, _row), jobs, kept=self.kept, executor=self.executor, workers=self.workers
        )
        for (number, seed), job in zip(todo, played, strict=True):
            self.runs[final, number, seed] = TunedRun(number, rung, seed, *job.rows.row(0))

    def mean(self, number: int, seeds: range) -> float:
        """The mean value of a setting over these seeds of the search."""
        return fmean([self.runs[False, number, seed].value for seed in seeds])

    def _number(self, setting: Arguments) -> int:
        _check_setting(self.ranker, setting)
        number = self.numbers.setdefault(repr(self.arguments | setting), len(self.tried))
        if number == len(self.tried):
            self.tried.append(setting)
        return number


class _RunOfSetting(NamedTuple):
    """A run of a search as data."""

    ranker: Ranker
    setting: Arguments
    environment: Environment
    rounds: int
    seed: int


def _begin(job: _RunOfSetting) -> list[Run]:
    ranker = with_arguments(job.ranker, job.setting)
    return [begin(ranker, job.environment.clone(), job.rounds, job.seed, 1, None)]


def _row(_: _RunOfSetting, traces: list[Trace]) -> pl.DataFrame:
    import polars

    (trace,) = traces
    row = {"value": trace.mean_value, "regret": trace.total_regret, "explored": trace.exploration_share}
    return polars.DataFrame([row])


def _spread(names: Sequence[str], count: int, *, seed: int) -> list[dict[str, float]]:
    """The first draws: each of `count` equal parts of every range is drawn from once."""
    rng = np.random.default_rng(seed)
    shares = {name: ((rng.permutation(count) + rng.random(count)) / count).tolist() for name in names}
    return [{name: min(shares[name][i], _LARGEST) for name in names} for i in range(count)]


def _ladder(settings: int, factor: int) -> list[int]:
    """How many runs a setting has by the end of each rung.

    >>> _ladder(16, 2)
    [1, 2, 4, 8]
    """
    rungs = [1]
    while rungs[-1] * factor < settings:
        rungs.append(rungs[-1] * factor)
    return rungs


@contextmanager
def _quiet() -> Iterator[None]:
    """Optuna tells of every new study, on standard error."""
    from optuna import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.WARNING)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _read_ranges(ranker: Ranker, ranges: Mapping[str, Range] | None) -> dict[str, Range]:
    kind = type(ranker).__name__
    searched = dict(ranker.tunable() if ranges is None else ranges)
    if not searched:
        raise ValueError(f"{kind} declares nothing to tune: name ranges of its arguments")
    known = ranker.get_params()
    for name, each in searched.items():
        if name not in known:
            raise ValueError(f"ranges must be of arguments of {kind}: {', '.join(known)}; got {name!r}")
        if not isinstance(each, Range):
            raise ValueError(f"ranges[{name!r}] must be a range of rankloop.ranges, got {each!r}")
    return searched


def _check_ranges(ranker: Ranker, ranges: Mapping[str, Range]) -> None:
    """What the ranker refuses, and a search without a choice, are told before anything is played."""
    arguments = ranker.get_params()
    choices = {name: [each.at(share / 64) for share in range(64)] for name, each in ranges.items()}
    for name, values in choices.items():
        for value in (values[0], values[32], values[63]):
            _check_setting(ranker, {name: value})
    if all(repr(value) == repr(arguments[name]) for name, values in choices.items() for value in values):
        raise ValueError("ranges must hold another setting than the one that is given")


def _check_setting(ranker: Ranker, setting: Arguments) -> None:
    try:
        with_arguments(ranker, setting)
    except ValueError as error:
        words = ", ".join(f"{name}={value!r}" for name, value in setting.items())
        raise ValueError(f"ranges has {words}, which {type(ranker).__name__} refuses: {error}") from error


def _answer(tuning: Tuning, study: Study) -> Study:
    evaluation = {
        name: tuning.values(number, final=True) for name, number in (("given", 0), ("found", tuning.chosen))
    }
    return {
        "study": study,
        "arguments": jsonable(tuning.arguments),
        "chosen": tuning.chosen,
        "evaluation": evaluation,
    }


def jsonable(setting: Arguments) -> Arguments:
    """Arguments as JSON holds them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in setting.items()}


def with_arguments(ranker: Ranker, setting: Mapping[str, Any]) -> Ranker:
    """A fresh ranker like `ranker`, but with the arguments of `setting`."""
    return type(ranker)(**{**ranker.get_params(), **setting}) if setting else ranker.clone()
