"""The loop over rounds, once: it takes a ranker's and an environment's kernels and plays them without Python."""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import loop


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
