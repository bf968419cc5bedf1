"""Rankers and environments made of kernels: what they promise around the kernels themselves, and calls from Python."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rankloop import compiled, environments, rankers
from rankloop.base import Ranking
from rankloop.compiled import CompiledEnvironment, CompiledRanker, check_items
from rankloop.rankers import FTRLPBM, ListNet, RTop1F, RTopKF, TopRank
from tests.examples import every_environment, every_ranker, of_ranker

# Rankers and environments made of kernels: what they promise around the kernels themselves.


RANKERS = {name: make for name, make in every_ranker() if isinstance(make(), CompiledRanker)}
ENVIRONMENTS = {name: make for name, make in every_environment() if isinstance(make(), CompiledEnvironment)}


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
        plain = [getattr(kernel, "func", kernel) for kernel in ranker.kernels]  # the function of a partial
        names = [getattr(kernel, "py_func", kernel).__name__ for kernel in plain]
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
        value.__name__
        for module in (rankers, environments)
        for value in vars(module).values()
        if inspect.isclass(value)
        and value.__module__.startswith("rankloop.")
        and not issubclass(value, CompiledRanker | CompiledEnvironment)
    }
    assert slow <= {"NeuralPDGD", "NeuralRTopK"}  # networks, and there only where somebody has asked for them


# Kernels made ready for calls from Python: quicker, and otherwise as if each call began from nothing.


CALLED = [RTop1F, TopRank, FTRLPBM, RTopKF, ListNet]


def _revealed(ranker: CompiledRanker, ticket: Ranking, rng: np.random.Generator) -> Any:
    n_signals = 2  # every kind of feedback takes 0 and 1
    return rng.integers(0, n_signals, ranker.feedback.length(len(ticket.items))).astype(float)


def _free(ranker: Any) -> list[compiled.Desk]:
    return [desk for free in ranker._own_desks()._free.values() for desk in free]


def _mistakes(ranker: CompiledRanker, ticket: Ranking, feedback: Any) -> Iterator[tuple[Ranking, Any]]:
    items, propensities, memo = ticket.items, ticket.propensities, ticket.memo
    n = len(items)
    for wrong in (items[:0], np.append(items, 0), items - 1, items + n, items * 0, items.astype(float)):
        yield Ranking(wrong, propensities, memo), feedback
    yield Ranking(items, None, memo), feedback
    yield Ranking(items, np.full(n, np.nan), memo), feedback
    yield Ranking(items, np.full(n + 1, 0.5), memo), feedback
    yield Ranking(items, propensities, memo[1:]), feedback
    yield Ranking(items, propensities, (*memo, np.ones(2))), feedback
    for i, part in enumerate(memo):
        for wrong in (part[..., :0], part.astype(np.int8), np.full(part.shape, -2, part.dtype)):
            yield Ranking(items, propensities, (*memo[:i], wrong, *memo[i + 1 :])), feedback
    for wrong in (None, "yes", [None], [[1.0], [1.0, 2.0]], 1.0, [*feedback, 0.0], [-1.0] * len(feedback)):
        yield ticket, wrong
    for number in (np.nan, np.inf, 0.5, 1e9):
        yield ticket, np.full(len(feedback), number)


def _error(call: Any, *arguments: Any) -> tuple[type, str] | None:
    try:
        call(*arguments)
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("kind", CALLED)
def test_the_quick_way_and_the_slow_one_refuse_the_same_with_the_same_words(kind: Any) -> None:
    refused = 0
    for ranker in of_ranker(kind.__name__):
        context = ranker.example_context(np.random.default_rng(2))
        ticket = ranker.rank(context, rng=np.random.default_rng(3))
        feedback = _revealed(ranker, ticket, np.random.default_rng(4))
        for wrong, answer in _mistakes(ranker, ticket, feedback):
            quick, slow = ranker.clone(), ranker.clone()
            expected = _error(slow._learn_checked, wrong, answer)
            assert _error(quick.learn, wrong, answer) == expected
            refused += expected is not None
            for mine, theirs in zip(quick.state, slow.state, strict=True):
                np.testing.assert_array_equal(mine, theirs)
    assert refused > 15


@pytest.mark.parametrize("kind", CALLED)
def test_arrays_of_other_kinds_are_as_good(kind: Any) -> None:
    for ranker in of_ranker(kind.__name__):
        twin = ranker.clone()
        context = ranker.example_context(np.random.default_rng(5))
        ticket = ranker.rank(context, rng=np.random.default_rng(6))
        feedback = _revealed(ranker, ticket, np.random.default_rng(7))

        def apart(part: Any) -> Any:
            return None if part is None else np.repeat(part, 2, axis=-1)[..., ::2]

        for answer in (
            feedback.tolist(),
            feedback.astype(bool),
            tuple(feedback),
            feedback.astype(np.int32),
            apart(feedback),
        ):
            spread = Ranking(apart(ticket.items), apart(ticket.propensities), tuple(map(apart, ticket.memo)))
            ranker.learn(spread, answer)
            twin.learn(ticket, feedback)
        for mine, theirs in zip(ranker.state, twin.state, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", CALLED)
def test_a_copy_goes_on_by_itself(kind: Any) -> None:
    ranker = next(iter(of_ranker(kind.__name__)))
    context = ranker.example_context(np.random.default_rng(8))
    ticket = ranker.rank(context, rng=np.random.default_rng(9))
    feedback = _revealed(ranker, ticket, np.random.default_rng(10))
    before = ranker.save()
    for other in (copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        other.learn(ticket, feedback)
        assert int(other.state.t[0]) == int(before["t"][0]) + 1
        for part, value in ranker.save().items():
            np.testing.assert_array_equal(value, before[part])


def test_a_ranker_that_gets_another_state_uses_it() -> None:
    ranker = RTop1F(n_items=4, horizon=100)
    ticket = ranker.rank(rng=np.random.default_rng(1))
    ranker.state = RTop1F(n_items=4, horizon=100).state
    ranker.learn(ticket, [1.0])
    assert ranker.state.t[0] == 1


def test_two_calls_at_once_have_two_desks_and_lists_of_another_length_another() -> None:
    ranker = RTopKF(n_features=3)
    desks = ranker._own_desks()
    first, second = desks.take(ranker, 4), desks.take(ranker, 4)
    assert not np.shares_memory(first.scratch[0], second.scratch[0])
    desks.give_back(first)
    desks.give_back(second)
    assert desks.take(ranker, 4) is second
    assert len(desks.take(ranker, 9).items) == 9


def test_not_every_ranker_keeps_its_desks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MOST_DESKS", 3)
    compiled._desks_kept.clear()
    many = [RTop1F(n_items=3) for _ in range(5)]
    for ranker in many * 2:
        ranker.rank(rng=np.random.default_rng(1))
    assert sum(len(_free(ranker)) for ranker in many) == 3
