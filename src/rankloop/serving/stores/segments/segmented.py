"""The part of a store that keeps closed history in segments."""

from __future__ import annotations

from rankloop.serving.log.records import Kind, Row
from rankloop.serving.stores.segments.closed_history import ClosedHistory
from rankloop.serving.stores.segments.manifest import Segment

# Rows of these kinds are many, and leave the live log. The others are few, and starting needs them: they stay as well.
MANY: tuple[Kind, ...] = (
    *("decision", "activate", "feedback", "expire", "items", "import", "conflict", "degraded"),
)


class Segmented:
    """A store whose rows may be moved to segments. Reading, finding and appending go on as if they had not been."""

    async def history(self, ranker: str) -> ClosedHistory | None:
        """The closed part of a ranker's log, as it is now.

        Parameters
        ----------
        ranker : str
            The name of the ranker.

        Returns
        -------
        ClosedHistory or None
            None where this store, or this ranker, has no place for segments.
        """
        return None

    async def add_segment(self, ranker: str, segment: Segment, *, links: dict[int, bytes]) -> None:
        """From now on the rows of `segment` may be missing in the live log. Its files are on the disk.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        segment : Segment
            The segment, next after those there are.
        links : dict of int to bytes
            The links of rows whose next row stays in the live log.

        Raises
        ------
        Diverged
            Where another process added one meanwhile, or the log has another row of this number.
        """
        raise ValueError("this store keeps no segments")

    async def clear(self, ranker: str, *, keep: list[int], limit: int) -> bool:
        """Delete up to `limit` rows from the live log that are in segments; whether there may be more.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        keep : list of int
            Rows that stay all the same: feedback that still waits for its list.
        limit : int
            How many rows at most.

        Returns
        -------
        bool
            False once there is nothing left to delete.
        """
        return False

    async def give_space_back(self, *, whole: bool = False) -> None:
        """Give the space of deleted rows back to the file system, as far as the store can.

        Parameters
        ----------
        whole : bool, optional
            Whether nobody else needs the store meanwhile, so that it may be written anew.
        """

    async def left_over(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        """Rows of the live log that are in segments as well.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        after : int
            The last row that is not wanted.
        limit : int
            How many rows at most.

        Returns
        -------
        list of Row
            The rows, in order.
        """
        return []
