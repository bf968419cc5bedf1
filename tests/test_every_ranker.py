"""What every ranker and environment of the package promises, asked of each example once: kernels load once.

The rules of `rankloop.checks` come first; here are those around kernels, copies, files and wrong calls.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankloop
from rankloop import checks, environments, rankers
from rankloop.base import Environment, Ranker, Ranking
from rankloop.compiled import CompiledEnvironment, CompiledRanker, check_items
from tests.examples import every_environment, every_ranker, same

RANKERS = dict(every_ranker())
ENVIRONMENTS = dict(every_environment())
NAMES = {name: getattr(part, name) for part in (rankers, environments) for name in part.__all__}

MakeRanker = Callable[[], Any]


@pytest.mark.parametrize("name", RANKERS)
def test_ranker(name: str, tmp_path: Path) -> None:
    make = RANKERS[name]
    checks.check_ranker(make)
    wrong_calls_get_a_sentence(make())
    a_clone_is_a_fresh_one(make)
    assert same(eval(repr(make()), NAMES), make())
    files_bring_it_back(make, tmp_path)
    if isinstance(make(), CompiledRanker):
        rank_takes_one_word_of_the_generator_and_no_more(make())
        no_two_tickets_share_their_arrays(make())
        learn_leaves_its_arguments_as_they_are(make())
        read_only_tickets_and_answers_are_as_good(make)
        current_is_a_full_list_and_changes_nothing(make())
        parameters_are_not_state(make())
        what_is_left_from_one_call_does_not_matter_to_the_next(make)


ELSEWHERE = """
import sys
from pathlib import Path

import numpy as np

import rankloop
from rankloop.base import Ranking

for folder in Path(sys.argv[1]).iterdir():
    ranker = rankloop.load(folder / "ranker")
    for i in (2, 0, 3, 1):
        with np.load(folder / f"{i}.npz") as ticket, np.load(folder / "answers.npz") as answers:
            ranker.learn(Ranking.load(ticket), answers[str(i)])
    np.savez(folder / "after.npz", **ranker.save())
