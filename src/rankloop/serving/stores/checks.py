"""Conformance of stores: does one keep the contract of `rankloop.serving.stores.contract`? For ours and for anyone's.

Each `check_*` takes a function that gives an unopened store on fresh, empty data. `check_store` runs them all.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable

import msgspec

from rankloop.serving.log.digests import beginning, link_of, seal
from rankloop.serving.log.records import ABOUT_LISTS, KINDS, Entry, Kind, Row
from rankloop.serving.stores import contract
from rankloop.serving.stores.contract import Store

__all__ = ["MakeStore", "StoreBroken", "check_durable", "check_store"]

MakeStore = Callable[[], Store]


class StoreBroken(AssertionError):
    """A contract is not kept."""


def _on_a_fresh_store(check: Callable[[Store], Awaitable[None]]) -> Callable[[MakeStore], None]:
    @functools.wraps(check)
    def run(make: MakeStore) -> None:
        async def opened() -> None:
            store = make()
            await store.open()
            try:
                await check(store)
            finally:
                await store.close()

        asyncio.run(opened())

    return run


def demand(kept: bool, problem: str) -> None:
    """`StoreBroken` unless it is kept."""
    if not kept:
        raise StoreBroken(problem)


async def refused(call: Awaitable[object], with_: type[Exception]) -> None:
    """`StoreBroken` unless the call raises that."""
    try:
        await call
    except with_:
        return
    raise StoreBroken(f"{with_.__name__} was to be raised")


async def lease_epoch(store: Store) -> int:
    """The epoch of a lease on ranker a that lasts for the whole check."""
    epochs = await store.take_leases("checks", ["a"], seconds=1e6, now=0.0)
    if "a" not in epochs:
        raise StoreBroken("a free lease was refused")
    return epochs["a"]


def a_config(ranker: str) -> Entry:
    """The entry that makes a ranker."""
    return Entry(ranker, "config", ranker, b"config", b"digest")


def an_entry(
    ranker: str,
    event_id: str,
    *,
    kind: Kind = "decision",
    body: bytes = b"\x00body",
    decision: str | None = None,
) -> Entry:
    """Any other entry."""
    return Entry(ranker, kind, event_id, body, b"digest", decision)


def a_snapshot(seq: int, epoch: int, head: contract.Head) -> contract.Snapshot:
    """A snapshot at this end of a log."""
    return contract.Snapshot(seq, 7, epoch, "code", "config", "hash", b"\x00state" * 100, head.link)


def unsealed(snapshot: contract.Snapshot) -> contract.Snapshot:
    """The snapshot as it was before a store sealed it."""
    return msgspec.structs.replace(snapshot, seal=b"")


def check_store(make: MakeStore) -> None:
    """All rules for stores; `make` makes a fresh, unopened one."""
    for check in (
        check_rows_are_numbered,
        check_an_event_is_there_once,
        check_a_batch_is_whole,
        check_stories,
        check_clock,
        check_due,
        check_rows_are_linked,
        check_writers_at_once,
        check_snapshots,
        check_leases,
        check_unattended,
        check_lists_from_before_a_change,
        check_keys,
        check_creating,
    ):
        check(make)


def check_durable(make: MakeStore, again: Callable[[Store], Store]) -> None:
    """What was appended is there after closing and opening.

    `make` makes a fresh, unopened store, and `again` an unopened one on the same data.
    """

    async def story() -> None:
        store = make()
        await store.open()
        await store.append([a_config("a")], at=5)
        await store.append([an_entry("a", "1"), an_entry("a", "2")], at=5)
        epoch = await lease_epoch(store)
        taken = a_snapshot(3, epoch, await store.head("a"))
        await store.write_snapshot("a", taken, keep=5)
        timeline = store.timeline
        await store.close()
        other = again(store)
        await other.open()
        rows = await other.read("a", after=0, limit=10)
        demand([row.event_id for row in rows] == ["a", "1", "2"], f"after reopening there is {rows}")
        demand(await other.last_seq("a") == 3, "last_seq is lost by reopening")
        demand(await other.rankers() == ["a"], "rankers are lost by reopening")
        there = await other.read_snapshot("a", 3)
        demand(there is not None and unsealed(there) == taken, "a snapshot is lost by reopening")
        demand(other.timeline == timeline != "", "the identity of the store changed by reopening")
        demand(rows[2].link == (await other.head("a")).link, "the last link is lost by reopening")
        (later,) = await other.append([an_entry("a", "3")], at=1)
        demand(later.row.seq == 4 and later.row.at == 5, f"seq and time go on after reopening, got {later}")
        demand(later.row.before == rows[2].link, "links go on after reopening")
        mark = await other.acknowledged("a")
        demand(mark in (None, await other.head("a")), f"the mark of the newest row is {mark}")
        await other.close()

    asyncio.run(story())


@_on_a_fresh_store
async def check_rows_are_numbered(store: Store) -> None:
    """`seq` counts from 1 without gaps for each ranker, time never falls, and reading gives what was written."""
    await store.append([a_config("a"), a_config("b")], at=10)
    written = [an_entry("a", "1"), an_entry("b", "1"), an_entry("a", "2", kind="feedback", decision="1")]
    appended = await store.append(written, at=7)
    demand([one.row.seq for one in appended] == [2, 2, 3], f"seq must count from 1, got {appended}")
    demand(all(one.row.at == 10 for one in appended), "time fell")
    demand(await store.rankers() == ["a", "b"], f"rankers are {await store.rankers()}")
    rows = await store.read("a", after=0, limit=100)
    demand([row.seq for row in rows] == [1, 2, 3], f"read gives {rows}")
    demand(rows[1:] == [appended[0].row, appended[2].row], "read gives other rows than append")
    demand(await store.read("a", after=1, limit=1) == rows[1:2], "after and limit are not kept")
    demand(await store.read("a", after=3, limit=9) == [], "there is nothing after the end")
    demand(await store.read("nobody", after=0, limit=9) == [], "an unknown ranker has no rows")
    demand(await store.last_seq("a") == 3 and await store.last_seq("nobody") == 0, "last_seq is wrong")
    demand(await store.find("b", "decision", "1") == appended[1].row, "find finds another row")
    demand(await store.find("b", "feedback", "1") is None, "find finds what is not there")


@_on_a_fresh_store
async def check_an_event_is_there_once(store: Store) -> None:
    """The same kind and id again gives the row that is there: in another batch, in the same, with another body."""
    await store.append([a_config("a"), a_config("b")], at=1)
    (first,) = await store.append([an_entry("a", "x", body=b"one")], at=2)
    twice = await store.append(
        [
            an_entry("a", "y"),
            an_entry("a", "x", body=b"two"),
            an_entry("a", "z"),
            an_entry("a", "z", body=b"no"),
        ],
        at=3,
    )
    demand([one.new for one in twice] == [True, False, True, False], f"new is {twice}")
    demand(twice[1].row == first.row, "a duplicate must give the row that is there")
    demand([one.row.seq for one in twice] == [3, 2, 4, 4], f"a duplicate must use up no seq, got {twice}")
    (other,) = await store.append([an_entry("b", "x")], at=4)
    (kind,) = await store.append([an_entry("a", "x", kind="activate", decision="x")], at=4)
    demand(other.new and kind.new, "ids are taken only within one ranker and one kind")
    rows = await store.read("a", after=0, limit=9)
    demand([row.event_id for row in rows] == ["a", "x", "y", "z", "x"], f"the log is {rows}")


@_on_a_fresh_store
async def check_a_batch_is_whole(store: Store) -> None:
    """A batch that cannot be written leaves nothing behind."""
    await store.append([a_config("a")], at=1)
    await refused(store.append([an_entry("a", "1"), an_entry("nobody", "1")], at=2), contract.Missing)
    demand(await store.last_seq("a") == 1, "half of a refused batch was written")
    epoch = await lease_epoch(store)
    await refused(store.append([an_entry("a", "1")], at=2, epoch=epoch - 1), contract.Fenced)
    (later,) = await store.append([an_entry("a", "1")], at=2, epoch=epoch)
    demand(later.new and later.row.seq == 2, f"a refused batch must use up no seq, got {later}")


@_on_a_fresh_store
async def check_writers_at_once(store: Store) -> None:
    """Many appends at the same time: every event once, no gap."""
    await store.append([a_config("a")], at=1)

    async def writer(number: int) -> None:
        for i in range(10):
            await store.append(
                [an_entry("a", f"shared-{i}"), an_entry("a", f"own-{number}-{i}")], at=10 * i + number
            )

    await asyncio.gather(*(writer(number) for number in range(5)))
    rows = await store.read("a", after=0, limit=1_000)
    demand([row.seq for row in rows] == list(range(1, 62)), "there are gaps, or rows twice")
    demand(len({row.event_id for row in rows}) == 61, "an event is there twice")
    demand([row.at for row in rows] == sorted(row.at for row in rows), "time fell")


@_on_a_fresh_store
async def check_snapshots(store: Store) -> None:
    """They come back as they were, the newest stay, and an old epoch writes none."""
    await store.append([a_config("a")], at=1)
    await store.append([an_entry("a", str(i)) for i in range(9)], at=1)
    epoch = await lease_epoch(store)
    taken = {
        row.seq: a_snapshot(row.seq, epoch, contract.Head(row.seq, row.link))
        for row in await store.read("a", after=0, limit=20)
    }
    for seq in (1, 5, 3):
        await store.write_snapshot("a", taken[seq], keep=2)
    listed = await store.snapshots("a")
    demand([one.seq for one in listed] == [3, 5], f"the newest two are {listed}")
    demand(all(one.state == b"" for one in listed), "a list of snapshots carries no states")
    there = await store.read_snapshot("a", 5)
    demand(there is not None and unsealed(there) == taken[5], "a snapshot came back changed")
    demand(there is not None and there.seal == seal("a", taken[5]), "a snapshot is not sealed")
    demand(await store.read_snapshot("a", 1) is None, "an old snapshot is still there")
    old = msgspec.structs.replace(taken[9], epoch=epoch - 1)
    await refused(store.write_snapshot("a", old, keep=2), contract.Fenced)
    other = msgspec.structs.replace(taken[9], link=taken[8].link)
    await refused(store.write_snapshot("a", other, keep=2), contract.Diverged)
    beyond = msgspec.structs.replace(taken[9], seq=11)
    await refused(store.write_snapshot("a", beyond, keep=2), contract.Diverged)
    demand([one.seq for one in await store.snapshots("a")] == [3, 5], "a refused snapshot was written")


@_on_a_fresh_store
async def check_leases(store: Store) -> None:
    """Each ranker has one holder at a time; a new holder has a larger epoch, and the old one writes nothing."""
    await store.append([a_config("a"), a_config("b")], at=100_000)

    async def take(holder: str, now: float, **more: bool) -> int | None:
        return (await store.take_leases(holder, ["a"], seconds=10, now=now, **more)).get("a")

    first = await take("one", 100.0)
    demand(first is not None, "a free lease was refused")
    demand(await take("one", 109.0) == first, "a holder lost its epoch")
    demand(await store.take_leases("one", [], seconds=10, now=109.0) == {}, "unasked for, and held")
    if store.shared:
        demand(await take("two", 109.0) is None, "a lease has two holders")
        both = await store.take_leases("two", ["a", "b"], seconds=10, now=109.0)
        demand(list(both) == ["b"], f"a is held and b is free: got {both}")
    second = await take("two", 119.5)
    demand(second is not None and first is not None and second > first, f"epochs {first}, {second}")
    await refused(store.append([an_entry("a", "late")], at=119_500, epoch=first), contract.Fenced)
    await store.append([an_entry("a", "in time")], at=119_500, epoch=second)
    if not store.shared:
        return
    demand(await take("one", 120.0) is None, "a lost lease was given back")
    third = await take("one", 120.0, at_once=True)
    demand(third is not None and third > (second or 0), "a lease could not be taken over")
    fourth = await take("two", 20.0)  # the clock was set back
    demand(fourth is not None and fourth > (third or 0), "a clock that was set back keeps it from all")


@_on_a_fresh_store
async def check_unattended(store: Store) -> None:
    """Rankers that nobody looks after are told of where they have rows that nobody has seen, or lists that are due."""
    if not store.shared:
        return

    async def waiting(now: float) -> list[str]:
        return await store.unattended(seconds=10, now=now)

    await store.append([a_config("a"), a_config("b")], at=100_000)
    demand(await waiting(105.0) == [], "a ranker that was just made is left to who made it")
    demand(await waiting(111.0) == ["a", "b"], "nobody looks after two rankers")
    rest = await store.unattended(seconds=10, now=111.0, besides=["a"])
    demand(rest == ["b"], f"a is not wanted, and told of {rest}")
    await store.take_leases("one", ["a", "b"], seconds=10, now=111.0)
    demand(await waiting(130.0) == [], "a lease that has just run out is left to who can be asked")
    demand(await waiting(132.0) == ["a", "b"], "the holder has gone")
    await store.take_leases("one", ["a", "b"], seconds=10, now=132.0)
    await store.let_go("two", [contract.Left("a", 1, None)], now=133.0)
    demand(await store.take_leases("two", ["a"], seconds=10, now=134.0) == {}, "another gave a lease back")
    await store.let_go("one", [contract.Left("a", 1, None), contract.Left("b", 1, 100.0)], now=134.0)
    demand(await waiting(200.0) == [], "nothing is new, and nothing is due")
    demand(await waiting(234.5) == ["b"], "a list is due")
    await store.append([an_entry("a", "1")], at=234_500)
    demand(await waiting(234.5) == ["a", "b"], "there is a new row")
    taken = await store.take_leases("two", ["a"], seconds=10, now=234.5)
    demand("a" in taken and await waiting(235.0) == ["b"], "it is looked after")


@_on_a_fresh_store
async def check_creating(store: Store) -> None:
    """Where processes share a store, one at a time creates rankers."""
    if not store.shared:
        return
    inside: list[int] = []

    async def create() -> None:
        async with store.creating():
            inside.append(1)
            await asyncio.sleep(0.01)
            demand(inside == [1], "two processes create rankers at once")
            inside.clear()

    await asyncio.gather(*(create() for _ in range(3)))


@_on_a_fresh_store
async def check_lists_from_before_a_change(store: Store) -> None:
    """Where processes share a store, a list that was drawn before its ranker was changed is refused after that."""
    if not store.shared:
        return
    (made,) = await store.append([a_config("a")], at=1)
    drawn = 0

    async def rank(state: contract.Head) -> Row:
        nonlocal drawn
        drawn += 1
        entry = msgspec.structs.replace(an_entry("a", f"d{drawn}"), drawn_from=(state.seq, state.link))
        return (await store.append([entry], at=2))[0].row

    state = contract.Head(made.row.seq, made.row.link)
    for kind in KINDS[1:]:
        (other,) = await store.append([an_entry("a", f"other {kind}", kind=kind)], at=2)
        if kind in ABOUT_LISTS:
            await rank(state)
        else:
            await refused(rank(state), contract.Stale)
            state = contract.Head(other.row.seq, other.row.link)
            listed = await rank(state)
    again = msgspec.structs.replace(an_entry("a", listed.event_id), drawn_from=(made.row.seq, made.row.link))
    (there,) = await store.append([again], at=3)
    demand(not there.new, "a list that is there was drawn again")


@_on_a_fresh_store
async def check_keys(store: Store) -> None:
    """API keys are kept and forgotten."""
    key = contract.StoredKey("one", "reader", b"\x00digest", 3, "for the dashboard")
    await store.write_key(key)
    demand(await store.keys() == [key], f"keys are {await store.keys()}")
    demand(await store.delete_key("one") and not await store.delete_key("one"), "delete_key tells wrong")
    demand(await store.keys() == [], "a deleted key is still there")


@_on_a_fresh_store
async def check_clock(store: Store) -> None:
    """The time of a log never falls, and goes on at the same pace where the clock was set back."""
    await store.append([a_config("a")], at=1_000)
    await store.append([a_config("b")], at=2_000)
    times = [await store.append([an_entry("a", f"{at}")], at=at) for at in (9_000, 2_000, 3_000)]
    demand(
        [one.row.at for (one,) in times] == [9_000, 9_000, 10_000],
        f"rows at 9000, set back to 2000, then 3000, have the times {[one.row.at for (one,) in times]}",
    )
    now = [await store.time(name, at=3_500) for name in "ab"]
    demand(now == [10_500, 3_500], f"the clocks of the two logs are at {now}")


@_on_a_fresh_store
async def check_due(store: Store) -> None:
    """Lists without an answer in time are found, and no others."""
    await store.append([a_config("a"), a_config("b")], at=1)
    lists = ("open", "answered", "late", "expired", "early")
    await store.append([an_entry("a", "0", kind="feedback", decision="early")], at=1)
    await store.append([an_entry("a", name) for name in lists], at=1)
    await store.append([an_entry("b", "1", kind="feedback", decision="open")], at=1)
    await store.append([an_entry("a", "1", kind="feedback", decision="answered")], at=11)
    await store.append([an_entry("a", "2", kind="feedback", decision="late")], at=12)
    await store.append([an_entry("a", "3", kind="expire", decision="expired"), an_entry("a", "new")], at=13)
    found = await store.due("a", after=0, before=13, allowed=10, limit=100)
    demand(
        [(one.decision, one.has_feedback) for one in found.open]
        == [("open", False), ("late", True), ("early", True)],
        f"open are {found.open}",
    )
    demand((found.through, found.next_at) == (10, 13), f"searched through {found.through}, {found.next_at}")
    part = await store.due("a", after=2, before=99, allowed=10, limit=2)
    demand(([one[0] for one in part.open], part.through) == ([3], 4), f"of two rows, open are {part.open}")


@_on_a_fresh_store
async def check_rows_are_linked(store: Store) -> None:
    """Every row has the digest that chains it to the one before, however it is read."""
    await store.append([a_config("a"), a_config("b")], at=1)
    await store.append([an_entry("b", "x"), an_entry("a", "x")], at=7)
    written = await store.append(
        [an_entry("a", "é", kind="feedback", decision="x"), an_entry("a", "x")], at=9
    )
    rows = await store.read("a", after=0, limit=9)
    before = beginning(store.timeline, "a")
    for row in rows:
        demand(row.before == before, f"row {row.seq} does not follow the row before it")
        demand(row.link == link_of(row, before), f"row {row.seq} has another link than its content")
        before = row.link
    demand(await store.head("a") == (3, before), "head is not the last row")
    demand([one.row for one in written] == [rows[2], rows[1]], "append tells other links than read")
    demand((await store.stories("a", ["x"]))["x"] == rows[1:], "stories tell other links than read")
    demand(await store.find("a", "config", "a") == rows[0], "find tells other links than read")
    demand(await store.rows_of("a", "feedback") == rows[2:], "rows_of tells other rows than read")
    demand(await store.rows_of("b", "feedback") == [], "rows_of tells rows of another ranker")
    demand(await store.problems() == [], f"a fresh store has problems: {await store.problems()}")
    good = msgspec.structs.replace(an_entry("a", "z"), drawn_from=(2, rows[1].link))
    bad = msgspec.structs.replace(an_entry("a", "z"), drawn_from=(2, rows[0].link))
    if store.shared:
        await refused(store.append([bad], at=9), contract.Diverged)
    (last,) = await store.append([good], at=9)
    demand(last.new and last.row.seq == 4, "a decision from a state of this log was refused")


@_on_a_fresh_store
async def check_stories(store: Store) -> None:
    """All rows about a decision, in order, of this ranker only."""
    await store.append([a_config("a"), a_config("b")], at=1)
    await store.append(
        [
            an_entry("a", "early", kind="feedback", decision="d"),
            an_entry("a", "d"),
            an_entry("b", "d"),
            an_entry("a", "d", kind="activate", decision="d"),
            an_entry("a", "e"),
        ],
        at=1,
    )
    await store.append([an_entry("a", "nobody", kind="feedback", decision="f")], at=1)
    stories = await store.stories("a", ["d", "e", "f"])
    demand(
        {name: [row.seq for row in rows] for name, rows in stories.items()}
        == {"d": [2, 3, 4], "e": [5], "f": []},
        f"stories are {stories}",
    )
