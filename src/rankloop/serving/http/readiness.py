"""Whether the service can rank and write, and what an operator should know about it."""

from __future__ import annotations

from rankloop.serving.engine import Engine

_MOST = 20  # rankers that are spelled out


def trouble_of(engine: Engine) -> str | None:
    """Why the service is not ready, in words; None where it is, be it without some of several databases."""
    alone = len(engine.everywhere) == 1
    found = [
        (one, one.trouble if alone else f"{one.store.label}: {one.trouble}")
        for one in engine.everywhere
        if one.trouble is not None
    ]
    folding = [told for one, told in found if one.opened and not one.ready]
    if folding or len(found) == len(engine.everywhere):
        return "; ".join(folding or [told or "" for _, told in found])
    return None


def is_ready(engine: Engine) -> bool:
    """Whether it can rank and write."""
    return trouble_of(engine) is None


def notices(engine: Engine) -> list[str]:
    """What is wrong with single rankers, those that cannot be served and alerts; and with one of several databases."""
    return [
        *away(engine),
        *(told for one in engine.everywhere for told in one.roster.notices()),
        *(told for one in engine.everywhere for told in one.housekeeping.alerts.sentences()),
    ]


def away(engine: Engine) -> list[str]:
    """A sentence for each of several databases that cannot be used now, while others can."""
    if len(engine.everywhere) == 1:
        return []
    return [
        f"{one.store.label}: {one.trouble}; its rankers answer 503"
        for one in engine.everywhere
        if one.trouble is not None
    ]


def remarks(engine: Engine) -> list[str]:
    """What is not as usual, although it can rank and write or waits until it can."""
    found = notices(engine)
    if len(found) > _MOST:
        found = [*found[:_MOST], f"and {len(found) - _MOST:,} more"]
    if engine.clock.jumps:
        found.append(
            f"the clock of this machine jumped {engine.clock.jumps} times; "
            f"it is {engine.clock.offset:+.1f} s from the log's"
        )
    for one in engine.everywhere:
        found += one.store.remarks()
    waiting = sum(len(one.degraded) for one in engine.everywhere)
    if waiting:
        found.append(f"{waiting:,} lists were shown without the store and wait to be logged")
    return found
