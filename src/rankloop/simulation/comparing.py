"""Play many rankers in many worlds with common seeds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rankloop.arguments import number, one_of, whole
from rankloop.base import Environment, Ranker
from rankloop.simulation.comparison import MEASURES, Comparison
from rankloop.simulation.executors import Executor
from rankloop.simulation.matching import check_match
from rankloop.simulation.playing import play_many
from rankloop.simulation.run import brief

RankerOrMaker = Ranker | Callable[[], Ranker] | Callable[[Any], Ranker]
WorldOrMaker = Environment | Callable[[], Environment]


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
    and what the users did by chance cancels out of the differences.

    Parameters
    ----------
    rankers : mapping of str to Ranker or callable
        Names, and for each a ranker or a function that makes one. Every run gets a ranker of its own: a copy of the
        given one in the state that it has now, or a new one from the function. The function takes nothing, or the
        environment that the ranker will play in.
    worlds : mapping of str to Environment or callable
        Names, and for each an environment or a function that makes one and takes nothing. Every run gets an
        environment of its own, which begins with its first user.
    rounds : int
        Of every run.
    seeds : int or iterable of int, optional
        How many runs each ranker plays in each world, with the seeds 0, 1, 2 and so on; or the seeds themselves.
    measure : str, optional
        What is compared: `regret`, `value` (of the rounds since the point before) or `mean_value` (of all rounds so
        far). By default the regret where every world knows it, else the mean value. The result holds all of them.
    level : float, optional
        Of the intervals; 1 - `level` is where a difference counts as significant.
    points : int, optional
        At most so many rounds of each run are recorded.
    workers : int, optional
        How many runs play at once; None takes one for each core.
    executor : str or Executor, optional
        Where the runs are played, as in `play_many`: ``"threads"``, ``"processes"``, ``"ray"`` or an object with
        `submit`. It changes no number.
    progress : bool, optional
        One bar for all runs together, as in `play`.

    Returns
    -------
    Comparison
        Every run, with means, intervals, tests, tables and figures.

    Raises
    ------
    ValueError
        Where an argument is wrong, or a ranker does not fit a world; both are named, before anything is played.

    Examples
    --------
    >>> from rankloop import environments, rankers
    >>> found = compare(
    ...     {
    ...         "random": rankers.Uniform(n_items=10, n_positions=5),
    ...         "FTRL": lambda world: rankers.FTRLPBM(n_items=world.n_items, n_positions=world.n_positions),
    ...     },
    ...     {"gap 0.03": environments.named("gap-0.03")},
    ...     rounds=2_000,
    ...     seeds=4,
    ... )
    >>> found
    <Comparison of 2 rankers in 1 world: 2,000 rounds, 4 seeds, regret>
    >>> found.differences()["p_holm"][0] < 0.05
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
    told_rankers = {
        name: brief(ranker)
        if isinstance(ranker, Ranker)
        else by_pair[next(iter(worlds)), name][0].provenance["ranker"]
        for name, ranker in rankers.items()
    }
    told_worlds = {
        world: by_pair[world, next(iter(rankers))][0].provenance["environment"] for world in worlds
    }
    return Comparison(told_rankers, told_worlds, by_pair, measure=measure, level=level)


def _read_seeds(seeds: Any) -> list[int]:
    if not isinstance(seeds, Iterable) or isinstance(seeds, str | bytes):
        return list(range(whole("seeds", seeds, at_least=1)))
    found = [whole(f"seeds[{i}]", seed, at_least=0) for i, seed in enumerate(seeds)]
    if not found:
        raise ValueError("seeds must be a number of runs or at least one seed, got none")
    twice = sorted({seed for seed in found if found.count(seed) > 1})
    if twice:
        raise ValueError(f"seeds must differ, got {twice[0]} more than once")
    return found


def _check_names(argument: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise ValueError(f'{argument} must be a mapping such as {{"name": ...}}, got {type(given).__name__}')
    if not given:
        raise ValueError(f"{argument} must name at least one, got none")
    kind = Ranker if argument == "rankers" else Environment
    for name, value in given.items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{argument} must have names that are not empty, got {name!r}")
        if not (isinstance(value, kind) or callable(value)):
            wanted = "a ranker" if argument == "rankers" else "an environment"
            raise ValueError(
                f"{argument}[{name!r}] must be {wanted} or a function that makes one, got {type(value).__name__}"
            )
    shown: dict[str, str] = {}
    for name in given:
        if (other := shown.setdefault(" ".join(name.split()), name)) != name:
            raise ValueError(f"{argument} has two names that look the same: {other!r} and {name!r}")


def _pair(
    name: str, ranker: RankerOrMaker, world: str, environment: WorldOrMaker, rounds: int
) -> tuple[Ranker, Environment]:
    users = (
        environment.clone() if isinstance(environment, Environment) else _made("worlds", world, environment)
    )
    learner = _copy(ranker) if isinstance(ranker, Ranker) else _made("rankers", name, ranker, users)
    try:
        check_match(learner, users, rounds)
    except ValueError as error:
        raise ValueError(f"ranker {name!r} does not fit world {world!r}: {error}") from None
    return learner, users


def _copy(ranker: Ranker) -> Ranker:
    copied = ranker.clone()
    copied.load(ranker.save())
    return copied


def _made(argument: str, name: str, maker: Callable[..., Any], world: Environment | None = None) -> Any:
    wanted = Environment if world is None else Ranker
    given = () if world is None or not _takes_one(maker) else (world,)
    try:
        found = maker(*given)
    except Exception as error:
        error.add_note(f"while calling {argument}[{name!r}]")
        raise
    if not isinstance(found, wanted):
        raise ValueError(
            f"{argument}[{name!r}] must make {'an environment' if world is None else 'a ranker'}, "
            f"made {type(found).__name__}"
        )
    return found


def _takes_one(maker: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # a callable of a compiled library
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.kind in positional and each.default is each.empty for each in parameters)
