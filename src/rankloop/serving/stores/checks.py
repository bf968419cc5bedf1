"""Conformance of stores: does one keep the contract of `rankloop.serving.stores.contract`? For ours and for anyone's.

Each `check_*` takes a function that gives an unopened store on fresh, empty data. `check_store` runs them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from rankloop.serving.log.records import Entry, Kind
from rankloop.serving.stores.contract import Fenced, Missing, Snapshot, Store, StoredKey

MakeStore = Callable[[], Store]


class StoreBroken(AssertionError):
    """A contract is not kept."""


def check_store(make: MakeStore) -> None:
    """All rules for stores.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """
    for check in (
        check_rows_are_numbered,
        check_an_event_is_there_once,
        check_a_batch_is_whole,
        check_stories,
        check_clock,
        check_due,
        check_writers_at_once,
        check_snapshots,
        check_leases,
        check_keys,
    ):
        check(make)


def check_durable(make: MakeStore, again: Callable[[Store], Store]) -> None:
    """What was appended is there after closing and opening; `again` gives an unopened store on the same data.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    again : callable
        Makes an unopened store on the same data.
    """

    async def story() -> None:
        store = make()
        await store.open()
        await store.append([_config("a")], at=5)
        await store.append([_entry("a", "1"), _entry("a", "2")], at=5)
        epoch = await _epoch(store)
        await store.write_snapshot("a", _snapshot(3, epoch), keep=5)
        await store.close()
        other = again(store)
        await other.open()
        rows = await other.read("a", after=0, limit=10)
        _demand([row.event_id for row in rows] == ["a", "1", "2"], f"after reopening there is {rows}")
        _demand(await other.last_seq("a") == 3, "last_seq is lost by reopening")
        _demand(await other.rankers() == ["a"], "rankers are lost by reopening")
        _demand(await other.read_snapshot("a", 3) == _snapshot(3, epoch), "a snapshot is lost by reopening")
        (later,) = await other.append([_entry("a", "3")], at=1)
        _demand(later.row.seq == 4 and later.row.at == 5, f"seq and time go on after reopening, got {later}")
        await other.close()

    asyncio.run(story())


def check_rows_are_numbered(make: MakeStore) -> None:
    """`seq` counts from 1 without gaps for each ranker, time never falls, and reading gives what was written.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        await store.append([_config("a"), _config("b")], at=10)
        written = [_entry("a", "1"), _entry("b", "1"), _entry("a", "2", kind="feedback", decision="1")]
        appended = await store.append(written, at=7)
        _demand([one.row.seq for one in appended] == [2, 2, 3], f"seq must count from 1, got {appended}")
        _demand(all(one.row.at == 10 for one in appended), "time fell")
        _demand(await store.rankers() == ["a", "b"], f"rankers are {await store.rankers()}")
        rows = await store.read("a", after=0, limit=100)
        _demand([row.seq for row in rows] == [1, 2, 3], f"read gives {rows}")
        _demand(rows[1:] == [appended[0].row, appended[2].row], "read gives other rows than append")
        _demand(await store.read("a", after=1, limit=1) == rows[1:2], "after and limit are not kept")
        _demand(await store.read("a", after=3, limit=9) == [], "there is nothing after the end")
        _demand(await store.read("nobody", after=0, limit=9) == [], "an unknown ranker has no rows")
        _demand(await store.last_seq("a") == 3 and await store.last_seq("nobody") == 0, "last_seq is wrong")
        _demand(await store.find("b", "decision", "1") == appended[1].row, "find finds another row")
        _demand(await store.find("b", "feedback", "1") is None, "find finds what is not there")

    _play(make, story)


