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
        """The newest key of a `subject`, as the application names it; None where there is none."""
        raise NotImplementedError(f"{type(self).__name__} keeps no keys of data subjects")

    async def write_subject_key(self, subject: str, key: SubjectKey, *, at: int) -> SubjectKey:
        """The key of a `subject` that counts: `key`, durable when this returns, unless another was there first.

        `at` is the time, in milliseconds.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps no keys of data subjects")

    async def find_subject_key(self, key_id: str) -> SubjectKey | None:
        """The key that the log calls `key_id`, without its bytes where it was destroyed; None where it never was."""
        return None

    async def erase_subject(self, subject: str, *, at: int) -> int:
        """Destroy all keys of a `subject`, forget that they were its keys, and say how many there were.

        `StoreError` where their bytes may still be in the store's files; called again, it tries again. `at` is the
        time, in milliseconds.
        """
        return 0

    async def erased_keys(self) -> set[str]:
        """The names of the keys that were destroyed."""
        return set()
