"""Checks of a store's log: its clock, its digests, what is about a list, and which lists nobody answered in time."""

from __future__ import annotations

import msgspec

from rankloop.serving.log.digests import beginning, link_of
from rankloop.serving.stores.check_tools import MakeStore, a_config, an_entry, demand, play, refused
from rankloop.serving.stores.contract import Diverged, Store


def check_clock(make: MakeStore) -> None:
    """The time of a log never falls, and goes on at the same pace where the clock was set back."""

    async def story(store: Store) -> None:
        await store.append([a_config("a")], at=1_000)
        await store.append([a_config("b")], at=2_000)
        times = [await store.append([an_entry("a", f"{at}")], at=at) for at in (9_000, 2_000, 3_000)]
        demand(
            [one.row.at for (one,) in times] == [9_000, 9_000, 10_000],
            f"rows at 9000, set back to 2000, then 3000, have the times {[one.row.at for (one,) in times]}",
        )
        now = [await store.time(name, at=3_500) for name in "ab"]
        demand(now == [10_500, 3_500], f"the clocks of the two logs are at {now}")

    play(make, story)


def check_due(make: MakeStore) -> None:
    """Lists without an answer in time are found, and no others."""

    async def story(store: Store) -> None:
        await store.append([a_config("a"), a_config("b")], at=1)
        lists = ("open", "answered", "late", "expired", "early")
        await store.append([an_entry("a", "0", kind="feedback", decision="early")], at=1)
        await store.append([an_entry("a", name) for name in lists], at=1)
        await store.append([an_entry("b", "1", kind="feedback", decision="open")], at=1)
        await store.append([an_entry("a", "1", kind="feedback", decision="answered")], at=11)
        await store.append([an_entry("a", "2", kind="feedback", decision="late")], at=12)
        await store.append(
            [an_entry("a", "3", kind="expire", decision="expired"), an_entry("a", "new")], at=13
        )
        found = await store.due("a", after=0, before=13, allowed=10, limit=100)
        demand(
            [(one.decision, one.has_feedback) for one in found.open]
            == [("open", False), ("late", True), ("early", True)],
            f"open are {found.open}",
        )
        demand(
            (found.through, found.next_at) == (10, 13), f"searched through {found.through}, {found.next_at}"
        )
        part = await store.due("a", after=2, before=99, allowed=10, limit=2)
        demand(
            ([one[0] for one in part.open], part.through) == ([3], 4), f"of two rows, open are {part.open}"
        )

    play(make, story)


def check_rows_are_linked(make: MakeStore) -> None:
    """Every row has the digest that chains it to the one before, however it is read."""

    async def story(store: Store) -> None:
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
            await refused(store.append([bad], at=9), Diverged)
        (last,) = await store.append([good], at=9)
        demand(last.new and last.row.seq == 4, "a decision from a state of this log was refused")

    play(make, story)


def check_stories(make: MakeStore) -> None:
    """All rows about a decision, in order, of this ranker only."""

    async def story(store: Store) -> None:
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
        told = await store.stories("a", ["d", "e", "f"])
        demand(
            {name: [row.seq for row in rows] for name, rows in told.items()}
            == {"d": [2, 3, 4], "e": [5], "f": []},
            f"stories are {told}",
        )

    play(make, story)
