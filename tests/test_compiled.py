"""Rankers and environments made of kernels: what they promise around the kernels themselves."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from rankloop import environments, rankers
from rankloop.base import Ranking
from rankloop.compiled import CompiledEnvironment, CompiledRanker, check_items
from tests.examples import every_environment, every_ranker

RANKERS = {name: make for name, make in every_ranker() if isinstance(make(), CompiledRanker)}


def show(ranker: CompiledRanker, rng: np.random.Generator) -> Ranking:
    return ranker.rank(ranker.example_context(np.random.default_rng(0)), rng=rng)


ENVIRONMENTS = {name: make for name, make in every_environment() if isinstance(make(), CompiledEnvironment)}


@pytest.mark.parametrize("name", RANKERS)
def test_rank_takes_one_word_of_the_generator_and_no_more(name: str) -> None:
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    show(RANKERS[name](), rng)
    other.bit_generator.random_raw()
    assert rng.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_arrive_and_respond_take_one_word_each(name: str) -> None:
    people = ENVIRONMENTS[name]()
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    people.respond(people.best(people.arrive(rng=rng)), rng=rng)
    other.bit_generator.random_raw(2)
    assert rng.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize("name", RANKERS)
def test_no_two_tickets_share_their_arrays(name: str) -> None:
    ranker = RANKERS[name]()
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


@pytest.mark.parametrize("name", RANKERS)
def test_learn_leaves_its_arguments_as_they_are(name: str) -> None:
    ranker = RANKERS[name]()
    ticket = show(ranker, np.random.default_rng(3))
    answer = np.ones(ranker.feedback.length(len(ticket.items)))
    before = {part: value.copy() for part, value in ticket.save().items()}
    ranker.learn(ticket, answer)
    assert (answer == 1).all()
    for part, value in ticket.save().items():
        np.testing.assert_array_equal(value, before[part])


@pytest.mark.parametrize("name", RANKERS)
def test_read_only_tickets_and_answers_are_as_good(name: str) -> None:
    # As they come from a memory-mapped file or from a store that protects what it hands out.
    ranker, twin = RANKERS[name](), RANKERS[name]()
    ticket = show(ranker, np.random.default_rng(4))
    answer = np.ones(ranker.feedback.length(len(ticket.items)))
    twin.learn(ticket, answer)
    locked = Ranking.load(ticket.save())
    for part in (*locked.save().values(), answer):
        part.flags.writeable = False
    ranker.learn(locked, answer)
    for mine, theirs in zip(ranker.state, twin.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", RANKERS)
def test_current_is_a_full_list_and_changes_nothing(name: str) -> None:
    ranker = RANKERS[name]()
    before = ranker.save()
    context = ranker.example_context(np.random.default_rng(0))
    order = ranker.current(context)
    assert order.dtype == np.int64
    m = ranker.n_positions if context is None else len(context)
    n = m if ranker.n_items is None else ranker.n_items
    check_items(order, m, n)
    order[:] = -1
    check_items(ranker.current(context), m, n)
    for part, value in ranker.save().items():
        np.testing.assert_array_equal(value, before[part])


def test_current_is_what_was_learnt() -> None:
    top1 = rankers.RTop1F(n_items=4, horizon=40, blocks=10)
    full = rankers.FTPL(n_items=4, horizon=40)
    rng = np.random.default_rng(5)
    taste = np.array([0, 1, 0, 1]), np.array([0, 0, 0, 1])
    for t in range(40):
        for ranker in (top1, full):
            shown = ranker.rank(rng=rng)
            ranker.learn(shown, taste[t % 2][shown.items][: ranker.feedback.length(4)].astype(float))
    assert full.current().tolist() == [3, 1, 0, 2]  # equals keep the order of their numbers
    assert top1.current()[0] == 3
    assert top1.current().tolist() == np.argsort(-top1.state.s_hat, kind="stable").tolist()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_restart_forgets_everybody(name: str) -> None:
    people = ENVIRONMENTS[name]()
    rng = np.random.default_rng(6)
    fresh = [part.copy() for part in people.state]
    for _ in range(20):
        people.arrive(rng=rng)
    assert any((part != before).any() for part, before in zip(people.state, fresh, strict=True))
    people.restart()
    for part, before in zip(people.state, fresh, strict=True):
        np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize("name", [*RANKERS, *ENVIRONMENTS])
def test_parameters_are_not_state(name: str) -> None:
    thing: Any = (RANKERS | ENVIRONMENTS)[name]()
    assert not {id(part) for part in thing.state} & {id(part) for part in thing.params}


def test_items_are_checked() -> None:
    check_items(np.array([2, 0, 1]), 3, 3)
    check_items(np.array([4, 0, 1]), 3, 5)
    for wrong in ([0, 1, 3], [-1, 0, 1], [1, 1, 0]):
        with pytest.raises(ValueError, match="items"):
            check_items(np.array(wrong), 3, 3)


def test_the_uniform_ticket_needs_its_propensities() -> None:
    ranker = rankers.Uniform(n_items=3)
    ticket = ranker.rank(rng=np.random.default_rng(7))
    with pytest.raises(ValueError, match="propensities"):
        ranker.learn(Ranking(ticket.items), [])
    assert ranker.state.t[0] == 0


def test_kernels_are_what_the_classes_say() -> None:
    for make in RANKERS.values():
        ranker = make()
        assert all(hasattr(kernel, "py_func") for kernel in ranker.kernels) == ranker.fusable
        names = [getattr(kernel, "py_func", kernel).__name__ for kernel in ranker.kernels]
        assert names[0].startswith("rank")
        assert names[1].startswith("learn")
    for make in ENVIRONMENTS.values():
        assert [k.py_func.__name__.split("_")[0] for k in make().kernels] == [
            "arrive",
            "respond",
            "value",
            "hindsight",
        ]


def test_every_public_class_is_made_of_kernels() -> None:
    # So that each of them has the compiled loop: a slow one must be meant, and listed here.
    slow = {
        found.__name__
        for room in (rankers, environments)
        for found in vars(room).values()
        if inspect.isclass(found) and not issubclass(found, CompiledRanker | CompiledEnvironment)
    }
    assert slow <= {"NeuralPDGD", "NeuralRTopK"}  # networks, and there only where somebody has asked for them
