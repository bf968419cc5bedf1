"""The loop over rounds: it takes a ranker's and an environment's kernels and plays them without Python.

There are two forms of it. `play_rounds` takes kernels as they are: numba builds them in, which takes a second or more
for each pair of ranker and environment and cannot be kept on disk. `play_by_words` calls kernels of the library by
their addresses, so that it is compiled once for all pairs.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels import jit
from rankloop.kernels.jit import hot, loop
from rankloop.kernels.library import Unset, kind_of, n_words
from rankloop.kernels.vectors import Vector


@loop
def play_rounds(
    rank: Any,
    learn: Any,
    arrive: Any,
    respond: Any,
    value: Any,
    hindsight: Any,
    ranker_params: Any,
    ranker_state: Any,
    scratch: Any,
    environment_params: Any,
    environment_state: Any,
    ranker_words: Any,  # one word a round
    environment_words: Any,  # two words a round
    ticket: Any,  # (items, propensities, memo)
    revealed: Any,
    record: Any,  # rounds to record, counted from 1, rising
    out: Any,  # (value, total, hindsight, explored), one entry each per recorded round
    t: int,
    place: int,
    total: float,
    window: float,
    explored: int,
) -> Any:
    """Play one round for each word from round `t` on; returns (t, place, total, window, explored) to go on from."""
    items, propensities, memo = ticket
    value_out, total_out, hindsight_out, explored_out = out
    window_start = record[place - 1] if place > 0 else 0
    for i in range(len(ranker_words)):
        context = arrive(environment_params, environment_state, environment_words[2 * i])
        explored += rank(
            ranker_params, ranker_state, context, ranker_words[i], scratch, items, propensities, memo
        )
        this_value = value(environment_params, environment_state, items)
        respond(environment_params, environment_state, items, environment_words[2 * i + 1], revealed)
        learn(ranker_params, ranker_state, context, scratch, items, propensities, memo, revealed)
        total += this_value
        window += this_value
        t += 1
        if t == record[place]:
            value_out[place] = window / (t - window_start)
            total_out[place] = total
            hindsight_out[place] = hindsight(environment_params, environment_state)
            explored_out[place] = explored
            window = 0.0
            window_start = t
            place += 1
    return t, place, total, window, explored


@Vector
def call(address: int, words: Any) -> None:
    """Call the kernel of the library at `address` with its `words`."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(address))(words.ctypes.data)


class Places(NamedTuple):
    """Where in the words is what changes from round to round: word numbers."""

    context: int  # what `arrive` returns, so many words, for `rank` and `learn`
    n_context: int
    rank_context: int
    learn_context: int
    arrive_key: int
    rank_key: int
    respond_key: int
    explored: int
    value: int
    hindsight: int


@hot
def play_by_words(
    places: Any,
    addresses: Any,  # of rank, learn, arrive, respond, value, hindsight
    words: Any,  # of each of these
    numbers: Any,  # the words of value and hindsight as floating numbers
    ranker_words: Any,
    environment_words: Any,
    record: Any,
    out: Any,
    t: int,
    place: int,
    total: float,
    window: float,
    explored: int,
) -> Any:
    """`play_rounds` with kernels of the library."""
    rank, learn, arrive, respond, value, hindsight = words
    value_out, total_out, hindsight_out, explored_out = out
    window_start = record[place - 1] if place > 0 else 0
    for i in range(len(ranker_words)):
        arrive[places.arrive_key] = np.int64(environment_words[2 * i])
        call(addresses[2], arrive)
        for k in range(places.n_context):
            word = arrive[places.context + k]
            rank[places.rank_context + k] = word
            learn[places.learn_context + k] = word
        rank[places.rank_key] = np.int64(ranker_words[i])
        call(addresses[0], rank)
        explored += rank[places.explored]
        call(addresses[4], value)
        this_value = numbers[0][places.value]
        respond[places.respond_key] = np.int64(environment_words[2 * i + 1])
        call(addresses[3], respond)
        call(addresses[1], learn)
        total += this_value
        window += this_value
        t += 1
        if t == record[place]:
            call(addresses[5], hindsight)
            value_out[place] = window / (t - window_start)
            total_out[place] = total
            hindsight_out[place] = numbers[1][places.hindsight]
            explored_out[place] = explored
            window = 0.0
            window_start = t
            place += 1
    return t, place, total, window, explored


class Loop:
    """The rounds of one ranker in one environment: `arguments` are what `play_rounds` takes before the words."""

    def __init__(self, kernels: tuple[Any, ...], parts: tuple[Any, ...]) -> None:
        self.kernels, self.parts = kernels, parts
        self._by_words = _prepared(kernels, parts)

    def play(self, ranker_words: Any, environment_words: Any, record: Any, out: Any, *so_far: Any) -> Any:
        """Play a round for each word; `so_far` and what is returned are the last five arguments of `play_rounds`."""
        words = ranker_words, environment_words
        if self._by_words is not None:
            by_words: Any = play_by_words
            return by_words(*self._by_words, *words, record, out, *so_far)
        ranker_params, ranker_state, scratch, environment_params, environment_state, ticket, revealed = (
            self.parts
        )
        kernels = [getattr(kernel, "compiled", kernel) for kernel in self.kernels]
        before = ranker_params, ranker_state, scratch, environment_params, environment_state
        built_in: Any = play_rounds
        return built_in(*kernels, *before, *words, ticket, revealed, record, out, *so_far)


def _prepared(kernels: tuple[Any, ...], parts: tuple[Any, ...]) -> tuple[Any, ...] | None:
    # The first arguments of `play_by_words`; None where one of the kernels is not in the library.
    params, state, scratch, environment_params, environment_state, ticket, revealed = parts
    environment, key, items = (environment_params, environment_state), Unset("u"), ticket[0]
    arrive = jit.find(kernels[2], kind_of((*environment, key)))
    if arrive is None:
        return None
    context = Unset(arrive.returned)
    arguments: list[tuple[Any, ...]] = [
        (params, state, context, key, scratch, *ticket),
        (params, state, context, scratch, *ticket, revealed),
        (*environment, key),
        (*environment, items, key, revealed),
        (*environment, items),
        environment,
    ]
    prepared = []
    for kernel, those in zip(kernels, arguments, strict=True):
        variant = jit.find(kernel, kind_of(those))
        if variant is None:
            return None
        prepared.append(variant.prepared(those))
    rank, learn, arriving, responding, value, hindsight = prepared
    places = Places(
        arriving.status + 1,
        n_words(arrive.returned),
        rank.places[2],
        learn.places[2],
        arriving.places[2],
        rank.places[3],
        responding.places[3],
        rank.status + 1,
        value.status + 1,
        hindsight.status + 1,
    )
    words = tuple(np.frombuffer(memoryview(one.words), np.int64) for one in prepared)
    numbers = words[4].view(np.float64), words[5].view(np.float64)
    addresses = np.array([one.variant.address for one in prepared])
    return places, addresses, words, numbers
