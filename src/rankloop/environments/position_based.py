"""The position-based model: a click takes a position that is looked at and an item that attracts, independently."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import shares
from rankloop.environments.click_matrix import ClickMatrix, halves_exchanged
from rankloop.feedback.parameters import warn_if_unconverged


class PositionBased(ClickMatrix):
    """Users who click item i at position j with probability attraction[i] * examination[j].

    Parameters
    ----------
    attraction : array_like
        For each item, the probability of a click where it is examined.
    examination : array_like
        For each position, the probability that it is examined, in any order; at most as many as items.

    Notation
    --------
    alpha is `attraction`, beta is `examination`, n and m their lengths (2022, Setting). Only their products are
    observed: a larger alpha with a smaller beta is the same world (erratum C12).

    Examples
    --------
    >>> people = PositionBased(attraction=[0.2, 0.8, 0.5], examination=[1.0, 0.5])
    >>> people.best().items, people.value(people.best())
    (array([1, 2]), 1.05)
    """

    def __init__(self, *, attraction: ArrayLike, examination: ArrayLike) -> None:
        self.attraction = shares("attraction", attraction)
        self.examination = shares("examination", examination)
        if len(self.examination) > len(self.attraction):
            raise ValueError(
                f"examination must have no more positions than attraction has items ({len(self.attraction)}), "
                f"got {len(self.examination)}"
            )
        super().__init__(np.outer(self.examination, self.attraction))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The world in a JSON file with the keys `attraction` and `examination`; other keys may stand beside them.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        PositionBased
            The world.
        """
        try:
            told = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(
                f"path must be a file of parameters, got {str(path)!r}: {error.strerror}"
            ) from None
        except ValueError as error:
            raise ValueError(f"path must be JSON, got {str(path)!r}: {error}") from None
        for key in ("attraction", "examination"):
            if not isinstance(told, dict) or key not in told:
                raise ValueError(f"path must tell {key!r}, got {str(path)!r}, which does not")
        warn_if_unconverged(path, told)
        try:
            return cls(attraction=told["attraction"], examination=told["examination"])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def reversed(self) -> PositionBased:
        return PositionBased(attraction=self.attraction[::-1], examination=self.examination[::-1])

    def exchanged(self) -> PositionBased:
        attraction = self.attraction[halves_exchanged(self.n_items)]
        return PositionBased(attraction=attraction, examination=self.examination)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(attraction=[0.9, 0.1, 0.5, 0.6, 0.3], examination=[1.0, 0.5, 0.2])
        yield cls(attraction=[0.2, 0.9, 0.4, 0.4], examination=[0.1, 0.3, 0.6, 1.0])
        yield cls(attraction=[0.2, 0.9, 0.4], examination=[1.0])
        yield cls(attraction=[1.0], examination=[0.0])
