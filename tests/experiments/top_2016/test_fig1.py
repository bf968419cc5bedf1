"""What section 6 of the 2016 paper asserts, at the size of the quick version; and the setting it is played in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rankloop import experiments
from rankloop.environments import QueryStream
from rankloop.experiments.top_2016 import setting
from rankloop.rankers import Uniform
from rankloop.simulation import play
from tests.experiments.quick import captions, judge


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quick version, run and judged once."""
    out = tmp_path_factory.mktemp("results")
    judge("top-2016-fig1", out)
    return out / "top-2016-fig1"


def test_every_claim_holds_and_breaks_under_its_mutation_and_captions_tell_what_is_shown(
    results: Path,
) -> None:
    rows = pl.read_parquet(results / "results.parquet")
    assert len(list(results.glob("*.png"))) == 4
    experiment = experiments.get("top-2016-fig1")
    told = captions(experiment, rows)
    hidden = {source.label for name, source in setting.SOURCES.items() if name not in set(rows["set"])}
    assert hidden
    assert not [label for label in hidden for text in told.values() if label in text]
    assert "steps are 10,000 times those at the right end" in told["epsilon"]
    fewer = rows.filter(pl.col("set") == "synthetic").with_columns(
        constants=pl.col("constants").replace("epsilon 1", "epsilon 0.1")
    )
    other = captions(experiment, fewer)
    assert "steps are 100 times those at the right end" in other["epsilon"]
    assert all(told[name] != other[name] for name in told if len(set(rows["set"])) > 1)


def test_without_real_data_the_synthetic_set_is_played_and_a_line_says_what_is_missing(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path / "nowhere"))
    assert setting.available() == ["synthetic"]
    experiment = experiments.get("top-2016-fig1")
    assert experiment.missing() is None
    played = pl.read_parquet(results / "results.parquet").filter(pl.col("set") == "synthetic")
    jobs = experiment.jobs(quick=True)
    assert {(job.name, job.seed) for job in jobs} == set(played.select("job", "seed").iter_rows())
    assert all(claim.holds for claim in experiment.claims(played, quick=True))
    (line,) = experiment.notes(played)
    assert line.startswith("Played on Synthetic; skipped MQ2008, real data missing: no ltr/mq2008 in ")
    assert "skipped MSLR fragment" in line
    assert "set RANKLOOP_DATA" in line


def test_the_order_of_smooth_dcg_depends_on_the_weights_over_epsilon_alone() -> None:
    train, _ = setting.parts("synthetic", 1)
    levels = []
    for epsilon, scale in ((1.0, 0.01), (0.01, 1e-6)):
        arguments = {"surrogate": "smooth_dcg", "k": 1, "epsilon": epsilon, "learning_rate": [scale, 2 / 3]}
        ranker = setting.make_ranker(arguments, train)
        levels.append(setting.play_on(ranker, train, rounds=2_000, seed=1).mean_value)
    assert levels[0] == pytest.approx(levels[1], abs=1e-6)


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
