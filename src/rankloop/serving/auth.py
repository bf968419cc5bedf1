"""Who may call: API keys, kept hashed and compared in constant time, with the roles reader, writer and admin.

Without any key the service answers every caller, but only under the address of this machine.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from rankloop.base import one_of
from rankloop.serving.errors import Forbidden, Unauthorized
from rankloop.serving.stores.contract import Store, StoredKey

ROLES = ("reader", "writer", "admin")  # each may do what those before it may
_LOCAL_HOSTS = {b"localhost", b"127.0.0.1", b"[::1]"}


async def make_key(store: Store, *, role: str, at: int, note: str = "") -> str:
    """A new key. It is shown once, here: what is kept cannot be turned back into it."""
    one_of("role", role, ROLES)
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    await store.write_key(StoredKey(key_id, role, _digest(secret), at, note))
    return f"rl_{key_id}_{secret}"


def _digest(secret: str) -> bytes:
    # A secret of 256 random bits needs no slow hash: there is nothing to guess.
    return hashlib.sha256(secret.encode()).digest()


class Access:
    """Permissions. Without any key every caller may do everything, and the service listens on this machine only."""

    def __init__(self) -> None:
        self._keys: dict[str, StoredKey] = {}

    @property
    def open(self) -> bool:
        """Whether no key is needed."""
        return not self._keys

    async def refresh(self, store: Store) -> None:
        """Learn of keys that were made or deleted."""
        self._keys = {key.key_id: key for key in await store.keys()}

    def check(self, authorization: str | None, role: str) -> None:
        """`Unauthorized` or `Forbidden` unless the header carries a key of this role or a higher one."""
        if self.open:
            return
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise Unauthorized("a key is needed: Authorization: Bearer ...")
        prefix, _, rest = given.strip().partition("_")
        key_id, _, secret = rest.partition("_")
        stored = self._keys.get(key_id)
        # Compare in any case, so that time does not tell which ids exist.
        same = hmac.compare_digest(_digest(secret), stored.digest if stored else b"\0" * 32)
        if prefix != "rl" or stored is None or not same:
            raise Unauthorized("unknown key")
        if ROLES.index(stored.role) < ROLES.index(role):
            raise Forbidden(f"this needs the role {role}, the key has {stored.role}")


class Guard:
    """Checks every request: by key, and where there are no keys, by the address that it was sent to."""

    def __init__(self, access: Access, *, host: str) -> None:
        self._access = access
        self._hosts = _LOCAL_HOSTS | {host.encode(), f"[{host}]".encode()}
        self._known: set[bytes] = set()  # Host headers that were accepted, with their ports

    def check(self, headers: dict[bytes, bytes], role: str) -> None:
        """`Unauthorized` or `Forbidden` unless this caller may do what `role` may."""
        if self._access.open:
            # Another site's page could make a browser on this machine send requests; it cannot forge these two.
            host = headers.get(b"host", b"")
            if host not in self._known:
                if re.sub(rb":\d+$", b"", host) not in self._hosts:
                    raise Forbidden("without keys this service is reached under its own address only")
                if len(self._known) < 100:
                    self._known.add(host)
            if headers.get(b"sec-fetch-site") == b"cross-site":
                raise Forbidden("without keys this service refuses requests from other sites")
            return
        authorization = headers.get(b"authorization")
        self._access.check(authorization.decode("latin-1") if authorization else None, role)
