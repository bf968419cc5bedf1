"""Surrogate regret of the 2016 paper: how it is measured, and the quick version of the experiment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rankloop import experiments, surrogates
from rankloop.experiments.harness.reproduce import reproduce
from rankloop.experiments.top_2016 import surrogate_regret as measured


def test_every_claim_holds(tmp_path: Path) -> None:
    verdict = reproduce(experiments.get("top-2016-regret"), out=tmp_path, quick=True)
    broken = [f"{claim.text}: {claim.measured}" for claim in verdict.claims if not claim.holds]
    assert not broken
    assert (tmp_path / "top-2016-regret" / "surrogate-regret.png").exists()


@pytest.mark.parametrize("surrogate", measured.SCALES)
def test_no_weights_near_by_or_far_away_are_better_than_the_best(surrogate: str) -> None:
    rng = np.random.default_rng(1)
    best = measured._best_pairs() if surrogate == "ranksvm" else measured._best_smooth(surrogate)
    least = measured.least_loss(surrogate)
    assert measured.loss(surrogate, best) == pytest.approx(least)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            assert measured.loss(surrogate, best + size * rng.normal(size=len(best))) >= least - 1e-9


@pytest.mark.parametrize("surrogate", measured.SCALES)
def test_the_loss_of_random_scores_is_its_closed_form(surrogate: str) -> None:
    rng = np.random.default_rng(2)
    phi, made = surrogates.get(surrogate), measured.queries()
    drawn = [
        float(phi.value(rng.random(len(R)), R))
        for _ in range(30)
        for R in (made.query(i)[1] for i in range(made.n_queries))
    ]
    assert np.mean(drawn) == pytest.approx(
        measured.random_loss(surrogate), abs=4 * np.std(drawn) / np.sqrt(len(drawn))
    )
