"""Who may call, and how often: API keys, kept hashed and compared in constant time, with a role, rankers and quotas.

A store that never had a key is open to callers on this machine. With the first key a row says that keys are needed,
and it stays when the last key is deleted: only `rankloop keys open`, on the machine itself, takes it back.

What a key permits is kept as one text, which begins with the role: `writer`, or `admin acme.* rankers=20 rate=100`.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import ipaddress
import math
import re
import secrets
import time
from collections.abc import Callable, Collection

import msgspec

from rankloop.base import one_of
from rankloop.serving.admission import Busy, Forbidden, RateLimited, Unauthorized
from rankloop.serving.stores.contract import Store, StoredKey

# What each role includes. `events` is for where feedback comes from: it reports, and neither reads nor ranks.
_INCLUDES = {
    "reader": ("reader",),
    "events": ("events",),
    "writer": ("reader", "events", "writer"),
    "admin": ("reader", "events", "writer", "admin"),
}
ROLES = tuple(_INCLUDES)
_LOCAL_HOSTS = {b"localhost", b"127.0.0.1", b"[::1]"}
_STATE = "needs-keys"  # the row that says whether keys are needed: no key, its ID has a form that no key has
_NEEDED, _OPEN = "needed", "open"
_OWN_PAGES = (b"same-origin", b"none")
KEY_IN_ADDRESS = b"rankloop-key-in-address"  # a header that says where the key stood
_GUESSES_PER_SECOND = 20.0  # wrong keys from one address
_MOST_CALLERS = 10_000  # whose rates are remembered


class Permission(msgspec.Struct, frozen=True):
    """A role; names of rankers, or beginnings of names that end in `*`, none for all; quotas, 0 for none.

    payer: whose rate its requests count for: all keys for the same rankers share one.
    """

    role: str
    rankers: tuple[str, ...] = ()
    most_rankers: int = 0
    rate: float = 0.0  # requests a second, instead of the service's own limit
    payer: str = ""

    def covers(self, ranker: str) -> bool:
        """Whether it is for this ranker.

        >>> mine = Permission("writer", ("acme.*", "news"))
        >>> mine.covers("acme.home"), mine.covers("news"), mine.covers("newsletter"), mine.covers("acme")
        (True, True, False, False)
        """
        return not self.rankers or any(
            ranker == one or (one.endswith("*") and ranker.startswith(one[:-1])) for one in self.rankers
        )

    def check(self, role: str, ranker: str | None) -> None:
        """`Forbidden` unless it allows what needs this role, about this ranker, or about all where that is None."""
        if role not in _INCLUDES[self.role]:
            raise Forbidden(f"this needs the role {role}, the key has {self.role}")
        if ranker is not None and not self.covers(ranker):
            raise Forbidden(f"this key is for {', '.join(self.rankers)} only")

    def check_new(self, ranker: str, there: set[str]) -> None:
        """`Forbidden` or `Busy` unless its holder may create a ranker of this name, beside those that are there."""
        self.check("admin", ranker)
        mine = sum(map(self.covers, there))
        if self.most_rankers and ranker not in there and mine >= self.most_rankers:
            raise Busy(f"limit reached: {self.most_rankers:,} rankers with this key")


EVERYTHING = Permission("admin")


def write(permission: Permission) -> str:
    """As it is kept.

    >>> write(Permission("admin", ("acme.*",), most_rankers=20, rate=100.0))
    'admin acme.* rankers=20 rate=100'
    """
    parts = [permission.role]
    if permission.rankers:
        parts.append(",".join(permission.rankers))
    if permission.most_rankers:
        parts.append(f"rankers={permission.most_rankers}")
    if permission.rate:
        parts.append(f"rate={permission.rate:g}")
    return " ".join(parts)


def read(text: str) -> Permission:
    """What `write` wrote; a key that this code cannot read permits nothing.

    >>> read("events acme.*,news rate=20")
    Permission(role='events', rankers=('acme.*', 'news'), most_rankers=0, rate=20.0, payer='')
    >>> read("superuser").covers("news")
    False
    """
    role, *rest = text.split(" ")
    rankers: tuple[str, ...] = ()
    given: dict[str, str] = {}
    for part in rest:
        name, equals, value = part.partition("=")
        if equals:
            given[name] = value
        else:
            rankers = tuple(part.split(","))
    try:
        one_of("role", role, ROLES)
        most, rate = int(given.pop("rankers", 0)), float(given.pop("rate", 0.0))
        if given:
            raise ValueError(f"unknown: {', '.join(given)}")
    except ValueError:
        return Permission("reader", ("",))
    return Permission(role, rankers, most, rate)


def permission(role: str, rankers: list[str], most_rankers: int, rate: float) -> Permission:
    """The permission of a new key; ValueError where something about it cannot be meant."""
    one_of("role", role, ROLES)
    for name in rankers:
        if not name or set(name) & set(" ,=") or "*" in name[:-1]:
            raise ValueError(
                f"rankers must be names, or beginnings of names with a * at the end, got {name!r}"
            )
    if most_rankers < 0:
        raise ValueError(f"most_rankers must be 0 or more, got {most_rankers}")
    if not 0 <= rate < 1e9:
        raise ValueError(f"rate must be 0 or more, got {rate}")
    return Permission(role, tuple(rankers), most_rankers, rate)


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
    permitted = permission(role, rankers or [], most_rankers, rate)
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    await _write_state(store, _NEEDED, at=at)  # first: there is no moment with a key and an open service
    await store.write_key(StoredKey(key_id, write(permitted), _digest(secret), at, note))
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
        return not self._needed

    async def refresh(self, store: Store) -> None:
        found = {key.key_id: key for key in await store.keys()}
        state = found.pop(_STATE, None)
        self._keys = found
        self._permissions = {}
        for key_id, key in found.items():
            permitted = read(key.role)
            payer = ",".join(permitted.rankers) or key_id
            self._permissions[key_id] = msgspec.structs.replace(permitted, payer=payer)
        if found or (state is not None and state.role != _OPEN):
            self._needed = True
        elif state is not None:  # without the row it stays as it is: keys that vanish open nothing
            self._needed = False

    def check(self, authorization: str | None, role: str, ranker: str | None = None) -> Permission:
        """What the key in the header permits.

        `Unauthorized` or `Forbidden` unless there is one whose role includes this one, for this ranker.
        """
        if self.open:
            return EVERYTHING
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
        return permitted


class Rate:
    """So many a second for each caller, and as many at once: a bucket that fills evenly and holds a second's worth.

    >>> seconds = iter([0.0, 0.0, 0.0, 0.5])
    >>> rate = Rate(2, clock=lambda: next(seconds))
    >>> rate.take("a"), rate.take("a")
    (None, None)
    >>> rate.take("a")
    Traceback (most recent call last):
    ...
    rankloop.serving.admission.RateLimited: limit reached: 2 requests a second
    >>> rate.take("a")
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self._clock = clock
        # Of each caller how many may come, and when that was so; who came last is at the end.
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, per_second: float = 0.0) -> None:
        """Count one; `RateLimited` where it is one too many, with the rate of this caller where it has its own."""
        self._count(caller, per_second, 1.0, at_least=1.0)

    def charge(self, caller: str, n: float, per_second: float = 0.0) -> None:
        """Count `n` more of a caller who was let in, and must wait longer for its next.

        `RateLimited` where others of the same caller, that were let in at the same time, have used it up meanwhile.
        """
        self._count(caller, per_second, n, at_least=0.0)

    def _count(self, caller: str, per_second: float, n: float, *, at_least: float) -> None:
        now, rate = self._clock(), per_second or self.per_second
        most = max(1.0, rate)
        left, then = self._left.pop(caller, (most, now))
        left = min(most, left + (now - then) * rate)
        enough = left >= at_least
        if len(self._left) >= _MOST_CALLERS:
            del self._left[next(iter(self._left))]
        self._left[caller] = (left - n if enough else left), now
        if not enough:
            raise RateLimited(
                f"limit reached: {rate:g} requests a second",
                retry_after=max(1, math.ceil((1 - left) / rate)),
            )


