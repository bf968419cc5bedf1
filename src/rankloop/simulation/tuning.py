"""Search for a ranker's arguments, by successive halving over runs with different seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import NamedTuple

from rankloop.arguments import whole
from rankloop.base import Environment, Ranker, import_path
from rankloop.ranges import Range
from rankloop.remote_folder import opened_folder
from rankloop.simulation.bar import Bar
from rankloop.simulation.executors import Dispatch, Executor, is_threads, opened
from rankloop.simulation.halving import Arguments, best, draw_settings, ladder
from rankloop.simulation.matching import check_match
from rankloop.simulation.run import Run, begin
from rankloop.simulation.threads import finish_all
from rankloop.simulation.trace import Trace
from rankloop.simulation.tuning_folder import Result, Study, TuningFolder, identity
from rankloop.simulation.tuning_result import FINAL, TunedRun, Tuning, with_arguments

FINAL_SEEDS = 1_000_000  # from here on, after the seed of the search, the seeds of the evaluation


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

    Successive halving: every setting plays one run, the better half plays as many runs again, and so on until one is
    left. Every run has all of the `rounds`, because what is best in a short run is often not best in a long one; the
    settings of one rung play the same seeds. The ranker as it is given is one of the settings. At the end it and the
    best one are evaluated with seeds, or in an environment, that the search has not met.

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
        How many settings are tried, the given one among them; fewer where there are no more.
    factor : int, optional
        One of so many settings stays after each rung, and plays so many times the runs.
    final_runs : int, optional
        Runs of the evaluation, for each of the two settings.
    held_out : Environment, optional
        Where the evaluation is done, such as a stream of queries that `environment` does not have; by default in
        one like `environment`, with fresh seeds.
    seed : int, optional
        Chooses the settings and the seeds of all runs. The same seed gives the same answer.
    folder : str or os.PathLike, optional
        Keeps every run that ends. A search that was stopped goes on from there, and gives the same answer. Or an
        address of an object store that fsspec knows, such as ``s3://bucket/search``.
    workers : int, optional
        How many runs play at once; None takes one for each core. It does not change the answer.
    progress : bool, optional
        One bar for the whole search, as in `play`.
    executor : str or Executor, optional
        Where the runs are played, as in `play_many`. It does not change the answer.

    Returns
    -------
    Tuning
        The arguments that were found, and every run.

    Raises
    ------
    ValueError
        Where an argument is wrong, the ranker declares nothing to tune, or `folder` holds another search.

    Examples
    --------
    >>> from rankloop import environments, rankers
    >>> from rankloop.ranges import Whole
    >>> users = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="dcg")
    >>> ranker = rankers.RTop1F(n_items=4, horizon=1_000)
    >>> found = tune(ranker, users, rounds=1_000, ranges={"blocks": Whole(1, 200)}, settings=4)
    >>> len(found.runs)  # 4, 2 of them once more, and the evaluation
    22
    """
    rounds = whole("rounds", rounds, at_least=1)
    counts = {
        "settings": whole("settings", settings, at_least=2),
        "factor": whole("factor", factor, at_least=2),
        "final_runs": whole("final_runs", final_runs, at_least=2),
        "seed": whole("seed", seed, at_least=0),
    }
    workers = None if workers is None else whole("workers", workers, at_least=1)
    threads = is_threads(executor)
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
    tried = _tried(ranker, draw_settings(searched, settings - 1, seed=seed))
    study = {
        "ranker": import_path(type(ranker)),
        "ranges": {name: repr(each) for name, each in searched.items()},
        "rounds": rounds,
        **counts,
    }
    if folder is not None:
        study["given"] = [repr(ranker), identity(ranker)]
        study["environment"] = [repr(environment), identity(environment)]
        study["held_out"] = None if held_out is None else [repr(held_out), identity(held_out)]
    with ExitStack() as stack:
        place = None if folder is None else stack.enter_context(opened_folder(folder))
        kept = TuningFolder(place, study)
        where = None if threads else stack.enter_context(opened(executor, workers=workers))
        search = _Search(ranker, tried, rounds, kept, workers or os.cpu_count() or 1, where)
        runs = search.play(environment, held_out, progress=progress, **counts)
        found = Tuning(
            ranker,
            environment.measure,
            environment.is_loss,
            rounds,
            held_out is not None,
            searched,
            tuple(tried),
            search.chosen,
            tuple(runs),
        )
        kept.finish(_answer(found, study))
    return found


def _answer(found: Tuning, study: Study) -> Study:
    evaluation = {
        name: found.values(number, final=True) for name, number in (("given", 0), ("found", found.chosen))
    }
    return {
        "study": study,
        "arguments": jsonable(found.arguments),
        "chosen": found.chosen,
        "evaluation": evaluation,
    }


