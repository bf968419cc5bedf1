"""The old path of `rankloop.serving.stores.memory`; importing it warns, and version 0.4 drops it."""

import warnings

from rankloop.serving.stores.memory import MemoryStore

__all__ = ["MemoryStore"]

warnings.warn(
    "rankloop.serving.memory has moved to rankloop.serving.stores.memory",
    DeprecationWarning,
    stacklevel=2,
)
