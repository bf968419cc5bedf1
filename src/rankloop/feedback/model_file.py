"""A file with any click model and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from rankloop.feedback.cascade import CascadeModel
from rankloop.feedback.click_chain import ClickChainModel
from rankloop.feedback.click_model import Chances, ClickModel, chances
from rankloop.feedback.dependent_click import DependentClickModel
from rankloop.feedback.dynamic_bayesian import DynamicBayesianModel
from rankloop.feedback.parameters import item_names, read_json, warn_if_unconverged, write_json
from rankloop.feedback.position_based import PositionBasedModel
from rankloop.feedback.trust_bias import TrustBiasModel
from rankloop.feedback.user_browsing import UserBrowsingModel

FORMAT = "rankloop click model, version 1"

KINDS: dict[str, type[ClickModel]] = {
    "cascade": CascadeModel,
    "click chain": ClickChainModel,
    "dependent click": DependentClickModel,
    "dynamic Bayesian": DynamicBayesianModel,
    "position-based": PositionBasedModel,
    "trust bias": TrustBiasModel,
    "user browsing": UserBrowsingModel,
}


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
    >>> given = SavedModel(CascadeModel(attraction=[0.5, 0.2]), examination=[1.0, 0.6], items=("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     given.save(Path(folder) / "cascade.json")
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
        object.__setattr__(self, "items", item_names(self.items, self.model.n_items))
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))

    def save(self, path: str | Path) -> None:
        """Write a JSON file that `read_model` reads.

        `environments.PositionBased.read` reads it as well, and takes the attraction and the examination: the nearest
        position-based world.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        kind = next(name for name, known in KINDS.items() if type(self.model) is known)
        own = {
            part.name: np.asarray(getattr(self.model, part.name)).tolist()
            for part in fields(self.model)  # type: ignore[arg-type]
        }
        told = {
            "format": FORMAT,
            "model": kind,
            "parameters": own,
            "attraction": self.model.attraction.tolist(),
            "examination": self.examination.tolist(),
            "items": list(self.items),
            "provenance": dict(self.provenance),
        }
        write_json(path, told)


def read_model(path: str | Path) -> SavedModel:
    """The click model in a file that `SavedModel.save` wrote; ValueError, naming the file, if it is another.

    Where the fit that it comes from did not converge, it warns with an `UnconvergedWarning`.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    SavedModel
        The model, with its items and its origin.
    """
    told = read_json(path)
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        got = told.get("format") if isinstance(told, dict) else told
        raise ValueError(f"{path}: format must be {FORMAT!r}, got {str(got)[:80]!r}")
    kind = told.get("model")
    if kind not in KINDS:
        raise ValueError(f"{path}: model must be one of {', '.join(KINDS)}, got {kind!r}")
    warn_if_unconverged(path, told)
    try:
        return SavedModel(
            KINDS[kind](**told["parameters"]),
            examination=told["examination"],
            items=tuple(told.get("items", ())),
            provenance=told.get("provenance", {}),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path}: {error}") from error