def check_an_event_is_there_once(make: MakeStore) -> None:
    """The same kind and id again gives the row that is there: in another batch, in the same, with another body.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        await store.append([_config("a"), _config("b")], at=1)
        (first,) = await store.append([_entry("a", "x", body=b"one")], at=2)
        twice = await store.append(
            [_entry("a", "y"), _entry("a", "x", body=b"two"), _entry("a", "z"), _entry("a", "z", body=b"no")],
            at=3,
        )
        _demand([one.new for one in twice] == [True, False, True, False], f"new is {twice}")
        _demand(twice[1].row == first.row, "a duplicate must give the row that is there")
        _demand(
            [one.row.seq for one in twice] == [3, 2, 4, 4], f"a duplicate must use up no seq, got {twice}"
        )
        (other,) = await store.append([_entry("b", "x")], at=4)
        (kind,) = await store.append([_entry("a", "x", kind="activate", decision="x")], at=4)
        _demand(other.new and kind.new, "ids are taken only within one ranker and one kind")
        rows = await store.read("a", after=0, limit=9)
        _demand([row.event_id for row in rows] == ["a", "x", "y", "z", "x"], f"the log is {rows}")

    _play(make, story)


def check_a_batch_is_whole(make: MakeStore) -> None:
    """A batch that cannot be written leaves nothing behind.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        await store.append([_config("a")], at=1)
        await _refused(store.append([_entry("a", "1"), _entry("nobody", "1")], at=2), Missing)
        _demand(await store.last_seq("a") == 1, "half of a refused batch was written")
        epoch = await _epoch(store)
        await _refused(store.append([_entry("a", "1")], at=2, epoch=epoch - 1), Fenced)
        (later,) = await store.append([_entry("a", "1")], at=2, epoch=epoch)
        _demand(later.new and later.row.seq == 2, f"a refused batch must use up no seq, got {later}")

    _play(make, story)


def check_stories(make: MakeStore) -> None:
    """All rows about a decision, in order, of this ranker only.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        await store.append([_config("a"), _config("b")], at=1)
        await store.append(
            [
                _entry("a", "early", kind="feedback", decision="d"),
                _entry("a", "d"),
                _entry("b", "d"),
                _entry("a", "d", kind="activate", decision="d"),
                _entry("a", "e"),
            ],
            at=1,
        )
        told = await store.stories("a", ["d", "e", "f"])
        _demand(
            {name: [row.seq for row in rows] for name, rows in told.items()}
            == {"d": [2, 3, 4], "e": [5], "f": []},
            f"stories are {told}",
        )

    _play(make, story)


def check_clock(make: MakeStore) -> None:
    """The time of a log never falls, and goes on at the same pace where the clock was set back.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        await store.append([_config("a")], at=1_000)
        await store.append([_config("b")], at=2_000)
        times = [await store.append([_entry("a", f"{at}")], at=at) for at in (9_000, 2_000, 3_000)]
        _demand(
            [one.row.at for (one,) in times] == [9_000, 9_000, 10_000],
            f"rows at 9000, set back to 2000, then 3000, have the times {[one.row.at for (one,) in times]}",
        )
        now = [await store.time(name, at=3_500) for name in "ab"]
        _demand(now == [10_500, 3_500], f"the clocks of the two logs are at {now}")

    _play(make, story)


def check_due(make: MakeStore) -> None:
    """Lists without an answer in time are found, and no others.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        await store.append([_config("a"), _config("b")], at=1)
        lists = ("open", "answered", "late", "expired", "early")
        await store.append([_entry("a", "0", kind="feedback", decision="early")], at=1)
        await store.append([_entry("a", name) for name in lists], at=1)
        await store.append([_entry("b", "1", kind="feedback", decision="open")], at=1)
        await store.append([_entry("a", "1", kind="feedback", decision="answered")], at=11)
        await store.append([_entry("a", "2", kind="feedback", decision="late")], at=12)
        await store.append([_entry("a", "3", kind="expire", decision="expired"), _entry("a", "new")], at=13)
        found = await store.due("a", after=0, before=13, allowed=10, limit=100)
        _demand(
            [(one.decision, one.has_feedback) for one in found.open]
            == [("open", False), ("late", True), ("early", True)],
            f"open are {found.open}",
        )
        _demand(
            (found.through, found.next_at) == (10, 13), f"searched through {found.through}, {found.next_at}"
        )
        part = await store.due("a", after=2, before=99, allowed=10, limit=2)
        _demand(
            ([one[0] for one in part.open], part.through) == ([3], 4), f"of two rows, open are {part.open}"
        )

    _play(make, story)


def check_writers_at_once(make: MakeStore) -> None:
    """Many appends at the same time: every event once, no gap.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        await store.append([_config("a")], at=1)

        async def writer(number: int) -> None:
            for i in range(10):
                await store.append(
                    [_entry("a", f"shared-{i}"), _entry("a", f"own-{number}-{i}")], at=10 * i + number
                )

        await asyncio.gather(*(writer(number) for number in range(5)))
        rows = await store.read("a", after=0, limit=1_000)
        _demand([row.seq for row in rows] == list(range(1, 62)), "there are gaps, or rows twice")
        _demand(len({row.event_id for row in rows}) == 61, "an event is there twice")
        _demand([row.at for row in rows] == sorted(row.at for row in rows), "time fell")

    _play(make, story)


