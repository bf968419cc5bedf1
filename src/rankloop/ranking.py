"""A ranking that was shown: the ticket between `rank` and `learn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import numbers

Array = NDArray[Any]
Memo = tuple[Array, ...]


def draw_key(rng: np.random.Generator) -> np.uint64:
    """One 64-bit word of `rng`; a kernel expands it into as many numbers as it needs.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the randomness comes from.

    Returns
    -------
    numpy.uint64
        The word.
    """
    return np.uint64(generator(rng).bit_generator.random_raw())


def generator(rng: Any) -> np.random.Generator:
    """Read the argument `rng`.

    Parameters
    ----------
    rng : numpy.random.Generator
        What was given.

    Returns
    -------
    numpy.random.Generator
        The same.

    Raises
    ------
    ValueError
        Where it is anything else, such as a seed.
    """
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a generator, such as np.random.default_rng(1), got {rng!r}")
    return rng


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """A ranking that was shown: the ticket that `learn` needs to use its feedback.

    Parameters
    ----------
    items : ndarray of int
        Item indices, best position first; positions count from 0.
    propensities : ndarray of float, optional
        Exact probability with which each shown (item, position) was shown; None where the ranking is
        deterministic or the probability has no closed form.
    memo : Memo, optional
        Written and read only by the ranker that issued it; plain arrays.
    explored : bool, optional
        Whether this ranking was shown to find something out rather than to please.
    """

    items: NDArray[np.int64]
    propensities: NDArray[np.float64] | None = None
    memo: Memo = ()
    explored: bool = False

    def save(self) -> dict[str, Array]:
        """The ticket as named arrays, ready for `np.savez`."""
        saved: dict[str, Array] = {"items": self.items, "explored": np.asarray(self.explored)}
        if self.propensities is not None:
            saved["propensities"] = self.propensities
        return saved | {f"memo.{i}": part for i, part in enumerate(self.memo)}

    @classmethod
    def load(cls, saved: Mapping[str, Array]) -> Ranking:
        """The ticket that `save` wrote.

        Parameters
        ----------
        saved : mapping of str to array_like
            What `save` gave.
        """
        n_parts = sum(name.startswith("memo.") for name in saved)
        for name in ("items", "explored", *(f"memo.{i}" for i in range(n_parts))):
            if name not in saved:
                raise ValueError(f"saved ticket has no {name!r}, only {sorted(saved)}")
        items = numbers("items", saved["items"])
        if items.ndim != 1 or (items != np.floor(items)).any():
            raise ValueError(f"items must be a list of item numbers, got {saved['items']!r}")
        return cls(
            items=items.astype(np.int64),
            propensities=np.asarray(saved["propensities"], np.float64) if "propensities" in saved else None,
            memo=tuple(np.asarray(saved[f"memo.{i}"]) for i in range(n_parts)),
            explored=bool(saved["explored"]),
        )
