"""Kernels made ready for calls from Python: quicker, and otherwise as if each call began from nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rankloop import compiled
from rankloop.base import Ranking
from rankloop.compiled import CompiledRanker
from rankloop.rankers import FTRLPBM, ListNet, RTop1F, RTopKF, TopRank
from tests.examples import every_ranker, of_ranker

RANKERS = {name: make for name, make in every_ranker() if isinstance(make(), CompiledRanker)}
CALLED = [RTop1F, TopRank, FTRLPBM, RTopKF, ListNet]


def _revealed(ranker: CompiledRanker, ticket: Ranking, rng: np.random.Generator) -> Any:
    n_signals = 2  # every kind of feedback takes 0 and 1
    return rng.integers(0, n_signals, ranker.feedback.length(len(ticket.items))).astype(float)


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


def _calls(ranker: Any) -> compiled.PreparedCalls:
    found: compiled.PreparedCalls = ranker._calls()
    return found


@pytest.mark.parametrize("name", RANKERS)
def test_what_is_left_from_one_call_does_not_matter_to_the_next(name: str) -> None:
    ranker, twin = RANKERS[name](), RANKERS[name]()
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    for i in range(12):
        context = ranker.example_context(np.random.default_rng(i))
        mine, theirs = ranker.rank(context, rng=rng), _from_nothing(twin, context, other)
        told = _revealed(ranker, mine, np.random.default_rng(i))
        np.testing.assert_array_equal(
            mine.items[: len(told)], theirs.items[: len(told)]
        )  # all that PDGD draws
        ranker.learn(mine, told)
        twin._learn_checked(Ranking(mine.items, theirs.propensities, theirs.memo), told)
        if twin.until_pause() == 0:
            twin.pause()
        for room in _calls(ranker)._free:
            _overwrite(room.scratch)
    for name_of, value in ranker.save().items():
        np.testing.assert_array_equal(value, twin.save()[name_of])


def _mistakes(ranker: CompiledRanker, ticket: Ranking, told: Any) -> Iterator[tuple[Ranking, Any]]:
    items, propensities, memo = ticket.items, ticket.propensities, ticket.memo
    n = len(items)
    for wrong in (items[:0], np.append(items, 0), items - 1, items + n, items * 0, items.astype(float)):
        yield Ranking(wrong, propensities, memo), told
    yield Ranking(items, None, memo), told
    yield Ranking(items, np.full(n, np.nan), memo), told
    yield Ranking(items, np.full(n + 1, 0.5), memo), told
    yield Ranking(items, propensities, memo[1:]), told
    yield Ranking(items, propensities, (*memo, np.ones(2))), told
    for i, part in enumerate(memo):
        for wrong in (part[..., :0], part.astype(np.int8), np.full(part.shape, -2, part.dtype)):
            yield Ranking(items, propensities, (*memo[:i], wrong, *memo[i + 1 :])), told
    for wrong in (None, "yes", [None], [[1.0], [1.0, 2.0]], 1.0, [*told, 0.0], [-1.0] * len(told)):
        yield ticket, wrong
    for number in (np.nan, np.inf, 0.5, 1e9):
        yield ticket, np.full(len(told), number)


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
        told = _revealed(ranker, ticket, np.random.default_rng(4))
        for wrong, answer in _mistakes(ranker, ticket, told):
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
        told = _revealed(ranker, ticket, np.random.default_rng(7))

        def apart(part: Any) -> Any:
            return None if part is None else np.repeat(part, 2, axis=-1)[..., ::2]

        for answer in (told.tolist(), told.astype(bool), tuple(told), told.astype(np.int32), apart(told)):
            spread = Ranking(apart(ticket.items), apart(ticket.propensities), tuple(map(apart, ticket.memo)))
            ranker.learn(spread, answer)
            twin.learn(ticket, told)
        for mine, theirs in zip(ranker.state, twin.state, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", CALLED)
def test_a_copy_goes_on_by_itself(kind: Any) -> None:
    ranker = next(of_ranker(kind.__name__))
    context = ranker.example_context(np.random.default_rng(8))
    ticket = ranker.rank(context, rng=np.random.default_rng(9))
    told = _revealed(ranker, ticket, np.random.default_rng(10))
    before = ranker.save()
    for other in (copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        other.learn(ticket, told)
        assert int(other.state.t[0]) == int(before["t"][0]) + 1
        for part, value in ranker.save().items():
            np.testing.assert_array_equal(value, before[part])


def test_a_ranker_that_gets_another_state_uses_it() -> None:
    ranker = RTop1F(n_items=4, horizon=100)
    ticket = ranker.rank(rng=np.random.default_rng(1))
    ranker.state = RTop1F(n_items=4, horizon=100).state
    ranker.learn(ticket, [1.0])
    assert ranker.state.t[0] == 1


def test_two_calls_at_once_have_two_buffers_and_long_lists_have_longer_ones() -> None:
    ranker = RTopKF(n_features=3)
    calls = _calls(ranker)
    first, second = calls._take(ranker, 4), calls._take(ranker, 4)
    assert not np.shares_memory(first.scratch[0], second.scratch[0])
    calls._free.extend([first, second])
    assert calls._take(ranker, 3) is second
    assert calls._take(ranker, 9).length == 9


def test_not_every_ranker_keeps_its_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MOST_BUFFERS", 3)
    compiled._buffers_kept.clear()
    many = [RTop1F(n_items=3) for _ in range(5)]
    for ranker in many * 2:
        ranker.rank(rng=np.random.default_rng(1))
    assert sum(len(_calls(ranker)._free) for ranker in many) == 3