def check_snapshots(make: MakeStore) -> None:
    """They come back as they were, the newest stay, and an old epoch writes none.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        await store.append([_config("a")], at=1)
        epoch = await _epoch(store)
        for seq in (1, 5, 3):
            await store.write_snapshot("a", _snapshot(seq, epoch), keep=2)
        listed = await store.snapshots("a")
        _demand([one.seq for one in listed] == [3, 5], f"the newest two are {listed}")
        _demand(all(one.state == b"" for one in listed), "a list of snapshots carries no states")
        _demand(await store.read_snapshot("a", 5) == _snapshot(5, epoch), "a snapshot came back changed")
        _demand(await store.read_snapshot("a", 1) is None, "an old snapshot is still there")
        await _refused(store.write_snapshot("a", _snapshot(9, epoch - 1), keep=2), Fenced)
        _demand([one.seq for one in await store.snapshots("a")] == [3, 5], "a fenced snapshot was written")

    _play(make, story)


def check_leases(make: MakeStore) -> None:
    """One holder at a time; a new holder has a larger epoch.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        first = await store.take_lease("one", seconds=10, now=100.0)
        _demand(first is not None, "a free lease was refused")
        _demand(await store.take_lease("two", seconds=10, now=109.0) is None, "a lease has two holders")
        _demand(await store.take_lease("one", seconds=10, now=109.0) == first, "a holder lost its epoch")
        second = await store.take_lease("two", seconds=10, now=119.5)
        _demand(second is not None and first is not None and second > first, f"epochs {first}, {second}")
        _demand(await store.take_lease("one", seconds=10, now=120.0) is None, "a lost lease was given back")
        third = await store.take_lease("one", seconds=10, now=20.0)  # the clock was set back
        _demand(
            third is not None and third > (second or 0), "a clock that was set back keeps the lease from all"
        )

    _play(make, story)


def check_keys(make: MakeStore) -> None:
    """API keys are kept and forgotten.

    Parameters
    ----------
    make : callable
        Makes a fresh, unopened store.
    """

    async def story(store: Store) -> None:
        key = StoredKey("one", "reader", b"\x00digest", 3, "for the dashboard")
        await store.write_key(key)
        _demand(await store.keys() == [key], f"keys are {await store.keys()}")
        _demand(await store.delete_key("one") and not await store.delete_key("one"), "delete_key tells wrong")
        _demand(await store.keys() == [], "a deleted key is still there")

    _play(make, story)


def _play(make: MakeStore, story: Callable[[Store], Awaitable[None]]) -> None:
    async def run() -> None:
        store = make()
        await store.open()
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(run())


def _demand(kept: bool, problem: str) -> None:
    if not kept:
        raise StoreBroken(problem)


async def _refused(call: Awaitable[object], with_: type[Exception]) -> None:
    try:
        await call
    except with_:
        return
    raise StoreBroken(f"{with_.__name__} was to be raised")


async def _epoch(store: Store) -> int:
    epoch = await store.take_lease("checks", seconds=1e6, now=0.0)
    if epoch is None:
        raise StoreBroken("a free lease was refused")
    return epoch


def _config(ranker: str) -> Entry:
    return Entry(ranker, "config", ranker, b"config", b"digest")


def _entry(
    ranker: str,
    event_id: str,
    *,
    kind: Kind = "decision",
    body: bytes = b"\x00body",
    decision: str | None = None,
) -> Entry:
    return Entry(ranker, kind, event_id, body, b"digest", decision)


def _snapshot(seq: int, epoch: int) -> Snapshot:
    return Snapshot(seq, 7, epoch, "code", "config", "hash", b"\x00state" * 100)
