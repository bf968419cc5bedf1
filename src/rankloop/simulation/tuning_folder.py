"""The folder of a search: what is searched, and a file for each run that has ended."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from rankloop.base import Constructed, import_path
from rankloop.simulation.code_version import code_fingerprint
from rankloop.whole_file import sweep, write_whole

Study = dict[str, Any]


class Result(NamedTuple):
    """What a run came to: the mean value of a round, the regret (NaN where it is not known), and exploration."""

    value: float
    regret: float
    explored: float


class TuningFolder:
    """Keeps the results of runs, in a folder or, without one, nowhere.

    A folder belongs to one study: another one is refused in words. Runs that other code made are played again.
    """

    def __init__(self, path: Path | None, study: Study) -> None:
        self.path = path
        if path is None:
            return
        if path.exists() and not path.is_dir():
            raise ValueError(f"folder must be a folder, got the file {path}")
        sweep(path)
        sweep(path / "runs")
        file = path / "study.json"
        if file.exists():
            _check_same(json.loads(file.read_text(encoding="utf-8")), study, path)
        elif path.exists() and any(path.iterdir()):
            raise ValueError(f"folder must be empty or that of an earlier search, got {path}")
        else:
            self._write(file, study)

    def find(self, name: str) -> Result | None:
        """The stored result of the run called `name`, if this code has made one."""
        if self.path is None:
            return None
        try:
            told = json.loads(self._run(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if told["code"] != code_fingerprint():
            return None
        regret = math.nan if told["regret"] is None else told["regret"]
        return Result(told["value"], regret, told["explored"])

    def keep(self, name: str, result: Result) -> None:
        """Write the result of the run called `name`."""
        if self.path is not None:
            regret = None if math.isnan(result.regret) else result.regret
            self._write(self._run(name), result._asdict() | {"regret": regret, "code": code_fingerprint()})

    def finish(self, answer: Study) -> None:
        """Write the answer of the search."""
        if self.path is not None:
            self._write(self.path / "tuning.json", answer)

    def _run(self, name: str) -> Path:
        assert self.path is not None
        return self.path / "runs" / f"{name}.json"

    @staticmethod
    def _write(file: Path, told: Study) -> None:
        text = json.dumps(told, indent=2, allow_nan=False) + "\n"
        write_whole(file, lambda part: part.write_text(text, encoding="utf-8"))


def _check_same(stored: Study, study: Study, path: Path) -> None:
    # Ranges last: where the ranker declares them, they follow from the rounds.
    for name, value in sorted(study.items(), key=lambda one: one[0] == "ranges"):
        if stored.get(name) != value:
            raise ValueError(
                f"folder {path} holds another search: {name} is {_short(stored.get(name))} there and "
                f"{_short(value)} here; choose another folder"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def identity(value: Any) -> str:
    """A hash of an object's class and arguments, down to the last number of its data.

    Raises
    ------
    ValueError
        Where something in it has no content that could be compared, such as a function.
    """
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()[:16]


def _add(digest: Any, value: Any) -> None:
    digest.update(type(value).__name__.encode() + b"(")
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.data if array.dtype.kind in "biuf" else array.tobytes())
    elif value is None or isinstance(value, bool | int | float | str):
        digest.update(repr(value).encode())
    elif isinstance(value, list | tuple | range):
        for part in value:
            _add(digest, part)
    elif isinstance(value, dict):
        for name, part in value.items():
            digest.update(f"{name}=".encode())
            _add(digest, part)
    elif isinstance(value, Constructed):
        digest.update(import_path(type(value)).encode())
        _add(digest, value.get_params())
    elif hasattr(value, "as_argument"):
        _add(digest, value.as_argument())
    elif is_dataclass(value):
        _add(digest, {each.name: getattr(value, each.name) for each in fields(value)})
    elif isinstance(value, SimpleNamespace):
        _add(digest, vars(value))
    else:
        raise ValueError(
            "folder needs a ranker and environments made of plain arguments, so that a search that goes on is "
            f"known to be the same, got {value!r} among them"
        )
    digest.update(b")")
