"""A standby does not fold what its owner folds: it goes on from snapshots, and folds the rest when it takes over."""

from __future__ import annotations

from rankloop.serving.limits import Limits
from rankloop.serving.log.verify import verify
from tests.serving.owners.test_routing import Cluster, cluster
from tests.serving.service import play

NAME = "r0"


async def answered(made: Cluster, at: str, first: int, lists: int) -> None:
    for i in range(first, first + lists):
        assert (await made.post(at, f"/{NAME}/rank", {"decision_id": f"d{i}"})).status_code == 200
        body = {"decision_id": f"d{i}", "relevance": [1.0]}
        assert (await made.post(at, f"/{NAME}/feedback", body)).json()["learnt"]


def test_a_standby_goes_on_from_snapshots_and_takes_over() -> None:
    async def story() -> None:
        async with cluster() as made:
            owner = made.owner(NAME, "a")
            standby = next(
                name for name, one in made.engines.items() if name != owner and NAME in one.rankers
            )
            served = made.engines[standby].rankers[NAME]
            made.engines[standby].roster.limits = Limits(standby_rows=8)
            before = served.fold.applied
            await answered(made, owner, 0, 3)
            await made.tick()
            assert served.fold.applied == before  # six rows behind
            await answered(made, owner, 3, 2)
            await made.tick()
            assert served.fold.applied == before  # ten, and no snapshot
            taken = await made.engines[owner].snapshot(NAME)
            await answered(made, owner, 5, 1)
            await made.tick()
            assert (served.fold.applied, served.snapshot_seq) == (taken, taken)
            await answered(made, owner, 6, 12)
            await made.tick()
            assert served.fold.applied == taken + 26  # too many to wait for a snapshot
            await answered(made, owner, 18, 2)
            made.network.down.add(owner)
            third = next(name for name in made.engines if name not in (owner, standby))
            await answered(made, third, 20, 2)
            verdict = await verify(made.store, NAME)
            assert verdict.holds, verdict.problems
            served = made.engines[standby].rankers[NAME]
            assert served.fold.state_hash() == verdict.state_hash
            assert verdict.learnt == 22

    play(story)
