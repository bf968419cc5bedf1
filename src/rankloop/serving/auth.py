"""Who may call: API keys, kept hashed and compared in constant time, with the roles reader, writer and admin.

A store that never had a key is open to callers on this machine. With the first key a row says that keys are needed,
and it stays when the last key is deleted: only `rankloop keys open`, on the machine itself, takes it back.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import ipaddress
import re
import secrets

from rankloop.serving import permissions
from rankloop.serving.errors import Forbidden, Unauthorized
from rankloop.serving.permissions import EVERYTHING, ROLES, Permission
from rankloop.serving.rates import Rate
from rankloop.serving.stores.contract import Store, StoredKey

__all__ = [
    "ROLES",
    "Access",
    "Guard",
    "delete_key",
    "is_local",
    "make_key",
    "need_no_keys",
    "stored_keys",
]
_LOCAL_HOSTS = {b"localhost", b"127.0.0.1", b"[::1]"}
_STATE = "needs-keys"  # the row that says whether keys are needed: no key, its ID has a form that no key has
_NEEDED, _OPEN = "needed", "open"
_OWN_PAGES = (b"same-origin", b"none")
_GUESSES_PER_SECOND = 20.0  # wrong keys from one address


@functools.lru_cache(maxsize=1_000)  # asked with every request, of the same few addresses
def is_local(host: str) -> bool:
    """Whether only this machine can reach the address, or is there.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0"), is_local("::ffff:127.0.0.1")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


async def make_key(
    store: Store,
    *,
    role: str,
    at: int,
    note: str = "",
    rankers: list[str] | None = None,
    most_rankers: int = 0,
    rate: float = 0.0,
) -> str:
    """A new key. It is shown once, here: what is kept cannot be turned back into it.

    rankers: the names that it is for, or beginnings of names with a `*` at the end; all where there are none.
    most_rankers, rate: how many rankers there may be under these names, and requests a second; 0 for no quota.
    """
    permitted = permissions.permission(role, rankers or [], most_rankers, rate)
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    await _write_state(store, _NEEDED, at=at)  # first: there is no moment with a key and an open service
    await store.write_key(StoredKey(key_id, permissions.write(permitted), _digest(secret), at, note))
    return f"rl_{key_id}_{secret}"


async def delete_key(store: Store, key_id: str, *, at: int) -> bool:
    """Forget a key; whether it was there. Keys stay needed, also when it was the last."""
    if key_id == _STATE or all(key.key_id != key_id for key in await stored_keys(store)):
        return False
    await _write_state(store, _NEEDED, at=at)
    return await store.delete_key(key_id)


async def stored_keys(store: Store) -> list[StoredKey]:
    """All keys, without the row that says that they are needed."""
    return [key for key in await store.keys() if key.key_id != _STATE]


async def need_no_keys(store: Store, *, at: int) -> None:
    """Open the service to callers on this machine again; ValueError while there are keys."""
    if found := await stored_keys(store):
        raise ValueError(f"there are {len(found)} keys: delete them first, then no key is needed")
    await _write_state(store, _OPEN, at=at)


async def _write_state(store: Store, state: str, *, at: int) -> None:
    await store.write_key(StoredKey(_STATE, state, b"\0" * 32, at, "whether keys are needed"))


def _digest(secret: str) -> bytes:
    # A secret of 256 random bits needs no slow hash: there is nothing to guess.
    return hashlib.sha256(secret.encode()).digest()


