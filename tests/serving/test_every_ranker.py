"""Every ranker that learns online can be served: it ranks, learns, survives a snapshot, and its log adds up."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.serving.admission import RequestError
from rankloop.serving.api import ItemsRequest
from rankloop.serving.registry import has_items, served
from tests.serving.service import INSTEAD, ITEMS, adds_up, answer, create, play, rank, running


@pytest.mark.parametrize("algorithm", sorted(served()))
def test_it_can_be_served(algorithm: str) -> None:
    async def story() -> None:
        rng = np.random.default_rng(1)
        own = has_items(algorithm)
        async with running() as engine:
            given = {"items": ITEMS} if own else {}
            parameters = INSTEAD.get(algorithm, {} if own else {"n_features": 3})
            await create(engine, "any", algorithm=algorithm, parameters=parameters, **given)
            fold = engine.rankers["any"].fold
            for i in range(40):
                features = None if own else (rng.random((6, 3)) / 3).tolist()
                shown = await rank(engine, f"d{i}", "any", features=features)
                n = fold.ranker.feedback.length(len(shown.items))
                values = rng.integers(0, 2, n).astype(float).tolist()
                told = await answer(
                    engine, f"d{i}", name="any", **{"relevance": None, fold.ranker.feedback.kind: values}
                )
                assert (told.status, told.learnt) == ("accepted", True)
                if i == 20:
                    await engine.snapshot("any")
            assert fold.rounds == 40
            assert fold.estimates.report()["value"]
            await adds_up(engine, "any")
            if not own:
                before = fold.state_hash()
                with pytest.raises(RequestError, match="retire must name items that are there"):
                    await engine.change_items("any", ItemsRequest(add=["swim"], retire=["tea"]))
                assert fold.state_hash() == before  # refused, and nothing changed

    play(story)


@pytest.mark.parametrize("algorithm", sorted(INSTEAD))
def test_one_that_wants_a_horizon_says_what_to_give_instead(algorithm: str) -> None:
    async def story() -> None:
        async with running() as engine:
            with pytest.raises(RequestError, match=r"horizon must be .* where"):
                await create(engine, "any", algorithm=algorithm, items=ITEMS)

    play(story)


def test_one_that_cannot_do_without_a_horizon_is_not_served() -> None:
    assert "PBMPIE" not in served()
