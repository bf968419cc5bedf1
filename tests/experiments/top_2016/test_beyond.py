"""The rule by which the learners beyond the 2016 paper are tuned."""

from __future__ import annotations

import polars as pl

from rankloop.experiments.top_2016 import beyond


def test_the_setting_that_is_judged_did_best_when_tried_and_is_judged_with_fresh_seeds() -> None:
    size = beyond.Size(rounds=2_000, tried_runs=1, judged_runs=1, parts=range(1, 2), fewer=True)
    rows = beyond.run(beyond.job(dataset="synthetic", method="KL, HT", part=1, size=size))
    tried, judged = (rows.filter(pl.col("kind") == kind) for kind in ("tried", "judged"))
    assert len(tried) == 3
    best = tried.sort("average", descending=True).row(0, named=True)
    (chosen,) = judged.rows(named=True)
    assert chosen["learning_rate"] == best["learning_rate"]
    assert chosen["average"] != best["average"]


def test_every_learner_but_the_references_hears_two_labels() -> None:
    for method, (fixed, _) in beyond.METHODS.items():
        if method.startswith("ListNet"):
            assert "k" not in fixed
        else:
            assert fixed["k"] == (1_000 if method.endswith(beyond.EVERY) else 2)
