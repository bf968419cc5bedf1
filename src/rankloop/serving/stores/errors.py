"""What can go wrong with a store."""

from __future__ import annotations


class StoreError(Exception):
    """The store could not do it; nothing of the batch was written."""


class Full(StoreError):
    """No room on the disk. What was there stays good; try again when there is room."""


class Broken(StoreError):
    """The disk reported a failed write. Its content is uncertain: read-only until restarted."""


class Fenced(StoreError):
    """Another process took over: the epoch that this was written with is over."""


class Diverged(StoreError):
    """The log has another history than the state that this was made from; nothing was written."""


class Stale(StoreError):
    """A list was drawn from a state before another process changed the ranker; nothing was written."""


class Damaged(StoreError):
    """Something in the store cannot be read. What else it holds may be good."""


class SetBack(StoreError):
    """The store has fewer rows than it has acknowledged: nothing is written until somebody gives them up."""


class Owned(StoreError):
    """Another process owns this store."""


class Missing(StoreError):
    """No ranker has this name."""
