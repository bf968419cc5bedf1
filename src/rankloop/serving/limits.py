"""How much the service takes on: of one request, of one caller, and of all together. Every limit can be set."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """How much one request may ask for, so that one caller cannot take everything."""

    body_bytes: int = 8_000_000
    items: int = 10_000
    features: int = 4_096
    ranker_bytes: int = 256_000_000  # memory of one ranker
    batch: int = 1_000  # feedback in one request
    rankers: int = 1_000
    parked: int = 10_000  # feedback that waits for its decision, in one ranker
    waiting: int = 4_096  # events that wait for the disk
    context_bytes: int = 16_000
    row_bytes: int = 16_000_000  # one row of the log; rows that carry a state may have twice `ranker_bytes`
    streams: int = 64
    cache_bytes: int = 256_000_000  # lists at hand, of all rankers together
    degraded: int = 10_000  # lists shown without the store that wait to be logged
    store_seconds: float = 10.0  # that a request waits for the store
    connections: int = 2_000
    connections_per_address: int = 500
    header_bytes: int = 32_768
    header_seconds: float = 10.0  # from the first byte to the end of the header
    body_seconds: float = 60.0  # from the end of the header to the end of the body
    idle_seconds: int = 30  # of a connection between two requests
    requests_per_second: float = 5_000.0  # with one key


def read_limits(settings: list[str]) -> Limits:
    """The limits, some of them set as NAME=NUMBER.

    >>> read_limits(["rankers=20000", "header_seconds=2.5"]).rankers
    20000
    >>> read_limits(["rankers=many"])
    Traceback (most recent call last):
    ...
    ValueError: limit rankers must be a positive whole number, got 'many'
    """
    kinds = {field.name: field.type for field in msgspec.structs.fields(Limits)}
    given: dict[str, float] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in kinds:
            raise ValueError(f"there is no limit {name!r}; there are {', '.join(kinds)}")
        whole = kinds[name] is int
        try:
            given[name] = int(text) if whole else float(text)
        except ValueError:
            given[name] = 0
        if not 0 < given[name] < 1 << 53:
            kind = "whole number" if whole else "number"
            raise ValueError(f"limit {name} must be a positive {kind}, got {text!r}")
    return msgspec.convert(given, Limits)
