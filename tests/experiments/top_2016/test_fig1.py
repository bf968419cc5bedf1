"""What section 6 of the 2016 paper asserts, at the size of the quick version; and the setting it is played in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rankloop import experiments
from rankloop.environments import QueryStream
from rankloop.experiments.harness.reproduce import reproduce
from rankloop.experiments.top_2016 import setting
from rankloop.rankers import Uniform
from rankloop.simulation import play


def test_every_claim_holds(tmp_path: Path) -> None:
    verdict = reproduce(experiments.get("top-2016-fig1"), out=tmp_path, quick=True)
    assert not [f"{claim.text}: {claim.measured}" for claim in verdict.claims if not claim.holds]
    assert len(verdict.claims) >= 8
    assert len(list((tmp_path / "top-2016-fig1").glob("*.png"))) == 4


def test_without_real_data_the_synthetic_set_is_played_and_a_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path / "nowhere"))
    assert setting.available() == ["synthetic"]
    assert experiments.get("top-2016-fig1").missing() is None
    verdict = reproduce(experiments.get("top-2016-fig1"), out=tmp_path, quick=True)
    assert verdict.holds
    line = verdict.claims[0]
    assert line.text == "Played on Synthetic"
    assert line.measured.startswith("skipped MQ2008, real data missing: no ltr/mq2008 in ")
    assert "skipped MSLR fragment" in line.measured
    assert "set RANKLOOP_DATA" in line.measured


def test_over_five_runs_every_query_is_held_out_once_and_never_learnt_from() -> None:
    held_out: list[str] = []
    for seed in setting.SEEDS:
        train, test = setting.parts("synthetic", seed)
        assert not set(train.query_ids) & set(test.query_ids)
        assert train.n_queries + test.n_queries == 500
        held_out += test.query_ids
    assert sorted(held_out) == sorted(setting.queries("synthetic").query_ids)
    assert np.linalg.norm(setting.queries("synthetic").features, axis=1).max() <= 1.0


def test_the_worth_of_a_random_order_is_what_random_orders_are_worth() -> None:
    stream = QueryStream(setting.parts("synthetic", 1)[1], measure=setting.MEASURE)
    played = play(Uniform(), stream, rounds=40_000, seed=1, progress=False).mean_value
    assert setting.random_values(stream).mean() == pytest.approx(played, abs=0.003)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="got 'letor'"):
        setting.queries("letor")
