"""In which of several databases a ranker lives."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """What a database says of a ranker that it has."""

    leaving: bool
    moves: int


class Placing:
    """The part of a store that knows which rankers it has, and where others are."""

    timeline = ""
    label = ""  # what it is called in messages, where it is one of several

    async def origin(self, ranker: str) -> str:
        """The identity of the store in which a ranker's log began: the chain of its digests begins with that.

        Parameters
        ----------
        ranker : str
            The name of the ranker.

        Returns
        -------
        str
            This store's own, unless the ranker came from another one.
        """
        return self.timeline

    async def place(self, ranker: str) -> Place | None:
        """Whether a ranker lives in this store.

        Parameters
        ----------
        ranker : str
            The name of the ranker.

        Returns
        -------
        Place or None
            None where it is not here.
        """
        raise NotImplementedError(f"{type(self).__name__} is never one of several")

    async def claim(self, rankers: list[str], database: str) -> dict[str, str]:
        """Take names for a database, where no other has them. Asked of the first of several databases.

        Parameters
        ----------
        rankers : list of str
            The names.
        database : str
            The identity of the database that wants them.

        Returns
        -------
        dict of str to str
            The identity of the database that has each from now on.
        """
        raise NotImplementedError(f"{type(self).__name__} is never one of several")
