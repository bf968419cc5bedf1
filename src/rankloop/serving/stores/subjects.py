"""Keys of data subjects: what a store keeps of them, and what is left when one is destroyed."""

from __future__ import annotations

from typing import NamedTuple


class SubjectKey(NamedTuple):
    """The key that the context of a data subject's lists is encrypted with."""

    key_id: str
    key: bytes | None


class Subjects:
    """The part of a store that keeps the keys of data subjects. A subject may have several."""

    async def subject_key(self, subject: str) -> SubjectKey | None:
        """The newest key of a subject.

        Parameters
        ----------
        subject : str
            The subject, as the application names it.

        Returns
        -------
        SubjectKey or None
            None where there is none.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps no keys of data subjects")

    async def write_subject_key(self, subject: str, key: SubjectKey, *, at: int) -> SubjectKey:
        """Keep a key, durable when this returns, unless the subject has one: whoever was first counts.

        Parameters
        ----------
        subject : str
            The subject.
        key : SubjectKey
            Its key.
        at : int
            The time, in milliseconds.

        Returns
        -------
        SubjectKey
            The key that counts, this one or the one that was there.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps no keys of data subjects")

    async def find_subject_key(self, key_id: str) -> SubjectKey | None:
        """The key of this name.

        Parameters
        ----------
        key_id : str
            Its name in the log.

        Returns
        -------
        SubjectKey or None
            Without the key where it was destroyed; None where this store never had it.
        """
        return None

    async def erase_subject(self, subject: str, *, at: int) -> int:
        """Destroy all keys of a subject, and forget that they were its keys.

        `StoreError` where their bytes may still be in the store's files; called again, it tries again.

        Parameters
        ----------
        subject : str
            The subject.
        at : int
            The time, in milliseconds.

        Returns
        -------
        int
            How many keys there were.
        """
        return 0

    async def erased_keys(self) -> set[str]:
        """The names of the keys that were destroyed."""
        return set()
