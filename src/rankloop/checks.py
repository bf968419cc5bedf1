"""Conformance: does a ranker or an environment keep the contracts? For the package's own classes and for any other.

Each `check_*` takes `make`, a function that makes a fresh ranker or environment, always with the same arguments, and
raises `Broken` with the rule that is not kept. `check_ranker` and `check_environment` run them all.
"""

from __future__ import annotations

import functools
import inspect
import io
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop import environments, rankers, simulation
from rankloop.base import Environment, Ranker, Ranking

MakeRanker = Callable[[], Ranker]
MakeEnvironment = Callable[[], Environment]


class Broken(AssertionError):
    """A contract is not kept."""


def check_ranker(make: MakeRanker) -> None:
    """All rules for rankers."""
    for check in (
        check_signature,
        check_rankings_are_valid,
        check_rank_changes_nothing,
        check_tickets_travel,
        check_state_is_everything,
        check_randomness_is_given,
        check_bad_feedback_changes_nothing,
        check_ties_keep_the_order,
    ):
        check(make)


def check_environment(make: MakeEnvironment) -> None:
    """All rules for environments."""
    for check in (check_answers_change_nothing, check_same_seed_same_users, check_hindsight_is_best):
        check(make)


def small_arguments(kind: type[Ranker]) -> dict[str, Any]:
    """Arguments for a small ranker of the class `kind`, by the usual names of what its constructor may need."""
    return {name: _SMALL[name] for name in inspect.signature(kind).parameters if name in _SMALL}


_SMALL: dict[str, Any] = {
    "n_items": 4,
    "n_features": 3,
    "horizon": 100,
    "order": [2, 0, 1],
    "relevance": [[0, 1, 0], [0, 1, 1]],
}


def every_ranker() -> Iterator[tuple[str, MakeRanker]]:
    """The name of each ranker in the package, and a function that makes a small one."""
    for name in rankers.__all__:
        kind = getattr(rankers, name)
        yield name, functools.partial(kind, **small_arguments(kind))


def every_environment() -> Iterator[tuple[str, MakeEnvironment]]:
    """Each name that `environments.named` knows, and a function that makes the environment."""
    for name in environments.names():
        yield name, functools.partial(environments.named, name)


def check_signature(make: MakeRanker) -> None:
    """Rule 5: `rank(context=None, *, rng)` and `learn(ranking, feedback)`, for every ranker."""
    ranker = make()
    for method, expected in ((ranker.rank, ["context", "rng"]), (ranker.learn, ["ranking", "feedback"])):
        parameters = inspect.signature(method).parameters
        if list(parameters) != expected:
            raise Broken(f"rule 5: {method.__name__} takes {list(parameters)}, not {expected}")
    parameters = inspect.signature(ranker.rank).parameters
    if (
        parameters["context"].default is not None
        or parameters["rng"].kind is not inspect.Parameter.KEYWORD_ONLY
    ):
        raise Broken("rule 5: rank must be rank(context=None, *, rng)")


def check_rankings_are_valid(make: MakeRanker) -> None:
    """Every position holds another item, and probabilities are probabilities."""
    ranker = make()
    for ranking in _story(ranker, rounds=30, seed=1):
        items = ranking.items
        if items.dtype != np.int64 or items.ndim != 1 or ranker.n_positions not in (len(items), None):
            raise Broken(f"a ranking must be int64({ranker.n_positions},), got {items.dtype}{items.shape}")
        if len(np.unique(items)) != len(items) or items.min() < 0:
            raise Broken(f"a ranking must not repeat items, got {items}")
        chances = ranking.propensities
        if chances is not None and not (
            chances.shape == items.shape and ((chances > 0) & (chances <= 1)).all()
        ):
            raise Broken(f"propensities must be one probability for each position, got {chances}")
        if not all(isinstance(part, np.ndarray) and part.dtype.kind in "biuf" for part in ranking.memo):
            raise Broken(f"memo must be plain arrays, got {ranking.memo!r}")


def check_rank_changes_nothing(make: MakeRanker) -> None:
    """Rule 1: `rank` reads state and advances `rng`; nothing else changes, in `state` or beside it."""
    ranker = make()
    for _ in range(3):
        before = _everything(ranker)
        for i in range(5):
            _rank_once(ranker, seed=i)
            if _everything(ranker) != before:
                raise Broken("rule 1: rank changed the ranker")
        _story(ranker, rounds=5, seed=1)


