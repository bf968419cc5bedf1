"""API keys and roles, and who is answered where there are no keys."""

from __future__ import annotations

import asyncio

import pytest

from rankloop.serving.admission import Forbidden, RateLimited, Unauthorized
from rankloop.serving.auth import ROLES, Access, Guard, Rate, delete_key, make_key, need_no_keys, stored_keys
from tests.serving.memory_store import MemoryStore


def _with_keys(*roles: str) -> tuple[Access, list[str], MemoryStore]:
    store, access = MemoryStore(), Access()

    async def prepare() -> list[str]:
        made = [await make_key(store, role=role, at=1, note="test") for role in roles]
        await access.refresh(store)
        return made

    return access, asyncio.run(prepare()), store


INCLUDED = {
    "reader": {"reader"},
    "events": {"events"},
    "writer": {"reader", "events", "writer"},
    "admin": {"reader", "events", "writer", "admin"},
}


@pytest.mark.parametrize("role", ROLES)
def test_a_key_may_do_what_its_role_includes(role: str) -> None:
    access, (key,), _ = _with_keys(role)
    for needed in ROLES:
        if needed in INCLUDED[role]:
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
    (kept,) = asyncio.run(stored_keys(store))
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


@pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:8000", b"[::1]:9", b"127.0.0.7:8000"])
def test_without_keys_only_the_own_address_is_answered(host: bytes) -> None:
    guard = Guard(Access(), host="127.0.0.7")
    guard.check({b"host": host}, "admin", peer="127.0.0.1")
    guard.check({b"host": host}, "admin", peer="127.0.0.1")  # remembered
    with pytest.raises(Forbidden, match="other sites"):
        guard.check({b"host": host, b"sec-fetch-site": b"cross-site"}, "reader", peer="127.0.0.1")
    with pytest.raises(Forbidden, match="other sites"):  # the same machine, another port
        guard.check({b"host": host, b"sec-fetch-site": b"same-site"}, "reader", peer="127.0.0.1")
    own = {b"host": host, b"sec-fetch-site": b"same-origin", b"origin": b"http://" + host}
    guard.check(own, "admin", peer="127.0.0.1")
    for origin in (b"http://localhost:1", b"https://evil.example", b"null", b"", b"\xff"):
        with pytest.raises(Forbidden, match="pages of others"):
            guard.check(own | {b"origin": origin}, "admin", peer="127.0.0.1")


@pytest.mark.parametrize(
    "host", [b"", b"evil.example", b"localhost.evil.example:80", b"127.0.0.8:8000", b"localhost:" + b"1" * 9]
)
def test_without_keys_another_name_is_refused(host: bytes) -> None:
    with pytest.raises(Forbidden, match="its own address"):
        Guard(Access(), host="127.0.0.7").check({b"host": host}, "reader", peer="127.0.0.1")


def test_with_keys_the_name_does_not_matter_and_the_key_does() -> None:
    access, (key,), _ = _with_keys("reader")
    guard = Guard(access, host="127.0.0.1")
    guard.check(
        {b"host": b"rank.example", b"authorization": f"Bearer {key}".encode()}, "reader", peer="127.0.0.1"
    )
    with pytest.raises(Unauthorized):
        guard.check({b"host": b"localhost"}, "reader", peer="127.0.0.1")


def test_deleting_the_last_key_opens_nothing() -> None:
    access, (key,), store = _with_keys("admin")

    async def forget() -> None:
        assert await delete_key(store, key.split("_")[1], at=2)
        assert await stored_keys(store) == []
        await access.refresh(store)

    asyncio.run(forget())
    started_later = Access()
    asyncio.run(started_later.refresh(store))
    for one in (access, started_later):
        assert not one.open
        for host in ("127.0.0.1", "0.0.0.0"):
            with pytest.raises(Unauthorized):
                Guard(one, host=host).check({b"host": b"localhost"}, "reader", peer="127.0.0.1")


