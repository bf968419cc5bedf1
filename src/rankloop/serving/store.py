"""The old path of `rankloop.serving.stores.contract`; importing it warns, and version 0.4 drops it."""

import warnings

from rankloop.serving.stores.contract import Store

__all__ = ["Store"]

warnings.warn(
    "rankloop.serving.store has moved to rankloop.serving.stores.contract",
    DeprecationWarning,
    stacklevel=2,
)
