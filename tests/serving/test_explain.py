"""Why an item stood where it stood: the row of the list and the state of the ranker, put into words."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.serving.errors import NotFound
from rankloop.serving.explain import explain_answer
from tests.serving.service import ITEMS, answer, create, play, rank, running


def test_a_list_of_fixed_items() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="TopFTRL", items=ITEMS)
            for i in range(40):
                shown = await rank(engine, f"d{i}")
                await answer(engine, f"d{i}", relevance=[float(shown.items[0] == "tea")])
            served = engine.rankers["unwind"]
            shown = await rank(engine, "some", exclude=["walk"], pinned={2: "nap"})
            told = await explain_answer(served, "some")
            assert (told.as_of, told.model_seq) == (served.fold.applied, served.fold.applied - 1)
            assert [one.item for one in told.items] == shown.items
            assert [one.reason for one in told.items] == ["ranker", "ranker", "pinned", "ranker"]
            assert told.items[2].words == "The request pinned it here."
            current = [name for name in served.fold.current() if name not in {"walk", "nap"}]
            for one in told.items:
                if one.reason == "ranker":
                    assert one.place == current.index(one.item)
                    assert one.propensity is not None
                    assert f"a chance of {one.propensity:.1%}" in one.words
                    assert f"{one.place + 1}" in one.words
            best = next(one for one in told.items if one.item == "tea")
            assert best.words.startswith("The ranker now holds it 1st best of 3.")
            with pytest.raises(NotFound, match="no decision 'nobody'"):
                await explain_answer(served, "nobody")

    play(story)


@pytest.mark.parametrize("algorithm", ["ListNet", "LinTSPBM", "RTopKF"])
def test_a_list_with_features(algorithm: str) -> None:
    async def story() -> None:
        rng = np.random.default_rng(1)
        async with running() as engine:
            await create(engine, "docs", algorithm=algorithm, parameters={"n_features": 4})
            served = engine.rankers["docs"]
            ranker = served.fold.ranker
            for i in range(12):
                features = rng.random((5, 4)) / 4
                shown = await rank(engine, f"d{i}", "docs", features=features.tolist())
                length = ranker.feedback.length(5)
                values = [float(features[int(name), 2] > 0.12) for name in shown.items][:length]
                await answer(
                    engine, f"d{i}", name="docs", **{"relevance": None, ranker.feedback.kind: values}
                )
            told = await explain_answer(served, "d11")
            weights = ranker.weights_now()
            assert weights is not None
            for one in told.items:
                row = features.astype(np.float32)[int(one.item)].astype(float)
                assert one.score == pytest.approx(float(row @ weights))
                parts = np.abs(row * weights)
                assert [part.feature for part in one.features] == np.argsort(-parts, kind="stable")[
                    :3
                ].tolist()
                assert one.features[0].part == pytest.approx(
                    row[one.features[0].feature] * weights[one.features[0].feature]
                )
                assert f"Feature {one.features[0].feature} weighs most" in one.words

    play(story)
