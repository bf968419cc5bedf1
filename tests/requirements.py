"""What pyproject.toml asks for, and everything that comes with it, as far as it is installed here."""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def of_extra(name: str) -> list[Requirement]:
    """The requirements of the package with an extra; extras that name other extras are opened."""
    wanted = [Requirement(one) for one in PROJECT["dependencies"]]
    for one in map(Requirement, PROJECT["optional-dependencies"][name]):
        wanted += (
            [more for extra in one.extras for more in of_extra(extra)] if one.name == "rankloop" else [one]
        )
    return wanted


def closure(wanted: Iterable[Requirement]) -> dict[str, str]:
    """Names and versions of all that these requirements bring, here and with this Python."""
    versions: dict[str, str] = {}
    waiting, seen = list(wanted), set()
    while waiting:
        one = waiting.pop()
        if (one.name, *sorted(one.extras)) in seen:
            continue
        seen.add((one.name, *sorted(one.extras)))
        found = importlib.metadata.distribution(one.name)
        versions[canonicalize_name(one.name)] = found.version
        waiting += [
            needed
            for needed in map(Requirement, found.requires or ())
            if needed.marker is None
            or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *one.extras))
        ]
    return versions
