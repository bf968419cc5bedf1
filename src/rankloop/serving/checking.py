"""The old path of `rankloop.serving.stores.checks`; importing it warns, and version 0.4 drops it."""

import warnings

from rankloop.serving.stores.checks import StoreBroken, check_store

__all__ = ["StoreBroken", "check_store"]

warnings.warn(
    "rankloop.serving.checking has moved to rankloop.serving.stores.checks",
    DeprecationWarning,
    stacklevel=2,
)
