"""A fold as it is written into a snapshot, and the small records that it keeps."""

from __future__ import annotations

import msgspec

from rankloop.serving.adapters.estimates import SavedEstimates
from rankloop.serving.item_counts import SavedItemCounts
from rankloop.serving.log.records import Config, Packed, Policy
from rankloop.serving.log.stored_features import SavedFeatures
from rankloop.serving.log.trials import TrialSums
from rankloop.serving.series import Series


class DeadLetter(msgspec.Struct, frozen=True):
    """Feedback that no decision was found for, or that its decision could not take."""

    seq: int
    at: int
    decision: str
    why: str


class Counts(msgspec.Struct):
    """How often what happened, since the beginning."""

    decisions: int = 0
    explored: int = 0
    activated: int = 0
    feedback: int = 0
    learnt: int = 0
    late: int = 0
    expired: int = 0
    conflicts: int = 0
    dead: int = 0
    degraded: int = 0  # lists that were shown while the store was away
    imported: int = 0  # lists of other logs that were learnt from


class Learnt(msgspec.Struct):
    """What was learnt, and over which items: all that a rollback brings back."""

    arrays: dict[str, Packed]
    active: list[str]
    rounds: int


class Saved(msgspec.Struct):
    """A whole fold, for a snapshot."""

    config: Config
    applied: int
    at: int
    generation: int
    catalogue: list[str]
    active: list[int]
    learnt: Learnt
    frozen: bool
    parked: dict[str, list[tuple[int, int]]]
    dead: list[DeadLetter]
    counts: Counts
    expire_cursor: int
    series: Series
    estimates: SavedEstimates
    items: SavedItemCounts | None = None  # snapshots from before there were counts have none
    policies: tuple[Policy, list[tuple[int, str, Policy]]] | None = None  # likewise, before they could change
    trial: TrialSums | None = None
    stored: SavedFeatures | None = None