class Guard:
    """Checks every request: by key, and where no keys are needed, by where it comes from and is sent to.

    origins: of the pages of others that may use the service, such as ``https://shop.example``.
    """

    def __init__(
        self,
        access: Access,
        *,
        host: str,
        requests_per_second: float = 5_000.0,
        origins: Collection[str] = (),
    ) -> None:
        self._access = access
        self.origins = frozenset(one.encode() for one in checked_origins(origins))
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
            permitted = self._access.check(_authorization(headers), role, ranker)
        except Unauthorized:
            self._guesses.take(peer or "")
            raise
        if KEY_IN_ADDRESS in headers:
            self._check_address(headers, permitted)
        self._rate.take(permitted.payer, permitted.rate)
        return permitted

    def _check_address(self, headers: dict[bytes, bytes], permitted: Permission) -> None:
        """A key in an address is read by many: it may report events only, and where origins are named, from those."""
        if permitted.role != "events":
            raise Forbidden(
                f"a key in an address may report events only, this one has the role {permitted.role}"
            )
        origin = headers.get(b"origin")
        if self.origins and origin is not None and origin not in self.origins:
            raise Forbidden("this service takes events from the pages of named origins only: --allow-origin")

    def charge(self, caller: Permission, n: int) -> None:
        """Count `n` more requests of a caller whom `check` has let in: what one request asks for many times."""
        if caller.payer:
            self._rate.charge(caller.payer, n, caller.rate)

    def still_permits(self, headers: dict[bytes, bytes], role: str, ranker: str | None) -> bool:
        """Whether a caller whom `check` has let in would be let in now, as long as its answer is being sent."""
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
        origin = headers.get(b"origin")
        if origin in self.origins:
            return
        if headers.get(b"sec-fetch-site", b"none") not in _OWN_PAGES:
            raise Forbidden("without keys this service refuses requests from other sites")
        if origin is not None and origin.partition(b"://")[2] != host:
            raise Forbidden("without keys this service refuses requests from the pages of others")


def checked_origins(origins: Collection[str]) -> Collection[str]:
    """The same; ValueError where one is not as browsers write it.

    >>> checked_origins(["https://shop.example", "http://localhost:3000"])
    ['https://shop.example', 'http://localhost:3000']
    """
    for one in origins:
        if not re.fullmatch(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:\d{1,5})?", one):
            raise ValueError(
                f"origin must be as browsers write it, such as https://shop.example, got {one!r}"
            )
    return origins


def _authorization(headers: dict[bytes, bytes]) -> str:
    return headers.get(b"authorization", b"").decode("latin-1")
