"""What the client raises."""

from __future__ import annotations


class RankloopError(Exception):
    """The service refused a call, or its answer cannot be read.

    Parameters
    ----------
    status : int
        The HTTP status; 0 where there was no answer.
    code : str
        The kind of error, for programs: "not_found", "conflict", "invalid", ...
    message : str
        What went wrong, in a sentence.
    field : str, optional
        The field of the request that is wrong.
    """

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(status, code, message, field)  # the arguments themselves, so that it can be pickled
        self.status = status
        self.code = code
        self.message = message
        self.field = field

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.message}" + (f" ({self.field})" if self.field else "")


class Unreachable(RankloopError):
    """The service did not answer, although the call was repeated.

    Parameters
    ----------
    status : int
        Always 0: there was no answer.
    code : str
        The kind of error, for programs.
    message : str
        What went wrong, in a sentence.
    field : str, optional
        Never given.
    """

    def __str__(self) -> str:
        return self.message
