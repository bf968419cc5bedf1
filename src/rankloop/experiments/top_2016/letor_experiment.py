"""What the experiments on LETOR data sets share: they can be played on data sets of one's own instead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rankloop.experiments.own import OnOwnData, check_name
from rankloop.experiments.top_2016 import own_data, setting


class LetorExperiment(OnOwnData):
    """An experiment on the LETOR data sets of this machine, or on others.

    Parameters
    ----------
    datasets : mapping of str to str or Path, optional
        Data sets to play instead: the name of each, and its file or folder, as `rankloop.data.read_letor` takes it.
    """

    def __init__(self, *, datasets: Mapping[str, str | Path] | None = None) -> None:
        given = dict(datasets or {})
        for name in given:
            check_name(name, (*setting.SOURCES, setting.SYNTHETIC))
        self._own: list[own_data.OwnData] = [own_data.read(name, path) for name, path in given.items()]
        for own in self._own:
            _check_parts(own)

    @property
    def own(self) -> list[str]:
        """The keys of the data sets to play instead of the known ones, if any."""
        return [own.key for own in self._own]


def _check_parts(own: own_data.OwnData) -> None:
    n = own.queries.n_queries
    seeds = setting.SEEDS if n >= setting.PARTS else ()
    relevant = [np.any(part.relevance > 0) for seed in seeds for part in setting.parts(own.key, seed)]
    if not (relevant and all(relevant)):
        raise ValueError(
            f"data set {own.name!r}: {n} queries are too few, for each of {setting.PARTS} parts must have one with a "
            "relevant document"
        )
