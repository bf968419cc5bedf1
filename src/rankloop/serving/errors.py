"""Errors of requests, and their HTTP status and code."""

from __future__ import annotations


class RequestError(Exception):
    """A refused request: an HTTP status, a code for programs, a sentence, and the field that is wrong."""

    status = 422
    code = "invalid"
    retry_after: int | None = None  # seconds, where trying again makes sense

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class Malformed(RequestError):
    """The body cannot be read."""

    status, code = 400, "malformed"


class Unauthorized(RequestError):
    """No key, or an unknown one."""

    status, code = 401, "unauthorized"


class Forbidden(RequestError):
    """A key whose role does not allow the request."""

    status, code = 403, "forbidden"


class NotFound(RequestError):
    """Not found."""

    status, code = 404, "not_found"


class TooSlow(RequestError):
    """The body did not arrive in time."""

    status, code = 408, "timeout"


class Conflict(RequestError):
    """The ID is used for something else."""

    status, code = 409, "conflict"


class TooLarge(RequestError):
    """More than the limits allow."""

    status, code = 413, "too_large"


class Unsupported(RequestError):
    """An unsupported content type."""

    status, code = 415, "unsupported_media_type"


class Busy(RequestError):
    """The queue is full; nothing was dropped silently, and nothing was written."""

    status, code = 429, "busy"
    retry_after = 1


class RateLimited(Busy):
    """More requests than allowed from one caller."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(RequestError):
    """The store cannot write now."""

    status, code = 503, "unavailable"
    retry_after = 1
