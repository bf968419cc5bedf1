"""What made a result: versions of the software, and the kind of machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform

from rankloop import __version__


def versions() -> dict[str, str]:
    """The software a result depends on."""
    found = {"rankloop": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", "polars", "matplotlib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> str:
    """The kind of machine, without its name."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count() or 1} cores"
