"""What an operator should know about the service."""

from __future__ import annotations

from rankloop.serving.engine import Engine

_MOST = 20  # rankers that are spelled out


def notices(engine: Engine) -> list[str]:
    """What is wrong with single rankers: those that cannot be served, and alerts."""
    return [*engine.roster.notices(), *engine.housekeeping.alerts.sentences()]


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
    found += engine.store.remarks()
    if engine.degraded:
        found.append(f"{len(engine.degraded):,} lists were shown without the store and wait to be logged")
    return found