def test_keys_that_vanish_from_the_store_open_nothing() -> None:
    access, (key,), store = _with_keys("admin")
    asyncio.run(store.delete_key("needs-keys"))
    asyncio.run(store.delete_key(key.split("_")[1]))
    asyncio.run(access.refresh(store))
    assert not access.open


def test_only_the_command_line_opens_it_again_and_not_while_there_are_keys() -> None:
    access, (key,), store = _with_keys("admin")
    with pytest.raises(ValueError, match="there are 1 keys"):
        asyncio.run(need_no_keys(store, at=2))
    asyncio.run(delete_key(store, key.split("_")[1], at=3))
    asyncio.run(need_no_keys(store, at=4))
    asyncio.run(access.refresh(store))
    assert access.open
    asyncio.run(make_key(store, role="reader", at=5))
    asyncio.run(access.refresh(store))
    assert not access.open


@pytest.mark.parametrize("peer", ["10.0.0.9", "192.168.1.2", "::2", None])
def test_without_keys_the_address_of_the_peer_counts_and_not_the_host_header(peer: str | None) -> None:
    guard = Guard(Access(), host="127.0.0.1")
    with pytest.raises(Forbidden, match="on its own machine"):
        guard.check({b"host": b"localhost"}, "admin", peer=peer)


def test_an_address_that_others_reach_is_never_open() -> None:
    guard = Guard(Access(), host="0.0.0.0")
    with pytest.raises(Unauthorized, match="there is none"):
        guard.check({b"host": b"localhost"}, "admin", peer="127.0.0.1")


def test_a_key_has_a_rate_of_its_own() -> None:
    access, keys, _ = _with_keys("reader", "reader")
    guard = Guard(access, host="127.0.0.1", requests_per_second=0.01)
    one, other = ({b"authorization": f"Bearer {key}".encode()} for key in keys)
    guard.check(one, "reader", peer="10.0.0.9")
    with pytest.raises(RateLimited) as refused:
        guard.check(one, "reader", peer="10.0.0.9")
    assert (refused.value.status, 90 < (refused.value.retry_after or 0) <= 100) == (429, True)
    guard.check(other, "reader", peer="10.0.0.9")


def test_guessing_keys_is_slowed_down() -> None:
    access, _, _ = _with_keys("reader")
    guard = Guard(access, host="127.0.0.1")
    guard._guesses = Rate(20.0, clock=lambda: 0.0)
    for _ in range(20):
        with pytest.raises(Unauthorized):
            guard.check({b"authorization": b"Bearer rl_a_b"}, "reader", peer="10.0.0.9")
    with pytest.raises(RateLimited):
        guard.check({b"authorization": b"Bearer rl_a_b"}, "reader", peer="10.0.0.9")


def test_batches_at_once_cannot_borrow_twice() -> None:
    """All were let in before the first was counted; what was used up meanwhile is refused, not owed."""
    seconds = [0.0]
    rate = Rate(10.0, clock=lambda: seconds[0])
    for _ in range(5):
        rate.take("a")
    rate.charge("a", 999)
    for _ in range(4):
        with pytest.raises(RateLimited) as refused:
            rate.charge("a", 999)
        assert refused.value.retry_after == 100
    seconds[0] = 99.3  # 5 were left and 999 taken: 994 are owed
    with pytest.raises(RateLimited):
        rate.charge("a", 1)
    seconds[0] = 99.45
    with pytest.raises(RateLimited):  # one is needed to be let in
        rate.take("a")
    seconds[0] = 100.0
    rate.take("a")


def test_a_flood_of_callers_frees_nobody_who_still_calls() -> None:
    rate = Rate(1.0, clock=lambda: 0.0)
    rate.take("guesser")
    for i in range(25_000):
        rate.take(f"address {i}")
        if i % 5_000 == 0:
            with pytest.raises(RateLimited):
                rate.take("guesser")
    assert len(rate._left) <= 10_000
