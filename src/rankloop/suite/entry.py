"""Who takes part: a ranker by its name with some arguments, and where it can play."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rankloop import rankers
from rankloop.base import Ranker, import_path, plain
from rankloop.rankers.registry import find
from rankloop.simulation.by_name import Setting, check_settings, make_ranker, read_settings
from rankloop.simulation.matching import check_match
from rankloop.suite.delayed import Delayed
from rankloop.suite.world import World

MOST_BYTES = 1 << 30  # of one ranker

_REFERENCES = {
    "BestInHindsight": "it knows the users",
    "Fixed": "it shows a given order",
    "Uniform": "it is the zero of every score",
}

# With its defaults PMED solves about a hundred optimisation problems in a run of 20,000 rounds, seven seconds.
_QUICKER: dict[str, dict[str, Setting]] = {"PMED": {"growth": 2, "every": 100}}
_MOST_ITEMS = {"PMED": 50}  # one solve with 100 items takes minutes


class NotApplicable(ValueError):
    """A ranker cannot play in a world; the message says why."""


@dataclass(frozen=True)
class Entry:
    """A ranker that takes part.

    Parameters
    ----------
    name : str
        A registered ranker, or `package.module:Class`.
    settings : dict, optional
        Arguments that replace the defaults and what the world offers.
    """

    name: str
    settings: dict[str, Setting] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Self:
        """An entry as the command line takes it.

        Parameters
        ----------
        text : str
            A name, or a name and arguments: `FTRLPBM,regulariser=hybrid,estimator=mean`.

        Returns
        -------
        Entry
            The ranker and its arguments, both known.

        Examples
        --------
        >>> Entry.read("FTRLPBM,regulariser=hybrid").settings
        {'regulariser': 'hybrid'}
        """
        name, *arguments = text.split(",")
        settings = read_settings(arguments, option=f"RANKER {name}")
        check_settings(name, settings)
        if name in _REFERENCES:
            raise ValueError(f"{name} takes no part in the suite: {_REFERENCES[name]}")
        return cls(name, settings)

    @property
    def label(self) -> str:
        """How it is named in results: as it was given."""
        return ",".join([self.name, *(f"{key}={_written(value)}" for key, value in self.settings.items())])

    @property
    def code(self) -> str:
        """A hash of the file that has the class; of the package's own rankers, the package's hash covers it."""
        kind = find(self.name)
        if kind.__module__.startswith("rankloop."):
            return ""
        return hashlib.sha256(Path(inspect.getfile(kind)).read_bytes()).hexdigest()[:16]

    @property
    def path(self) -> str:
        """Where the class is found."""
        return import_path(find(self.name))

    def make(self, world: World, *, rounds: int) -> Ranker:
        """A fresh ranker for a world.

        Parameters
        ----------
        world : World
            Where it is to play.
        rounds : int
            For how long.

        Returns
        -------
        Ranker
            Ready to play.

        Raises
        ------
        NotApplicable
            Where it cannot play there.
        """
        people = world.make(rounds)
        kind = find(self.name)
        accepted = inspect.signature(kind).parameters
        takes_features = world.features is not None and "features" in accepted
        needs_features = "n_features" in accepted and "n_items" not in accepted
        if needs_features and not takes_features and people.n_features is None:
            raise NotApplicable("it ranks items by features, and these have none")
        if people.n_items is None and "n_items" in accepted:
            raise NotApplicable("it ranks the same items each time, and these users bring lists of their own")
        size = {
            "n_items": people.n_items or people.n_positions,
            "n_positions": people.n_positions if people.n_shown is None else people.n_shown,
            "n_features": people.n_features or (0 if world.features is None else world.features.shape[1]),
        }
        if self.name in _MOST_ITEMS and size["n_items"] > _MOST_ITEMS[self.name]:
            raise NotApplicable(f"it would take too long with {size['n_items']:,} items")
        needed = kind.bytes_for(**size)
        if needed > MOST_BYTES:
            raise NotApplicable(
                f"with {size['n_items']:,} items it needs about {needed / 1e9:.1f} GB of memory"
            )
        try:
            ranker = make_ranker(
                self.name,
                people=people,
                rounds=rounds,
                settings=self.settings,
                also={"features": world.features} if takes_features else None,
                option="",
            )
            check_match(ranker, people, rounds)
        except ValueError as error:
            raise NotApplicable(str(error)) from None
        return Delayed(ranker, delay=world.delay) if world.delay else ranker

    def described(self) -> dict[str, Any]:
        """What a submission says of it.

        Returns
        -------
        dict
            Name, class, arguments and, for a class of one's own, a hash of its file.
        """
        return {"name": self.name, "path": self.path, "settings": plain(self.settings), "code": self.code}


def every_entry() -> list[Entry]:
    """All rankers of the package, with their default arguments where these are not too slow.

    Returns
    -------
    list of Entry
        Without those that are references.
    """
    return [Entry(name, _QUICKER.get(name, {})) for name in rankers.__all__ if name not in _REFERENCES]


def _written(value: Setting) -> str:
    return "none" if value is None else str(value)
