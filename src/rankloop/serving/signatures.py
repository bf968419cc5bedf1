"""Signatures of webhooks: HMAC-SHA256 over the time and the body, so that neither can be changed, nor sent again later.

The header `Rankloop-Signature` is `t=SECONDS,v1=HEX`, where HEX is the HMAC of `SECONDS.BODY`.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

HEADER = "rankloop-signature"
TOLERANCE = 300  # seconds between the time in a signature and now
_SHORTEST = 16  # bytes of a secret


def sign(secret: bytes, body: bytes, *, at: int) -> str:
    """The header for a body that is sent at `at`, in seconds since 1970.

    Examples
    --------
    >>> sign(b"0123456789abcdef", b"{}", at=1)[:20]
    't=1,v1=2af693cb56b22'
    """
    return f"t={at},v1={_digest(secret, body, at)}"


def check(secret: bytes, header: str, body: bytes, *, now: float, tolerance: float = TOLERANCE) -> None:
    """Refuse a body that whoever has the secret did not sign, or not lately."""
    at, signature = read_header(header, now=now, tolerance=tolerance)
    # As bytes: text that is compared in constant time may have ASCII only, and a header may have anything.
    if not hmac.compare_digest(_digest(secret, body, at).encode(), signature.encode()):
        raise ValueError("the signature does not fit the body")


def read_header(header: str, *, now: float, tolerance: float = TOLERANCE) -> tuple[int, str]:
    """The time and the signature in a header; ValueError where it has none, or not a present one."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not at.isascii() or not at.isdigit() or len(at) > 12:
        raise ValueError(f"the header {HEADER} must be t=SECONDS,v1=HEX")
    if abs(now - int(at)) > tolerance:
        raise ValueError(f"the signature is {now - int(at):.0f} s old, more than {tolerance:g}")
    return int(at), parts.get("v1", "")


def _digest(secret: bytes, body: bytes, at: int) -> str:
    return hmac.new(secret, b"%d." % at + body, hashlib.sha256).hexdigest()


def read_secret(path: Path) -> bytes:
    """The secret in a file, without space around it; ValueError where there is none, or one that is too short."""
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise ValueError(f"the secret {path} cannot be read: {error.strerror}") from None
    if len(secret) < _SHORTEST:
        raise ValueError(f"the secret in {path} must have {_SHORTEST} bytes or more, it has {len(secret)}")
    return secret