def check_tickets_travel(make: MakeRanker) -> None:
    """Rule 2: `learn` needs only the ticket, saved and loaded, in whatever order feedback comes."""
    ranker = make()
    _story(ranker, rounds=20, seed=1)
    start = ranker.save()
    open_rankings = [_rank_once(ranker, seed=i) for i in range(8)]
    answers = [_answer(ranker, open_rankings[i], np.random.default_rng(100 + i)) for i in range(8)]
    late = np.random.default_rng(2).permutation(8)
    for i in late:
        ranker.learn(open_rankings[i], answers[i])
    elsewhere = make()
    elsewhere.load(start)
    for i in late:
        try:
            elsewhere.learn(_through_a_file(open_rankings[i]), answers[i])
        except Exception as error:
            raise Broken(f"rule 2: learn failed on a ticket that another object issued: {error}") from error
    if not _same(ranker.save(), elsewhere.save()):
        raise Broken("rule 2: learn depends on more than state, ticket and feedback")


def check_state_is_everything(make: MakeRanker) -> None:
    """Rule 3: a fresh ranker that loads a saved state goes on exactly as the one that saved it."""
    for seed in range(1, 6):
        ranker = make()
        _story(ranker, rounds=60, seed=seed)
        other = make()
        other.load(_arrays_through_a_file(ranker.save()))
        stories = (_story(ranker, rounds=60, seed=9), _story(other, rounds=60, seed=9))
        for mine, theirs in zip(*stories, strict=True):
            if not _same(mine.save(), theirs.save()):
                raise Broken(
                    f"rule 3: it showed {mine.items}, after load {theirs.items}: state outside `state`"
                )
        if not _same(ranker.save(), other.save()):
            raise Broken("rule 3: after load it learns differently: state outside `state`")


def check_randomness_is_given(make: MakeRanker) -> None:
    """Rule 4: the same seed gives the same run, whatever the state of the global generators, which does not change."""
    stories = []
    for disturbance in (1, 2):
        random.seed(disturbance)
        np.random.seed(disturbance)  # noqa: NPY002 - this is about the global generator
        before = (random.getstate(), pickle.dumps(np.random.get_state()))  # noqa: NPY002
        ranker = make()
        stories.append([r.save() for r in _story(ranker, rounds=40, seed=3)] + [ranker.save()])
        if (random.getstate(), pickle.dumps(np.random.get_state())) != before:  # noqa: NPY002
            raise Broken("rule 4: it draws from a global generator")
    if not all(map(_same, *stories)):
        raise Broken("rule 4: the same seed gives another run")


def check_bad_feedback_changes_nothing(make: MakeRanker) -> None:
    """Feedback of the wrong length or with a NaN is refused before anything changes."""
    ranker = make()
    ranking = _rank_once(ranker, seed=1)
    good = _answer(ranker, ranking, np.random.default_rng(1))
    before = ranker.save()
    bad = [np.append(good, 1.0), good[:-1], np.full_like(good, np.nan), np.full_like(good, -1.0)]
    for feedback in bad[: 4 if len(good) else 1]:
        try:
            ranker.learn(ranking, feedback)
        except ValueError:
            pass
        else:
            raise Broken(f"learn took {feedback}, it should raise ValueError")
        if not _same(before, ranker.save()):
            raise Broken(f"learn refused {feedback} but changed state")


def check_ties_keep_the_order(make: MakeRanker) -> None:
    """A ranker that knows nothing yet holds items in the order in which they are numbered."""
    ranker = make()
    if ranker.informed:
        return
    order = ranker.current(ranker.example_context(np.random.default_rng(1)))
    if not np.array_equal(order, np.arange(len(order))):
        raise Broken(
            f"ties must keep the user's order: a fresh ranker's current() is {order}, not 0, 1, 2, ..."
        )


def check_same_story(
    make: MakeRanker, make_environment: MakeEnvironment, *, rounds: int = 300, seed: int = 5
) -> None:
    """The compiled loop and the stepwise one agree in every bit of so many `rounds`: trace, ranker and environment.

    `make_environment` makes a fresh environment that suits the ranker, and `seed` is that of the run.
    """
    ends = []
    for fused in (True, False):
        ranker, environment = make(), make_environment()
        trace = simulation.play(ranker, environment, rounds=rounds, seed=seed, points=100, fused=fused)
        story = {name: getattr(trace, name) for name in ("rounds", "value", "total", "regret", "explored")}
        state: Any = getattr(environment, "state", None)
        ends.append(story | ranker.save() | {f"environment.{k}": v for k, v in state._asdict().items()})
    if not _same(*ends):
        raise Broken("the compiled loop and the stepwise one give different runs")


