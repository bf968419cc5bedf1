"""The policy of a ranker, as its configuration and changes of it carry it in the log."""

from __future__ import annotations

from typing import Literal

import msgspec


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the service waits, what it does with what comes too late, and what it does without its store.

    degraded: whether it may show lists that cannot be written, and so cannot be learnt from.
    answers: which of several answers to one list counts: the first, at once; or, when the deadline has passed, the
    last, the sum of all, or for each position the largest. Both are left out of the bytes where they are not set, so
    that older configurations keep their hash, as are the following.
    apprentice: whether requests with a baseline get the baseline until the ranker is promoted.
    holdout: the share of such requests that always get the baseline.
    silence: whether no answer to a list that was seen means a relevance of 0. It means no click in any case.
    exploration_cap: the largest share of lists that may explore. displacement: how many positions an item may stand
    from its place in the baseline, at most; 0 for any number. See `rankloop.serving.log.guard_rails`.
    """

    deadline_seconds: float = 86_400.0
    parking_seconds: float = 60.0
    late: Literal["ignore", "learn"] = "ignore"
    degraded: bool | msgspec.UnsetType = msgspec.UNSET
    answers: Literal["first", "last", "sum", "union"] | msgspec.UnsetType = msgspec.UNSET
    apprentice: bool | msgspec.UnsetType = msgspec.UNSET
    holdout: float | msgspec.UnsetType = msgspec.UNSET
    silence: Literal["ignore", "zero"] | msgspec.UnsetType = msgspec.UNSET
    exploration_cap: float | msgspec.UnsetType = msgspec.UNSET
    displacement: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def collects(self) -> bool:
        """Whether answers are gathered until the deadline, and learnt from then."""
        return self.answers in ("last", "sum", "union")
