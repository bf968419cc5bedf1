"""Where other replicas reach a service."""

from __future__ import annotations

import contextlib
import socket
from urllib.parse import urlsplit

_ANYWHERE = frozenset({"0.0.0.0", "::", ""})  # what can be listened on, and is no place


def own_address(host: str, port: int) -> str:
    """Where a service that listens on a host and a port is likely to be reached.

    Examples
    --------
    >>> own_address("127.0.0.1", 8000), own_address("::1", 8000)
    ('http://127.0.0.1:8000', 'http://[::1]:8000')
    """
    if host in _ANYWHERE:
        host = socket.gethostname()
        with contextlib.suppress(OSError):
            host = socket.gethostbyname(host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def check_address(address: str) -> None:
    """Refuse an address that nobody could reach."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"advertise must be http://host:port or https://host:port, got {address!r}")
