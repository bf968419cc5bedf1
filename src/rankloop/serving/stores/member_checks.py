"""Conformance of stores that processes share: who is there is told alike to all, and who has gone writes nothing."""

from __future__ import annotations

from rankloop.serving.stores.check_tools import MakeStore, a_config, an_entry, demand, play, refused
from rankloop.serving.stores.contract import Fenced, Member, Store


def check_members(make: MakeStore) -> None:
    """Members come, stay as long as their lease, and go; only those who are there write."""
    if not make().shared:
        return
    one, two = Member("one", "http://one:1"), Member("two", "http://two:2")

    async def story(store: Store) -> None:
        await store.append([a_config("a")], at=1)
        demand(await store.members(now=100.0) == [], "a new store has members")
        first = await store.announce(*one, seconds=10, now=100.0)
        demand(first.members == [one], f"alone, and told of {first.members}")
        second = await store.announce(*two, seconds=10, now=105.0)
        demand(second.members == [one, two], f"two are there, and told of {second.members}")
        demand(first.epoch != second.epoch, "two members have one epoch")
        demand(await store.members(now=105.0) == [one, two], "asking tells otherwise than joining")
        kept = await store.announce(*one, seconds=10, now=109.0)
        demand(kept.epoch == first.epoch, "a member lost its epoch")
        for epoch in (first.epoch, second.epoch):
            await store.append([an_entry("a", f"e{epoch}")], at=109_000, epoch=epoch)

        # The second one sleeps past its lease; the first one notices, and takes over.
        alone = await store.announce(*one, seconds=10, now=118.0)
        demand(alone.members == [one], f"one has gone, and told of {alone.members}")
        await refused(store.append([an_entry("a", "late")], at=118_000, epoch=second.epoch), Fenced)
        again = await store.announce(*two, seconds=10, now=119.0)
        demand(again.members == [one, two] and again.epoch > second.epoch, f"it came back as {again}")
        await store.append([an_entry("a", "after")], at=119_000, epoch=again.epoch)

        await store.withdraw("two")
        demand(await store.members(now=119.0) == [one], "who withdrew is still there")
        await store.announce(*two, seconds=10, now=119.0)
        back = await store.announce(*one, seconds=10, now=20.0)  # the clock was set back
        demand(back.members == [one], "a lease from before the clock was set back holds for ever")

    play(make, story)
