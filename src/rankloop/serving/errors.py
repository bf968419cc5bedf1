"""What can be wrong with a request, and what each is called over HTTP."""

from __future__ import annotations


class RequestError(Exception):
    """A request that is not carried out: an HTTP status, a code for programs, a sentence, and the field to blame."""

    status = 422
    code = "invalid"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class Malformed(RequestError):
    """The body cannot be read."""

    status, code = 400, "malformed"


class Unauthorized(RequestError):
    """No key, or one that nobody knows."""

    status, code = 401, "unauthorized"


class Forbidden(RequestError):
    """A key whose role does not reach that far."""

    status, code = 403, "forbidden"


class NotFound(RequestError):
    """There is no such thing."""

    status, code = 404, "not_found"


class Conflict(RequestError):
    """The id is taken by something else."""

    status, code = 409, "conflict"


class TooLarge(RequestError):
    """More than the limits allow."""

    status, code = 413, "too_large"


class Unsupported(RequestError):
    """A content type that is not spoken here."""

    status, code = 415, "unsupported_media_type"


class Busy(RequestError):
    """The queue is full; nothing was dropped silently, and nothing was written."""

    status, code = 429, "busy"


class Unavailable(RequestError):
    """The store cannot write now."""

    status, code = 503, "unavailable"
