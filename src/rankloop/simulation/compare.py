"""Play many rankers in many worlds with common seeds, and say how far to trust what comes of it."""

from __future__ import annotations

import inspect
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, one_of, whole
from rankloop.base import Environment, Ranker
from rankloop.extras import local_folder, require
from rankloop.simulation.executors import Executor
from rankloop.simulation.play import brief, check_match
from rankloop.simulation.runs import play_many
from rankloop.simulation.trace import Framed, Trace, polars_frame

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MEASURES = ("regret", "value", "mean_value")
_KINDS: dict[str, tuple[type, str]] = {
    "rankers": (Ranker, "a ranker"),
    "worlds": (Environment, "an environment"),
}
RankerOrMaker = Ranker | Callable[[], Ranker] | Callable[[Any], Ranker]
WorldOrMaker = Environment | Callable[[], Environment]
EXACT_RUNS = 16  # up to here every pattern of signs is tried
DRAWN_PATTERNS = 19_999  # of signs, for more runs than that


def mean_interval(
    values: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The mean over the first axis, and the ends of Student's t interval for it; NaN ends for a single run.

    >>> mean, low, high = mean_interval([1.0, 2.0, 3.0])
    >>> float(mean), round(float(low), 3), round(float(high), 3)
    (2.0, -0.484, 4.484)
    """
    require("scipy", extra="scipy", for_="an interval of Student's t")
    from scipy.special import stdtrit

    runs = np.asarray(values, dtype=np.float64)
    mean = np.asarray(runs.mean(axis=0))
    n = len(runs)
    if n < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown.copy()
    reach = float(stdtrit(n - 1, 0.5 + level / 2)) * standard_error(runs)
    return mean, mean - reach, mean + reach


def standard_error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard error of the mean over the first axis; NaN for a single run.

    >>> round(float(standard_error(np.array([1.0, 2.0, 3.0]))), 3)
    0.577
    """
    n = len(values)
    if n < 2:
        return np.full(values.shape[1:], np.nan)
    error: NDArray[np.float64] = values.std(axis=0, ddof=1) / math.sqrt(n)
    return error


def paired_t(differences: ArrayLike) -> float:
    """Two-sided p-value of Student's t test that the mean difference is 0; NaN for a single pair.

    >>> round(paired_t([1.0, 2.0, 3.0]), 4)
    0.0742
    """
    require("scipy", extra="scipy", for_="a t test")
    from scipy.special import stdtr

    pairs = np.asarray(differences, dtype=np.float64)
    n = len(pairs)
    if n < 2:
        return math.nan
    error = float(pairs.std(ddof=1)) / math.sqrt(n)
    mean = float(pairs.mean())
    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return float(2.0 * stdtr(n - 1, -abs(mean / error)))


def sign_flips(differences: ArrayLike) -> float:
    """Two-sided p-value of the permutation test that each difference could as well have the other sign.

    Up to 16 pairs every pattern of signs counts, beyond that 19,999 patterns drawn with a fixed seed. NaN for a
    single pair.

    >>> sign_flips([1.0, 2.0, 3.0])  # 2 of the 8 patterns have a sum as far from 0
    0.25
    """
    pairs = np.asarray(differences, dtype=np.float64)
    n = len(pairs)
    if n < 2:
        return math.nan
    # A pattern whose sum is the same but for rounding counts as one that is as far from 0.
    reached = abs(float(pairs.sum())) - 1e-9 * float(np.abs(pairs).sum())
    if n <= EXACT_RUNS:
        signs = 1.0 - 2.0 * (np.arange(1 << n)[:, None] >> np.arange(n) & 1)
        return float(np.mean(np.abs(signs @ pairs) >= reached))
    signs = 1.0 - 2.0 * np.random.default_rng(0).integers(0, 2, size=(DRAWN_PATTERNS, n))
    return float((1 + np.count_nonzero(np.abs(signs @ pairs) >= reached)) / (1 + DRAWN_PATTERNS))


TESTS = {"t": paired_t, "permutation": sign_flips}


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values of many tests, corrected by Holm's step-down rule: the chance of one false alarm or more stays small.

    NaN stays NaN and counts for nothing.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [math.nan] * len(p_values)
    known = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    so_far = 0.0
    for step, (p, place) in enumerate(known):
        so_far = max(so_far, min(1.0, (len(known) - step) * p))
        corrected[place] = so_far
    return corrected


class Difference(NamedTuple):
    """Two rankers in one world: the first one's measure minus the second one's, NaN where a single seed tells nothing.

    `p_holm` is corrected for all pairs that were asked for together; `better` is empty where the difference is not
    significant.
    """

    world: str
    ranker: str
    other: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    better: str


def smaller_is_better(comparison: Comparison, world: str, measure: str) -> bool:
    """Whether a smaller value is the better one: of the regret, and of losses."""
    return measure == "regret" or comparison.traces[world, next(iter(comparison.rankers))][0].is_loss


def paired_differences(
    comparison: Comparison, measure: str, *, against: str | None, test: str, place: int
) -> list[Difference]:
    """Every pair of rankers, or those `against` one, in every world, at one of the recorded rounds."""
    one_of("test", test, TESTS)
    if against is None:
        named = list(itertools.combinations(comparison.rankers, 2))
    else:
        one_of("against", against, comparison.rankers)
        named = [(name, against) for name in comparison.rankers if name != against]
    asked, tested = [], []
    for world in comparison.worlds:
        ends = {name: comparison.values(world, name, measure)[:, place] for name in comparison.rankers}
        for ranker, other in named:
            gaps = ends[ranker] - ends[other]
            mean, low, high = map(float, mean_interval(gaps, level=comparison.level))
            asked.append((world, ranker, other))
            tested.append((mean, low, high, TESTS[test](gaps)))
    result = []
    for names, numbers, p_holm in zip(asked, tested, holm([p for *_, p in tested]), strict=True):
        world, ranker, other = names
        better = ""
        if p_holm < 1.0 - comparison.level:  # never of NaN
            first = (numbers[0] < 0.0) == smaller_is_better(comparison, world, measure)
            better = ranker if first else other
        result.append(Difference(*names, *numbers, p_holm, better))
    return result


@dataclass(frozen=True, eq=False)
class Comparison(Framed):
    """The result of `simulation.compare`.

    Methods that take a `measure`, `regret`, `value` or `mean_value`, take that of the comparison by default.

    Parameters
    ----------
    rankers : mapping of str to str
        The names of the rankers, and each as it was constructed.
    worlds : mapping of str to str
        The names of the worlds, and each as it was constructed.
    traces : mapping of tuple of (str, str) to tuple of Trace
        For each world and ranker the runs, in the order of the seeds.
    measure : str, optional
        What is compared; by default the regret where it is known, else the mean value.
    level : float, optional
        Of the intervals.
    """

    rankers: Mapping[str, str]
    worlds: Mapping[str, str]
    traces: Mapping[tuple[str, str], tuple[Trace, ...]]
    measure: str | None = None
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.measure is None:
            known = not any(np.isnan(trace.regret).any() for runs in self.traces.values() for trace in runs)
            object.__setattr__(self, "measure", "regret" if known else "mean_value")

    @cached_property
    def _first(self) -> tuple[Trace, ...]:
        return next(iter(self.traces.values()))

    @property
    def seeds(self) -> list[int]:
        """The seeds that every ranker played in every world."""
        return [trace.seed for trace in self._first]

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The recorded rounds."""
        return self._first[0].rounds

    def values(self, world: str, ranker: str, measure: str | None = None) -> NDArray[np.float64]:
        """A `measure` of every run of a `ranker` in a `world`: a row for each seed, a column for each recorded round.

        ValueError where a name is not known, or the regret is not known in this world.
        """
        wanted = self._measure(measure)
        one_of("world", world, self.worlds)
        one_of("ranker", ranker, self.rankers)
        values = np.array([trace.columns()[wanted] for trace in self.traces[world, ranker]])
        if np.isnan(values).any():
            raise ValueError(f"{wanted} is not known in world {world!r}: take measure='mean_value'")
        return values

    def columns(self) -> dict[str, Any]:
        """Every recorded round of every run, as named arrays: `world`, `ranker`, `seed`, and the columns of a trace."""
        parts: dict[str, list[NDArray[Any]]] = {}
        for (world, ranker), runs in self.traces.items():
            for trace in runs:
                n = len(trace.rounds)
                named = {"world": world, "ranker": ranker, "seed": trace.seed}
                for name, value in named.items():
                    parts.setdefault(name, []).append(np.repeat(np.array([value]), n))
                for name, array in trace.columns().items():
                    parts.setdefault(name, []).append(array)
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

    def summary(self, measure: str | None = None) -> pl.DataFrame:
        """Mean and interval of a `measure` for each world, ranker and recorded round.

        The columns are `world`, `ranker`, `round`, `runs`, `mean`, `standard_error`, `low` and `high`; the last two are
        Student's t interval over the seeds. A single seed has neither error nor interval: they are null.
        """
        n, runs = len(self.rounds), len(self.seeds)
        parts = []
        for world, ranker in self.traces:
            values = self.values(world, ranker, measure)
            mean, low, high = mean_interval(values, level=self.level)
            names = {"world": np.repeat(world, n), "ranker": np.repeat(ranker, n)}
            numbers = {"mean": mean, "standard_error": standard_error(values), "low": low, "high": high}
            parts.append(names | {"round": self.rounds, "runs": np.repeat(runs, n)} | numbers)
        frame = polars_frame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
        return frame.fill_nan(None)

    def differences(
        self,
        measure: str | None = None,
        *,
        against: str | None = None,
        test: str = "t",
        at: int | None = None,
    ) -> pl.DataFrame:
        """Every pair of rankers in every world, compared run by run on the common seeds.

        `difference` is the mean of the `measure` of `ranker` minus that of `other`, `low` and `high` its interval, `p`
        the p-value, `p_holm` the same corrected by Holm's rule for all rows of this frame, `better` the better one
        where that is significant, else empty. What a single seed does not give is null.

        Parameters
        ----------
        against : str, optional
            Only pairs with this ranker as the second; fewer tests, so that smaller differences count.
        test : str, optional
            `t`, Student's test of the paired differences, or `permutation`, which flips their signs and assumes no
            more than that each could as well have the other sign. With 5 seeds or fewer the latter never gives less
            than 0.06.
        at : int, optional
            At the last recorded round up to this one; by default at the end.
        """
        pairs = paired_differences(
            self, self._measure(measure), against=against, test=test, place=self.place(at)
        )
        columns = {name: [getattr(each, name) for each in pairs] for name in Difference._fields}
        return polars_frame(columns).fill_nan(None)

    def table(self, measure: str | None = None, *, form: str = "markdown", at: int | None = None) -> str:
        """Means and intervals of a `measure` after `at` rounds, by default after the last, as a table in a `form`.

        It is `markdown`, `latex` or `html`, with a row for each ranker and a column for each world. The best of a world
        is bold; a mark follows where a ranker is not significantly worse.
        """
        from rankloop.simulation.report import FORMS, cells

        one_of("form", form, FORMS)
        return FORMS[form](cells(self, self._measure(measure), at))

    def plot(
        self,
        measure: str | None = None,
        *,
        log: bool | None = None,
        titles: bool = True,
        columns: int | None = None,
        width: float | str | None = None,
    ) -> Figure:
        """Draw means and intervals of a `measure` against rounds, one panel for each world, as a figure.

        `log`, `titles` and `width` are as in `Trace.plot`; so many `columns` of panels stand side by side, by default
        at most two, and one below the width of a page. Lines differ by style, too. On a logarithmic axis the intervals
        are those of the logarithm.
        """
        from rankloop.simulation.report import draw_comparison

        return draw_comparison(
            self, self._measure(measure), log=log, titles=titles, columns=columns, width=width
        )

    def save(self, folder: str | os.PathLike[str], *, titles: bool = True) -> Path:
        """Write the runs, the summary and the differences as Parquet, the figure, and a page that shows them.

        All of it goes into `folder`, which is made. `titles` says whether title and caption are part of the figures.
        The path of the page, `report.html`, is returned: one file that needs no other.
        """
        from rankloop.simulation.report import write_comparison

        return write_comparison(self, local_folder(folder), titles=titles)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """The comparison that `save` wrote into `folder`; ValueError where it holds none."""
        from rankloop.simulation.report import read_comparison

        return cls(**read_comparison(Path(folder)))

    def _measure(self, measure: str | None) -> str:
        return one_of("measure", (self.measure or "") if measure is None else measure, MEASURES)

    def place(self, at: int | None) -> int:
        """Where the last recorded round up to `at` stands among the recorded ones; the last of all for None."""
        if at is None:
            return len(self.rounds) - 1
        at = whole("at", at, at_least=int(self.rounds[0]), at_most=int(self.rounds[-1]))
        return int(np.searchsorted(self.rounds, at, side="right")) - 1

    def __repr__(self) -> str:
        from rankloop.simulation.report import size

        return f"<Comparison of {size(self)}, {self.measure}>"

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from rankloop.simulation.report import fragment

        return fragment(self)


def compare(
    rankers: Mapping[str, RankerOrMaker],
    worlds: Mapping[str, WorldOrMaker],
    *,
    rounds: int,
    seeds: int | Iterable[int] = 10,
    measure: str | None = None,
    level: float = 0.95,
    points: int = 200,
    workers: int | None = None,
    executor: str | Executor = "threads",
    progress: bool | None = None,
) -> Comparison:
    """Play every ranker in every world with the same seeds, on all cores.

    Runs with the same seed meet the same randomness of the users, whoever ranks. So rankers are compared run by run,
    and what the users did by chance cancels out of the differences. What does not fit is named before anything is
    played.

    `rounds`, `points`, `workers`, `executor` and `progress` are as in `play_many`, and change no number but how many
    rounds are played and recorded.

    Parameters
    ----------
    rankers : mapping of str to Ranker or callable
        Names, and for each a ranker or a function that makes one. Every run gets a ranker of its own: a copy of the
        given one in the state that it has now, or a new one from the function. The function takes nothing, or the
        environment that the ranker will play in.
    worlds : mapping of str to Environment or callable
        Names, and for each an environment or a function that makes one and takes nothing. Every run gets an
        environment of its own, which begins with its first user.
    seeds : int or iterable of int, optional
        How many runs each ranker plays in each world, with the seeds 0, 1, 2 and so on; or the seeds themselves.
    measure : str, optional
        What is compared: `regret`, `value` (of the rounds since the point before) or `mean_value` (of all rounds so
        far). By default the regret where every world knows it, else the mean value. The result holds all of them.
    level : float, optional
        Of the intervals; 1 - `level` is where a difference counts as significant.

    Examples
    --------
    >>> from rankloop import environments, rankers
    >>> comparison = compare(
    ...     {
    ...         "random": rankers.Uniform(n_items=10, n_positions=5),
    ...         "FTRL": lambda world: rankers.FTRLPBM(n_items=world.n_items, n_positions=world.n_positions),
    ...     },
    ...     {"gap 0.03": environments.named("gap-0.03")},
    ...     rounds=2_000,
    ...     seeds=4,
    ... )
    >>> comparison
    <Comparison of 2 rankers in 1 world: 2,000 rounds, 4 seeds, regret>
    >>> comparison.differences()["p_holm"][0] < 0.05
    True
    """
    rounds = whole("rounds", rounds, at_least=1)
    played = _read_seeds(seeds)
    level = number("level", level, above=0.0, below=1.0)
    if measure is not None:
        one_of("measure", measure, MEASURES)
    _check_names("rankers", rankers)
    _check_names("worlds", worlds)
    makers = {
        (world, name): (name, ranker, world, environment)
        for world, environment in worlds.items()
        for name, ranker in rankers.items()
    }
    # One of each pair first: what does not fit is told before anything else is made.
    first = {key: _pair(*parts, rounds) for key, parts in makers.items()}
    pairs = []
    for key, parts in makers.items():
        pairs += [first[key], *(_pair(*parts, rounds) for _ in played[1:])]
    ready = iter(pairs)
    traces = play_many(
        lambda: next(ready),  # a function, so that no ranker needs to be sent back
        rounds=rounds,
        seeds=played * len(makers),
        points=points,
        workers=workers,
        executor=executor,
        progress=progress,
    )
    n = len(played)
    by_pair = {key: tuple(traces[i * n : (i + 1) * n]) for i, key in enumerate(makers)}
    made_rankers = {
        name: brief(ranker)
        if isinstance(ranker, Ranker)
        else by_pair[next(iter(worlds)), name][0].provenance["ranker"]
        for name, ranker in rankers.items()
    }
    made_worlds = {
        world: by_pair[world, next(iter(rankers))][0].provenance["environment"] for world in worlds
    }
    return Comparison(made_rankers, made_worlds, by_pair, measure=measure, level=level)


def _read_seeds(seeds: Any) -> list[int]:
    if not isinstance(seeds, Iterable) or isinstance(seeds, str | bytes):
        return list(range(whole("seeds", seeds, at_least=1)))
    numbers = [whole(f"seeds[{i}]", seed, at_least=0) for i, seed in enumerate(seeds)]
    if not numbers:
        raise ValueError("seeds must be a number of runs or at least one seed, got none")
    twice = sorted({seed for seed in numbers if numbers.count(seed) > 1})
    if twice:
        raise ValueError(f"seeds must differ, got {twice[0]} more than once")
    return numbers


def _check_names(argument: str, named: Any) -> None:
    if not isinstance(named, Mapping):
        raise ValueError(f'{argument} must be a mapping such as {{"name": ...}}, got {type(named).__name__}')
    if not named:
        raise ValueError(f"{argument} must name at least one, got none")
    kind, wanted = _KINDS[argument]
    for name, value in named.items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{argument} must have names that are not empty, got {name!r}")
        if not (isinstance(value, kind) or callable(value)):
            raise ValueError(
                f"{argument}[{name!r}] must be {wanted} or a function that makes one, got {type(value).__name__}"
            )
    shown: dict[str, str] = {}
    for name in named:
        if (other := shown.setdefault(" ".join(name.split()), name)) != name:
            raise ValueError(f"{argument} has two names that look the same: {other!r} and {name!r}")


def _pair(
    name: str, ranker: RankerOrMaker, world: str, environment: WorldOrMaker, rounds: int
) -> tuple[Ranker, Environment]:
    users = (
        environment.clone() if isinstance(environment, Environment) else _made("worlds", world, environment)
    )
    if isinstance(ranker, Ranker):
        learner = ranker.clone()
        learner.load(ranker.save())
    else:
        learner = _made("rankers", name, ranker, users)
    try:
        check_match(learner, users, rounds)
    except ValueError as error:
        raise ValueError(f"ranker {name!r} does not fit world {world!r}: {error}") from None
    return learner, users


def _made(argument: str, name: str, maker: Callable[..., Any], world: Environment | None = None) -> Any:
    kind, wanted = _KINDS[argument]
    arguments = () if world is None or not _takes_one(maker) else (world,)
    try:
        thing = maker(*arguments)
    except Exception as error:
        error.add_note(f"while calling {argument}[{name!r}]")
        raise
    if not isinstance(thing, kind):
        raise ValueError(f"{argument}[{name!r}] must make {wanted}, made {type(thing).__name__}")
    return thing


def _takes_one(maker: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # a callable of a compiled library
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.kind in positional and each.default is each.empty for each in parameters)