"""


def test_tickets_are_learnt_in_another_process(tmp_path: Path) -> None:
    estimates = {"k": 3, "estimator": "horvitz-thompson", "control_variate": "mean"}
    learnt: dict[str, Any] = {
        "slots": rankers.RTop1F(n_items=5, horizon=200, measure="dcg", max_grade=3, k=2),
        "estimates": rankers.RTopKF(n_features=4, surrogate="smooth_dcg", **estimates),
        "labels": rankers.ListNet(n_features=3),
        "shares": rankers.CalibratedSquared(n_features=3),
    }
    for name, ranker in learnt.items():
        rng, folder = np.random.default_rng(6), tmp_path / name
        folder.mkdir()
        for _ in range(23):
            shown = ranker.rank(ranker.example_context(rng), rng=rng)
            ranker.learn(shown, rng.integers(0, 3, ranker.feedback.length(len(shown.items))))
        ranker.save(folder / "ranker")
        tickets = [ranker.rank(ranker.example_context(rng), rng=rng) for _ in range(4)]
        answers = [rng.integers(0, 3, ranker.feedback.length(len(ticket.items))) for ticket in tickets]
        np.savez(folder / "answers.npz", **{str(i): answer for i, answer in enumerate(answers)})
        for i, ticket in enumerate(tickets):
            np.savez(folder / f"{i}.npz", **ticket.save())
        for i in (2, 0, 3, 1):
            ranker.learn(tickets[i], answers[i])
        if name == "slots":
            assert {bool(ticket.explored) for ticket in tickets} == {True, False}
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], check=True)
    for name, ranker in learnt.items():
        with np.load(tmp_path / name / "after.npz") as after:
            for part, value in ranker.save().items():
                np.testing.assert_array_equal(after[part], value)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment(name: str) -> None:
    make = ENVIRONMENTS[name]
    checks.check_environment(make)
    a_clone_is_a_fresh_one(make)
    environment = make()
    assert isinstance(environment, CompiledEnvironment)
    arrive_and_respond_take_one_word_each(environment)
    restart_forgets_everybody(make())
    parameters_are_not_state(environment)


def show(ranker: Any, rng: np.random.Generator) -> Ranking:
    ranking: Ranking = ranker.rank(ranker.example_context(np.random.default_rng(0)), rng=rng)
    return ranking


def wrong_calls_get_a_sentence(ranker: Any) -> None:
    request = ranker.example_context(np.random.default_rng(1))
    for wrong in (3, None, np.random.RandomState(1), "seed"):
        with pytest.raises(ValueError, match=r"rng must be a generator, such as .*, got "):
            ranker.rank(request, rng=wrong)
    with pytest.raises(ValueError, match=r"rng must be a generator, .*, got None"):
        ranker.rank(request)
    with pytest.raises(
        ValueError, match=r"ranking must be a Ranking that rank\(\) returned, got \[2, 0, 1\]"
    ):
        ranker.learn([2, 0, 1], [1.0])


def a_clone_is_a_fresh_one(make: Callable[[], Ranker] | Callable[[], Environment]) -> None:
    thing: Any = make()
    rng = np.random.default_rng(1)
    if isinstance(thing, Ranker):
        ranking = show(thing, rng)
        thing.learn(ranking, np.zeros(thing.feedback.length(len(ranking.items))))
    else:
        thing.arrive(rng=rng)
    fresh = thing.clone()
    assert same(fresh, make())
    assert not same(fresh, thing)
    assert repr(fresh) == repr(thing)
    assert fresh.get_params().keys() == thing.get_params().keys()


def files_bring_it_back(make: MakeRanker, folder: Path) -> None:
    ranker = make()
    rng = np.random.default_rng(1)
    for _ in range(5):
        ranking = ranker.rank(ranker.example_context(rng), rng=rng)
        ranker.learn(ranking, np.ones(ranker.feedback.length(len(ranking.items))))
    ranker.save(folder / "ranker")
    np.savez(folder / "arrays.npz", **ranker.save())
    with np.load(folder / "arrays.npz") as arrays:
        for saved in (arrays, folder / "ranker", str(folder / "ranker"), ranker.state_arrays()):
            other = make()
            other.load(saved)
            same_arrays(ranker, other)
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.npz", "ranker"]
    back = rankloop.load(folder / "ranker")
    assert type(back) is type(ranker)
    same_arrays(ranker, back)
    request = ranker.example_context(rng)
    shown = [one.rank(request, rng=np.random.default_rng(7)) for one in (ranker, back)]
    np.testing.assert_array_equal(*(ranking.items for ranking in shown))
    held = ranker.save()
    back.load(held)
    back.learn(shown[1], np.ones(back.feedback.length(len(shown[1].items))))
    for part, value in ranker.save().items():  # what was loaded is not shared
        np.testing.assert_array_equal(held[part], value)


def same_arrays(one: Any, other: Any) -> None:
    mine, theirs = one.save(), other.save()
    assert list(mine) == list(theirs)
    for part, value in mine.items():
        np.testing.assert_array_equal(value, theirs[part])


def rank_takes_one_word_of_the_generator_and_no_more(ranker: CompiledRanker) -> None:
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    show(ranker, rng)
    other.bit_generator.random_raw()
    assert rng.bit_generator.state == other.bit_generator.state


def arrive_and_respond_take_one_word_each(environment: CompiledEnvironment) -> None:
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    environment.respond(environment.best(environment.arrive(rng=rng)), rng=rng)
    other.bit_generator.random_raw(2)
    assert rng.bit_generator.state == other.bit_generator.state


def no_two_tickets_share_their_arrays(ranker: CompiledRanker) -> None:
    rng = np.random.default_rng(2)
    one, other = show(ranker, rng), show(ranker, rng)
    kept = [part.copy() for part in one.save().values()]
    for part in other.save().values():
        part[...] = 0
    for before, now in zip(kept, one.save().values(), strict=True):
        np.testing.assert_array_equal(before, now)
    for mine, theirs in zip(one.save().values(), other.save().values(), strict=True):
        assert not np.shares_memory(mine, theirs)
    for held in (*ranker.state, *(part for part in ranker.params if isinstance(part, np.ndarray))):
        assert not any(np.shares_memory(held, part) for part in one.save().values())


def learn_leaves_its_arguments_as_they_are(ranker: CompiledRanker) -> None:
    ticket = show(ranker, np.random.default_rng(3))
    answer = np.ones(ranker.feedback.length(len(ticket.items)))
    before = {part: value.copy() for part, value in ticket.save().items()}
    ranker.learn(ticket, answer)
    assert (answer == 1).all()
    for part, value in ticket.save().items():
        np.testing.assert_array_equal(value, before[part])


def read_only_tickets_and_answers_are_as_good(make: MakeRanker) -> None:
    # As they come from a memory-mapped file or from a store that protects what it hands out.
    ranker, twin = make(), make()
    ticket = show(ranker, np.random.default_rng(4))
    answer = np.ones(ranker.feedback.length(len(ticket.items)))
    twin.learn(ticket, answer)
    locked = Ranking.load(ticket.save())
    for part in (*locked.save().values(), answer):
        part.flags.writeable = False
    ranker.learn(locked, answer)
    same_arrays(ranker, twin)


def current_is_a_full_list_and_changes_nothing(ranker: CompiledRanker) -> None:
    before = ranker.save()
    context = ranker.example_context(np.random.default_rng(0))
    order = ranker.current(context)
    assert order.dtype == np.int64
    m = ranker.read_context(context)[0]
    n = m if ranker.n_items is None else ranker.n_items
    check_items(order, m, n)
    order[:] = -1
    check_items(ranker.current(context), m, n)
    for part, value in ranker.save().items():
        np.testing.assert_array_equal(value, before[part])


def restart_forgets_everybody(environment: CompiledEnvironment) -> None:
    rng = np.random.default_rng(6)
    fresh = [part.copy() for part in environment.state]
    for _ in range(20):
        environment.arrive(rng=rng)
    assert any((part != before).any() for part, before in zip(environment.state, fresh, strict=True))
    environment.restart()
    for part, before in zip(environment.state, fresh, strict=True):
        np.testing.assert_array_equal(part, before)


def parameters_are_not_state(thing: Any) -> None:
    assert not {id(part) for part in thing.state} & {id(part) for part in thing.params}


def what_is_left_from_one_call_does_not_matter_to_the_next(make: MakeRanker) -> None:
    ranker, twin = make(), make()
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    for i in range(12):
        context = ranker.example_context(np.random.default_rng(i))
        mine, theirs = ranker.rank(context, rng=rng), _from_nothing(twin, context, other)
        # Every kind of feedback takes 0 and 1.
        answer = (
            np.random.default_rng(i).integers(0, 2, ranker.feedback.length(len(mine.items))).astype(float)
        )
        drawn = len(answer)  # all that PDGD draws
        np.testing.assert_array_equal(mine.items[:drawn], theirs.items[:drawn])
        ranker.learn(mine, answer)
        twin._learn_checked(Ranking(mine.items, theirs.propensities, theirs.memo), answer)
        if twin.until_pause() == 0:
            twin.pause()
        for desk in [one for free in ranker._own_desks()._free.values() for one in free]:
            _overwrite(desk.scratch)
    same_arrays(ranker, twin)


def _from_nothing(ranker: CompiledRanker, context: Any, rng: np.random.Generator) -> Ranking:
    n, request = ranker.read_context(context)
    items, propensities, memo = ranker.blank_ticket(n)
    key = np.uint64(rng.bit_generator.random_raw())
    explored = ranker.kernels.rank(
        ranker.params, ranker.state, request, key, ranker.scratch(n), items, propensities, memo
    )
    kept = (*memo, *ranker.keep_request(request)) if ranker.keeps_context else memo
    return Ranking(items, propensities if len(propensities) else None, kept, bool(explored))


def _overwrite(thing: Any) -> None:
    for part in thing:
        if isinstance(part, np.ndarray) and part.flags.writeable:  # what may not be written is a table
            part[...] = 77
        elif isinstance(part, tuple):
            _overwrite(part)
