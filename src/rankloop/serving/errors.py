"""What can be wrong with a request, and what each is called over HTTP."""

from __future__ import annotations


class Mistake(Exception):
    """A request that is not carried out: an HTTP status, a code for programs, a sentence, and the field to blame."""

    status = 422
    code = "invalid"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class Malformed(Mistake):
    """The body cannot be read."""

    status, code = 400, "malformed"


class Unauthorized(Mistake):
    """No key, or one that nobody knows."""

    status, code = 401, "unauthorized"


class Forbidden(Mistake):
    """A key whose role does not reach that far."""

    status, code = 403, "forbidden"


class NotFound(Mistake):
    """There is no such thing."""

    status, code = 404, "not_found"


class Conflict(Mistake):
    """The id is taken by something else."""

    status, code = 409, "conflict"


class TooLarge(Mistake):
    """More than the limits allow."""

    status, code = 413, "too_large"


class Unsupported(Mistake):
    """A content type that is not spoken here."""

    status, code = 415, "unsupported_media_type"


class Busy(Mistake):
    """The queue is full; nothing was dropped silently, and nothing was written."""

    status, code = 429, "busy"


class Unavailable(Mistake):
    """The store cannot write now."""

    status, code = 503, "unavailable"
