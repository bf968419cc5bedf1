"""A file with the parameters of a position-based model and their origin."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rankloop.feedback.click_model import Chances, chances
from rankloop.feedback.position_based import PositionBasedModel

FORMAT = "rankloop position-based model, version 1"


class UnconvergedWarning(UserWarning):
    """A file holds the parameters of a fit that was stopped before it converged."""


def warn_if_unconverged(path: str | Path, told: Any) -> None:
    """Warn whoever reads the parameters of a fit that did not converge.

    Parameters
    ----------
    path : str or Path
        The file.
    told : object
        What it holds.
    """
    origin = told.get("provenance") if isinstance(told, dict) else None
    if isinstance(origin, dict) and origin.get("converged") is False:
        warnings.warn(
            f"{path}: the fit of these parameters was stopped before it converged; they may be far from the maximum",
            UnconvergedWarning,
            stacklevel=3,
        )


def item_names(items: tuple[str, ...], n: int) -> tuple[str, ...]:
    """The names of n items, their numbers where none are given; ValueError if they are not n names."""
    names = tuple(items) or tuple(str(i) for i in range(n))
    if len(names) != n or not all(isinstance(name, str) for name in names):
        raise ValueError(f"items must be {n} names, got {items!r}")
    return names


def write_json(path: str | Path, told: Mapping[str, Any]) -> None:
    """Write plain values to a file that people can read too."""
    Path(path).write_text(json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def read_json(path: str | Path) -> Any:
    """What a file of JSON holds; ValueError, naming the file, if it is none."""
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class ClickParameters:
    """Attraction of items and examination of positions, as estimated from a log.

    Parameters
    ----------
    attraction : Chances
        As in `PositionBasedModel`.
    examination : Chances
        As in `PositionBasedModel`.
    items : tuple of str, optional
        What the items are called in the log, one name for each.
    provenance : mapping of str to object, optional
        Where the numbers come from: plain values that JSON can hold.

    Examples
    --------
    >>> import tempfile
    >>> given = ClickParameters(attraction=[0.9, 0.2], examination=[1.0, 0.5], items=("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     given.save(Path(folder) / "pbm.json")
    ...     read = read_parameters(Path(folder) / "pbm.json")
    >>> read.items, read.model().click_probabilities([1, 0])
    (('cat', 'dog'), array([0.2 , 0.45]))
    """

    attraction: Chances
    examination: Chances
    items: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attraction", chances("attraction", self.attraction))
        object.__setattr__(self, "examination", chances("examination", self.examination))
        object.__setattr__(self, "items", item_names(self.items, len(self.attraction)))
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))

    def model(self) -> PositionBasedModel:
        """The click model with these parameters."""
        return PositionBasedModel(attraction=self.attraction, examination=self.examination)

    def save(self, path: str | Path) -> None:
        """Write a JSON file that `read_parameters` and position-based environments read.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        told = {
            "format": FORMAT,
            "attraction": self.attraction.tolist(),
            "examination": self.examination.tolist(),
            "items": list(self.items),
            "provenance": dict(self.provenance),
        }
        write_json(path, told)


def read_parameters(path: str | Path) -> ClickParameters:
    """The parameters in a file that `ClickParameters.save` wrote; ValueError, naming the file, if it is another.

    Where the fit that they come from did not converge, it warns with an `UnconvergedWarning`.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    ClickParameters
        The parameters.
    """
    told = read_json(path)
    if not isinstance(told, dict) or not {"attraction", "examination"} <= set(told):
        raise ValueError(
            f"{path}: not a file of position-based parameters: attraction and examination are missing"
        )
    if told.get("format", FORMAT) != FORMAT:
        raise ValueError(f"{path}: format must be {FORMAT!r}, got {told['format']!r}")
    warn_if_unconverged(path, told)
    try:
        return ClickParameters(
            attraction=told["attraction"],
            examination=told["examination"],
            items=tuple(told.get("items", ())),
            provenance=told.get("provenance", {}),
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
