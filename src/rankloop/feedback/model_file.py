"""Files with a click model and its origin: the parameters of a position-based one, or any model."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from rankloop.feedback import click_models
from rankloop.feedback.click_models import Chances, ClickModel, PositionBasedModel, chances

PARAMETERS_FORMAT = "rankloop position-based model, version 1"
MODEL_FORMAT = "rankloop click model, version 1"

KINDS: dict[str, type[ClickModel]] = {
    "cascade": click_models.CascadeModel,
    "click chain": click_models.ClickChainModel,
    "dependent click": click_models.DependentClickModel,
    "dynamic Bayesian": click_models.DynamicBayesianModel,
    "position-based": PositionBasedModel,
    "trust bias": click_models.TrustBiasModel,
    "user browsing": click_models.UserBrowsingModel,
}


class UnconvergedWarning(UserWarning):
    """A file holds the parameters of a fit that was stopped before it converged."""


def warn_if_unconverged(path: str | Path, contents: Any) -> None:
    """Warn whoever reads the parameters of a fit that did not converge."""
    origin = contents.get("provenance") if isinstance(contents, dict) else None
    if isinstance(origin, dict) and origin.get("converged") is False:
        warnings.warn(
            f"{path}: the fit of these parameters was stopped before it converged; they may be far from the maximum",
            UnconvergedWarning,
            stacklevel=3,
        )


def _complete(saved: ClickParameters | SavedModel, n_items: int) -> None:
    # Names for all items, and everything as it stays.
    names = tuple(saved.items) or tuple(str(i) for i in range(n_items))
    if len(names) != n_items or not all(isinstance(name, str) for name in names):
        raise ValueError(f"items must be {n_items} names, got {saved.items!r}")
    object.__setattr__(saved, "items", names)
    object.__setattr__(saved, "provenance", MappingProxyType(dict(saved.provenance)))


def _write(path: str | Path, saved: ClickParameters | SavedModel, contents: Mapping[str, Any]) -> None:
    about = {"items": list(saved.items), "provenance": dict(saved.provenance)}
    text = json.dumps({**contents, **about}, indent=1, ensure_ascii=False, allow_nan=False)
    Path(path).write_text(text + "\n", "utf-8")


def _read(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class ClickParameters:
    """Attraction of items and examination of positions, as estimated from a log.

    Parameters
    ----------
    attraction, examination : Chances
        As in `PositionBasedModel`.
    items : tuple of str, optional
        What the items are called in the log, one name for each.
    provenance : mapping of str to object, optional
        Where the numbers come from: plain values that JSON can hold.

    Examples
    --------
    >>> import tempfile
    >>> saved = ClickParameters(attraction=[0.9, 0.2], examination=[1.0, 0.5], items=("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved.save(Path(folder) / "pbm.json")
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
        _complete(self, len(self.attraction))

    def model(self) -> PositionBasedModel:
        """The click model with these parameters."""
        return PositionBasedModel(attraction=self.attraction, examination=self.examination)

    def save(self, path: str | Path) -> None:
        """Write to `path` a JSON file that `read_parameters` and position-based environments read."""
        contents = {"format": PARAMETERS_FORMAT, "attraction": self.attraction.tolist()}
        _write(path, self, contents | {"examination": self.examination.tolist()})


def read_parameters(path: str | Path) -> ClickParameters:
    """The parameters in the file at `path` that `ClickParameters.save` wrote; a ValueError names any other file.

    Where the fit that they come from did not converge, it warns with an `UnconvergedWarning`.
    """
    contents = _read(path)
    if not isinstance(contents, dict) or not {"attraction", "examination"} <= set(contents):
        raise ValueError(
            f"{path}: not a file of position-based parameters: attraction and examination are missing"
        )
    if contents.get("format", PARAMETERS_FORMAT) != PARAMETERS_FORMAT:
        raise ValueError(f"{path}: format must be {PARAMETERS_FORMAT!r}, got {contents['format']!r}")
    warn_if_unconverged(path, contents)
    try:
        return ClickParameters(
            attraction=contents["attraction"],
            examination=contents["examination"],
            items=tuple(contents.get("items", ())),
            provenance=contents.get("provenance", {}),
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """A click model as it is kept in a file, for environments to play and rankers to start from.

    Parameters
    ----------
    model : ClickModel
        The model, one of `rankloop.feedback`.
    examination : Chances
        How often users look at each position, relative to the one that they look at most: the `examination` of a
        position-based ranker.
    items : tuple of str, optional
        What the items are called in the log, one name for each.
    provenance : mapping of str to object, optional
        Where the numbers come from: plain values that JSON can hold.

    Examples
    --------
    >>> import tempfile
    >>> cascade = click_models.CascadeModel(attraction=[0.5, 0.2])
    >>> saved = SavedModel(cascade, examination=[1.0, 0.6], items=("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved.save(Path(folder) / "cascade.json")
    ...     read = read_model(Path(folder) / "cascade.json")
    >>> read.items, read.model.click_probabilities([1, 0])
    (('cat', 'dog'), array([0.2, 0.4]))
    """

    model: ClickModel
    examination: Chances
    items: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.model) not in KINDS.values():
            raise ValueError(f"model must be a click model of rankloop.feedback, got {self.model!r}")
        object.__setattr__(self, "examination", chances("examination", self.examination))
        _complete(self, self.model.n_items)

    def save(self, path: str | Path) -> None:
        """Write to `path` a JSON file that `read_model` reads.

        `environments.PositionBased.read` reads it as well, and takes the attraction and the examination: the nearest
        position-based world.
        """
        kind = next(name for name, known in KINDS.items() if type(self.model) is known)
        own = {
            part.name: np.asarray(getattr(self.model, part.name)).tolist()
            for part in fields(self.model)  # type: ignore[arg-type]
        }
        contents = {
            "format": MODEL_FORMAT,
            "model": kind,
            "parameters": own,
            "attraction": self.model.attraction.tolist(),
            "examination": self.examination.tolist(),
        }
        _write(path, self, contents)


def read_model(path: str | Path) -> SavedModel:
    """The click model in the file at `path` that `SavedModel.save` wrote; a ValueError names any other file.

    Where the fit that it comes from did not converge, it warns with an `UnconvergedWarning`.
    """
    contents = _read(path)
    if not isinstance(contents, dict) or contents.get("format") != MODEL_FORMAT:
        got = contents.get("format") if isinstance(contents, dict) else contents
        raise ValueError(f"{path}: format must be {MODEL_FORMAT!r}, got {str(got)[:80]!r}")
    kind = contents.get("model")
    if kind not in KINDS:
        raise ValueError(f"{path}: model must be one of {', '.join(KINDS)}, got {kind!r}")
    warn_if_unconverged(path, contents)
    try:
        return SavedModel(
            KINDS[kind](**contents["parameters"]),
            examination=contents["examination"],
            items=tuple(contents.get("items", ())),
            provenance=contents.get("provenance", {}),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path}: {error}") from error