class _Search:
    """The runs of a search, rung by rung."""

    def __init__(
        self,
        ranker: Ranker,
        tried: list[Arguments],
        rounds: int,
        kept: TuningFolder,
        workers: int,
        where: tuple[Executor, int] | None,
    ) -> None:
        self.ranker, self.tried, self.rounds, self.kept, self.workers = ranker, tried, rounds, kept, workers
        self.where = where  # None for threads
        self.chosen = 0
        self.played = 0

    def play(
        self,
        environment: Environment,
        held_out: Environment | None,
        *,
        settings: int,
        factor: int,
        final_runs: int,
        seed: int,
        progress: bool | None,
    ) -> list[TunedRun]:
        rungs = ladder(len(self.tried), factor)
        counted = [count * (runs - (runs // factor)) for count, runs in rungs]
        with Bar((sum(counted) + 2 * final_runs) * self.rounds, wanted=progress) as bar:
            alive = list(range(len(self.tried)))
            values: dict[int, list[float]] = {setting: [] for setting in alive}
            told: list[TunedRun] = []
            for rung, (_, runs) in enumerate(rungs):
                seeds = range(seed + runs // factor if rung else seed, seed + runs)
                for run in self._rung(environment, rung, alive, seeds, bar):
                    values[run.setting].append(run.value)
                    told.append(run)
                count = rungs[rung + 1][0] if rung + 1 < len(rungs) else 1
                found = {setting: values[setting] for setting in alive}
                alive = sorted(best(found, count, is_loss=environment.is_loss))
            self.chosen = alive[0]
            fresh = range(seed + FINAL_SEEDS, seed + FINAL_SEEDS + final_runs)
            last = environment if held_out is None else held_out
            return told + self._rung(last, FINAL, sorted({0, self.chosen}), fresh, bar)

    def _rung(
        self, environment: Environment, rung: int, alive: list[int], seeds: range, bar: Bar
    ) -> list[TunedRun]:
        jobs = [(setting, seed) for setting in alive for seed in seeds]
        names = [f"{'final' if rung == FINAL else 'search'}-{setting}-{seed}" for setting, seed in jobs]
        results = {place: found for place, name in enumerate(names) if (found := self.kept.find(name))}
        todo = [place for place in range(len(jobs)) if place not in results]
        bar.rounds -= self.rounds * len(results)

        sent = [
            _RunOfSetting(self.ranker, self.tried[jobs[place][0]], environment, self.rounds, jobs[place][1])
            for place in todo
        ]

        def ended(place: int, trace: Trace) -> None:
            result = Result(trace.mean_value, trace.total_regret, trace.exploration_share)
            self.kept.keep(names[todo[place]], result)
            results[todo[place]] = result

        if self.where is None:
            finish_all(
                [job.begin for job in sent],
                workers=self.workers,
                bar=bar,
                before=self.played,
                ended=lambda place, run: ended(place, run.trace()),
            )
        else:
            self._elsewhere(sent, bar, ended)
        self.played += self.rounds * len(todo)
        return [TunedRun(*job[:1], rung, job[1], *results[place]) for place, job in enumerate(jobs)]

    def _elsewhere(self, sent: list[_RunOfSetting], bar: Bar, ended: Callable[[int, Trace], None]) -> None:
        assert self.where is not None
        executor, workers = self.where
        played = self.played

        def one_ended(place: int, trace: Trace, seconds: float) -> None:
            nonlocal played
            played += self.rounds
            ended(place, trace)

        Dispatch(
            _play,
            sent,
            names=[f"the run of {job.setting or 'the given setting'} with seed {job.seed}" for job in sent],
            costs=[1.0] * len(sent),
            executor=executor,
            workers=workers,
        ).run(one_ended, lambda: bar.show(played))


class _RunOfSetting(NamedTuple):
    """A run of a search as data: what it is made of, so that what all runs share is sent once."""

    ranker: Ranker
    setting: Arguments
    environment: Environment
    rounds: int
    seed: int

    def begin(self) -> Run:
        ranker = with_arguments(self.ranker, self.setting)
        return begin(ranker, self.environment.clone(), self.rounds, self.seed, 1, None)


def _play(job: _RunOfSetting) -> Trace:
    run = job.begin()
    for _ in run.pieces():
        pass
    return run.trace()


def _read_ranges(ranker: Ranker, ranges: Mapping[str, Range] | None) -> dict[str, Range]:
    kind = type(ranker).__name__
    found = dict(ranker.tunable() if ranges is None else ranges)
    if not found:
        raise ValueError(f"{kind} declares nothing to tune: name ranges of its arguments")
    known = ranker.get_params()
    for name, each in found.items():
        if name not in known:
            raise ValueError(f"ranges must be of arguments of {kind}: {', '.join(known)}; got {name!r}")
        if not isinstance(each, Range):
            raise ValueError(f"ranges[{name!r}] must be a range of rankloop.ranges, got {each!r}")
    return found


def _tried(ranker: Ranker, drawn: list[Arguments]) -> list[Arguments]:
    given = ranker.get_params()
    tried: dict[str, Arguments] = {repr(given): {}}
    for setting in drawn:
        try:
            with_arguments(ranker, setting)
        except ValueError as error:
            told = ", ".join(f"{name}={value!r}" for name, value in setting.items())
            raise ValueError(f"ranges has {told}, which {type(ranker).__name__} refuses: {error}") from error
        tried.setdefault(repr(given | setting), setting)
    if len(tried) < 2:
        raise ValueError("ranges must hold another setting than the one that is given")
    return list(tried.values())


def jsonable(setting: Arguments) -> Arguments:
    """Arguments as JSON holds them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in setting.items()}
