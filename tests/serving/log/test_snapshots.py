"""Snapshots: what they hold, and when they are refused."""

from __future__ import annotations

import msgspec
import pytest

from rankloop.serving.adapters import registry
from rankloop.serving.log import snapshots
from rankloop.serving.log.fingerprint import fingerprint
from tests.serving.service import answer, create, play, rank, running


def test_a_snapshot_comes_back_as_it_was() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(10):
                await rank(engine, f"d{i}")
                await answer(engine, f"d{i}")
            await answer(engine, "parked")
            fold = engine.rankers["unwind"].fold
            taken = snapshots.take(fold, epoch=1)
            assert (taken.seq, taken.code_hash) == (fold.applied, fingerprint(fold.config))
            assert taken.config_hash == registry.config_hash(fold.config)
            again = snapshots.revive(taken)
            assert again.state_hash() == fold.state_hash() == taken.state_hash
            assert again.estimates.report() == fold.estimates.report()
            assert (again.parked, again.counts, again.items) == (fold.parked, fold.counts, fold.items)

    play(story)


def test_a_snapshot_that_is_not_what_it_says_is_refused() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            taken = snapshots.take(engine.rankers["unwind"].fold, epoch=1)
            for change, words in [
                ({"state": b"\xc1"}, "cannot be read"),
                ({"seq": 5}, "another configuration"),
                ({"config_hash": "0" * 64}, "another configuration"),
                ({"state_hash": "0" * 64}, "another state"),
            ]:
                with pytest.raises(ValueError, match=words):
                    snapshots.revive(msgspec.structs.replace(taken, **change))

    play(story)
