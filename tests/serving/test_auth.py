"""API keys and roles, and who is answered where there are no keys."""

from __future__ import annotations

import asyncio

import pytest

from rankloop.serving.auth import ROLES, Access, Guard, make_key
from rankloop.serving.errors import Forbidden, Unauthorized
from rankloop.serving.stores.memory import MemoryStore


def _with_keys(*roles: str) -> tuple[Access, list[str], MemoryStore]:
    store, access = MemoryStore(), Access()

    async def prepare() -> list[str]:
        made = [await make_key(store, role=role, at=1, note="test") for role in roles]
        await access.refresh(store)
        return made

    return access, asyncio.run(prepare()), store


@pytest.mark.parametrize("role", ROLES)
def test_a_key_may_do_what_its_role_and_lower_ones_may(role: str) -> None:
    access, (key,), _ = _with_keys(role)
    for needed in ROLES:
        if ROLES.index(needed) <= ROLES.index(role):
            access.check(f"Bearer {key}", needed)
        else:
            with pytest.raises(Forbidden, match=f"needs the role {needed}, the key has {role}"):
                access.check(f"Bearer {key}", needed)


def test_everything_but_a_whole_key_is_refused() -> None:
    access, (key, other), _ = _with_keys("admin", "admin")
    swapped = key[: key.rindex("_") + 1] + other[other.rindex("_") + 1 :]
    for header in (
        None,
        "",
        key,
        "Bearer",
        f"Basic {key}",
        f"Bearer {key}x",
        f"Bearer {key[:-1]}",
        f"Bearer x{key}",
        "Bearer rl__",
        f"Bearer {swapped}" if swapped not in (key, other) else None,
    ):
        with pytest.raises(Unauthorized):
            access.check(header, "reader")


def test_the_secret_is_not_kept() -> None:
    _, (key,), store = _with_keys("writer")
    (kept,) = asyncio.run(store.keys())
    secret = key.split("_", 2)[2]
    assert secret.encode() not in kept.digest
    assert secret not in repr(kept)
    assert len(kept.digest) == 32


def test_a_deleted_key_is_refused_after_the_next_refresh() -> None:
    access, (key, _), store = _with_keys("reader", "admin")

    async def forget() -> None:
        assert await store.delete_key(key.split("_")[1])
        await access.refresh(store)

    access.check(f"Bearer {key}", "reader")
    asyncio.run(forget())
    with pytest.raises(Unauthorized, match="unknown key"):
        access.check(f"Bearer {key}", "reader")


def test_an_unknown_role_cannot_be_given() -> None:
    with pytest.raises(ValueError, match="role must be one of"):
        asyncio.run(make_key(MemoryStore(), role="owner", at=1))


@pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:8000", b"[::1]:9", b"10.0.0.7:8000"])
def test_without_keys_only_the_own_address_is_answered(host: bytes) -> None:
    guard = Guard(Access(), host="10.0.0.7")
    guard.check({b"host": host}, "admin")
    guard.check({b"host": host}, "admin")  # remembered
    with pytest.raises(Forbidden, match="other sites"):
        guard.check({b"host": host, b"sec-fetch-site": b"cross-site"}, "reader")


@pytest.mark.parametrize("host", [b"", b"evil.example", b"localhost.evil.example:80", b"10.0.0.8:8000"])
def test_without_keys_another_name_is_refused(host: bytes) -> None:
    with pytest.raises(Forbidden, match="its own address"):
        Guard(Access(), host="10.0.0.7").check({b"host": host}, "reader")


def test_with_keys_the_name_does_not_matter_and_the_key_does() -> None:
    access, (key,), _ = _with_keys("reader")
    guard = Guard(access, host="127.0.0.1")
    guard.check({b"host": b"rank.example", b"authorization": f"Bearer {key}".encode()}, "reader")
    with pytest.raises(Unauthorized):
        guard.check({b"host": b"localhost"}, "reader")