class Access:
    """Permissions. Where no key was ever made, every caller on this machine may do everything."""

    def __init__(self) -> None:
        self._keys: dict[str, StoredKey] = {}
        self._permissions: dict[str, Permission] = {}
        self._needed = False

    @property
    def open(self) -> bool:
        """Whether no key is needed."""
        return not self._needed

    async def refresh(self, store: Store) -> None:
        """Learn of keys that were made or deleted."""
        found = {key.key_id: key for key in await store.keys()}
        state = found.pop(_STATE, None)
        self._keys = found
        self._permissions = {key_id: permissions.read(key.role) for key_id, key in found.items()}
        if found or (state is not None and state.role != _OPEN):
            self._needed = True
        elif state is not None:  # without the row it stays as it is: keys that vanish open nothing
            self._needed = False

    def check(
        self, authorization: str | None, role: str, ranker: str | None = None
    ) -> tuple[str, Permission]:
        """The ID of the key, and what it permits.

        `Unauthorized` or `Forbidden` unless the header carries one of this role or a higher, for this ranker.
        """
        if self.open:
            return "", EVERYTHING
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
        permitted = self._permissions[key_id]
        permitted.check(role, ranker)
        return key_id, permitted


def _authorization(headers: dict[bytes, bytes]) -> str:
    return headers.get(b"authorization", b"").decode("latin-1")


def _payer(permitted: Permission, key_id: str) -> str:
    """Whose rate counts: all keys for the same rankers share what they may ask for."""
    return ",".join(permitted.rankers) or key_id


class Guard:
    """Checks every request: by key, and where no keys are needed, by where it comes from and is sent to."""

    def __init__(self, access: Access, *, host: str, requests_per_second: float = 5_000.0) -> None:
        self._access = access
        self._local = is_local(host)
        self._hosts = _LOCAL_HOSTS | {host.encode(), f"[{host}]".encode()}
        self._known: set[bytes] = set()  # Host headers that were accepted, with their ports
        self._rate = Rate(requests_per_second)
        self._guesses = Rate(_GUESSES_PER_SECOND)

    def check(
        self, headers: dict[bytes, bytes], role: str, *, peer: str | None, ranker: str | None = None
    ) -> Permission:
        """What this caller, at the address `peer`, may do.

        `Unauthorized`, `Forbidden` or `RateLimited` unless that includes what needs this role, about this ranker.
        """
        if self._access.open:
            self._check_open(headers, peer)
            return EVERYTHING
        try:
            key_id, permitted = self._access.check(_authorization(headers), role, ranker)
        except Unauthorized:
            self._guesses.take(peer or "")
            raise
        self._rate.take(_payer(permitted, key_id), permitted.rate or None)
        return permitted

    def charge(self, headers: dict[bytes, bytes], caller: Permission, n: int) -> None:
        """Count `n` more requests of this caller, whom `check` has let in: what one request asks for many times."""
        if not self._access.open:
            key_id, _ = self._access.check(_authorization(headers), "reader")
            self._rate.charge(_payer(caller, key_id), n)

    def still_permits(self, headers: dict[bytes, bytes], role: str, ranker: str | None) -> bool:
        """Whether a caller whom `check` has let in would be let in now, as long as its answer is being sent."""
        if self._access.open:
            return True
        try:
            self._access.check(_authorization(headers), role, ranker)
        except (Unauthorized, Forbidden):
            return False
        return True

    def _check_open(self, headers: dict[bytes, bytes], peer: str | None) -> None:
        if not self._local:
            raise Unauthorized(
                "a key is needed, and there is none: `rankloop keys add` on the machine itself"
            )
        # The address of the peer is a fact; what the request says about itself is not.
        if peer is None or not is_local(peer):
            raise Forbidden("without keys this service answers callers on its own machine only")
        # A page from elsewhere, be it from another port of this machine, could make a browser here send requests; it
        # can forge none of these three.
        host = headers.get(b"host", b"")
        if host not in self._known:
            if re.sub(rb":\d{1,5}$", b"", host) not in self._hosts:
                raise Forbidden("without keys this service is reached under its own address only")
            if len(self._known) < 100:
                self._known.add(host)
        if headers.get(b"sec-fetch-site", b"none") not in _OWN_PAGES:
            raise Forbidden("without keys this service refuses requests from other sites")
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != host:
            raise Forbidden("without keys this service refuses requests from the pages of others")
