"""How much one request may ask for."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Bounds that keep one caller from taking everything."""

    body_bytes: int = 8_000_000
    items: int = 10_000
    features: int = 4_096
    cells: int = 4_000_000  # items x positions, or whatever else a ranker keeps numbers for
    batch: int = 1_000  # feedback in one request
    rankers: int = 1_000
    parked: int = 10_000  # feedback that waits for its decision, in one ranker
    waiting: int = 4_096  # events that wait for the disk
    context_bytes: int = 16_000
    streams: int = 64