def check_answers_change_nothing(make: MakeEnvironment) -> None:
    """`respond`, `value`, `best` and `hindsight` answer; only `arrive` moves on.

    Where the environment `reacts` to what was shown, `respond` moves on, too.
    """
    environment = make()
    rng = np.random.default_rng(1)
    for _ in range(3):
        ranking = environment.best(environment.arrive(rng=rng))
    value, hindsight = environment.value(ranking), environment.hindsight()
    before = _everything(environment)
    response = environment.respond(ranking, rng=np.random.default_rng(2))
    if environment.reacts:
        before = _everything(environment)
    if response.shape != ranking.items.shape or not np.isfinite(response).all():
        raise Broken(f"respond must give one number for each position, got {response}")
    if not np.isfinite(value):
        raise Broken(f"value must be finite, got {value}")
    again = (environment.value(ranking), environment.hindsight())
    if not np.array_equal(again, (value, hindsight), equal_nan=True) or _everything(environment) != before:
        raise Broken("value, respond or best changed the environment")


def check_same_seed_same_users(make: MakeEnvironment) -> None:
    """Same seed, same users: in another object, and after `restart`."""
    environment, other = make(), make()
    first = _users(environment, seed=4)
    environment.restart()
    if not (
        np.array_equal(first, _users(environment, seed=4)) and np.array_equal(first, _users(other, seed=4))
    ):
        raise Broken("the same seed gave other users")


def check_hindsight_is_best(make: MakeEnvironment) -> None:
    """No fixed ranking beats the best one in hindsight."""
    environment = make()
    n_items = environment.n_positions if environment.n_items is None else environment.n_items
    tries = [np.random.default_rng(i).permutation(n_items) for i in range(20)]
    totals = np.zeros(len(tries))
    rng = np.random.default_rng(6)
    for _ in range(100):
        m = len(environment.best(environment.arrive(rng=rng)).items)
        n = m if environment.n_items is None else n_items
        totals += [environment.value(Ranking(items[items < n][:m])) for items in tries]
    best = environment.hindsight()
    lead = (totals - best if environment.is_loss else best - totals).min()
    if lead < -1e-9 * max(1.0, abs(best)):
        raise Broken(f"a fixed ranking is better than hindsight by {-lead}")


def _story(ranker: Ranker, *, rounds: int, seed: int) -> list[Ranking]:
    """Rounds of a ranker with feedback drawn at random."""
    rng, users = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    rankings = []
    for _ in range(rounds):
        rankings.append(ranker.rank(ranker.example_context(users), rng=rng))
        ranker.learn(rankings[-1], _answer(ranker, rankings[-1], users))
    return rankings


def _rank_once(ranker: Ranker, *, seed: int) -> Ranking:
    """One ranking of an example request."""
    return ranker.rank(ranker.example_context(np.random.default_rng(seed)), rng=np.random.default_rng(seed))


def _answer(ranker: Ranker, ranking: Ranking, rng: np.random.Generator) -> NDArray[np.float64]:
    """Feedback on a ranking, drawn at random."""
    return rng.integers(0, 2, ranker.feedback.length(len(ranking.items))).astype(np.float64)


def _users(environment: Environment, *, seed: int) -> NDArray[np.float64]:
    """All that fifty users reveal of their best rankings, and what those are worth."""
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(50):
        ranking = environment.best(environment.arrive(rng=rng))
        seen.append(np.append(environment.respond(ranking, rng=rng), environment.value(ranking)))
    return np.concatenate(seen)


# Not compared: kernels, arguments, and what `rankloop.compiled` keeps to make calls quick.
_NOT_HELD = {"kernels", "_given", "_desks", "_owned", "_ready"}


def _everything(thing: Any) -> bytes:
    """Whatever a ranker or an environment holds, as bytes to compare."""
    kept = {name: value for name, value in vars(thing).items() if name not in _NOT_HELD}
    return pickle.dumps(kept)


def _arrays_through_a_file(arrays: dict[str, Any]) -> dict[str, Any]:
    """Named arrays, written to a file and read again."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return {name: loaded[name] for name in loaded.files}


def _through_a_file(ranking: Ranking) -> Ranking:
    """A ticket, written to a file and read again."""
    return Ranking.load(_arrays_through_a_file(ranking.save()))


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether named arrays are equal, bit by bit."""
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=np.asarray(one[name]).dtype.kind == "f")
        for name in one
    )
