"""What the logs of single lists have in common: rows of items and clicks, names, and rows that were left out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.notebook import sentence


class ShownLists:
    """A frozen log with a row for each shown list."""

    __slots__ = ()

    items: NDArray[Any]
    clicks: NDArray[Any]
    item_ids: tuple[str, ...]
    bad_rows: Mapping[str, int]
    name: str

    def _set(self, name: str, array: NDArray[np.generic]) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def _set_names(self, what: str, given: tuple[str, ...], default: tuple[str, ...], most: int) -> None:
        # Names, of which there must be one for every number up to `most`.
        names = tuple(given) or default
        if most >= len(names):
            raise ValueError(f"{what} must name number {most}, got {len(names)} names")
        object.__setattr__(self, what, names)

    def _freeze_bad_rows(self) -> None:
        object.__setattr__(self, "bad_rows", MappingProxyType(dict(self.bad_rows)))

    def _told(self, what: str) -> str:
        clicks, bad = int(self.clicks.sum()), sum(self.bad_rows.values())
        told = f"{what}, {clicks:,} click{'' if clicks == 1 else 's'}"
        if bad:
            told += f"; {bad:,} bad row{'' if bad == 1 else 's'} left out"
        return f"{type(self).__name__}({self.name!r}: {told})"

    def _repr_html_(self) -> str:
        return sentence(repr(self))

    @property
    def n_rows(self) -> int:
        """How many lists there are."""
        return len(self.items)

    @property
    def n_items(self) -> int:
        """How many items have a name."""
        return len(self.item_ids)


def numbered(most: int) -> tuple[str, ...]:
    """The numbers from 0 to `most`, as names."""
    return tuple(str(one) for one in range(most + 1))
