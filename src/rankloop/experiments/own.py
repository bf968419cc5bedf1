"""Experiments that can be played on data of one's own: how such data, and then the experiment, is named."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Protocol

from rankloop.experiments.experiment import Experiment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Named(Protocol):
    """Data with a name and the path that it came from."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...


class OnOwnData(Experiment):
    """An experiment that may be played on data of one's own instead of the known data."""

    _own: Sequence[Named] = ()

    @property
    def label(self) -> str:
        return "-".join([self.name, *(own.name for own in self._own)])

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(f"--dataset {shlex.quote(f'{own.name}={own.path}')}" for own in self._own)


def check_name(name: str, taken: Sequence[str]) -> None:
    """Refuse a name that cannot be part of a folder's, and that of known data."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the name of a data set must be letters, digits, '.', '_' and '-', and start with one of the first two, "
            f"got {name!r}"
        )
    if name.lower() in {word.lower() for word in taken}:
        raise ValueError(f"the name {name!r} is taken by a known data set: choose another")
