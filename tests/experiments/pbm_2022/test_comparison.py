"""The comparisons of 2022: the worlds they are played in, who plays, and what is skipped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rankloop import experiments
from rankloop.experiments import runs
from rankloop.experiments.experiment import Job
from rankloop.experiments.pbm_2022 import comparison, table1
from rankloop.experiments.pbm_2022.setting import STOCHASTIC


def test_panels_are_those_of_the_paper() -> None:
    full = experiments.get("pbm-2022-fig1").jobs(quick=False)
    assert len(full) == 6 * 6 * 10 + 2 * 2 * 10  # twice as many of PMED and PBM-PIE where users stay
    settings = {(job.settings["panel"], job.settings["source"], job.settings["change"]) for job in full}
    assert ("a", "gap 0.03", "stochastic") in settings
    assert ("c", "gap 0.03", "all reversed") in settings
    assert ("e", "gap 0.01", "halves exchanged") in settings
    assert {job.settings["rounds"] for job in full} == {1_000_000}
    people = comparison.world_of("gap 0.03", comparison.REVERSING, phase=10)
    np.testing.assert_allclose(people.clicks[1, 4, 9], 0.95)  # the best item belongs last in the even phases
    exchanged = comparison.world_of("gap 0.01", comparison.EXCHANGING, phase=10)
    np.testing.assert_allclose(
        exchanged.clicks[1, 0, :], [0.90, 0.89, 0.88, 0.87, 0.86, 0.95, 0.94, 0.93, 0.92, 0.91]
    )


def test_without_the_log_its_panels_are_skipped_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", "/nowhere")
    assert comparison.why_not_fitted().startswith("real data missing: no clicks/yandex_wscd/")
    assert [panel.name for panel in comparison.figure_2_panels()] == ["a", "b", "c"]
    (line,) = experiments.get("pbm-2022-fig2").notes(pl.DataFrame({"panel": ["a"]}))
    assert "are skipped: real data missing" in line


def test_jobs_that_run_at_the_same_time_do_not_share_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_fitted", lambda: (np.linspace(0.5, 0.1, 10), np.linspace(1.0, 0.2, 5)))
    for source in ("gap 0.03", comparison.FITTED):
        one, other = (comparison.world_of(source, STOCHASTIC, phase=10) for _ in range(2))
        assert one.state.t is not other.state.t


def test_bounds_are_those_of_the_table() -> None:
    rates = table1.orders("gap 0.03", 10**6)
    log_T = np.log(1e6)
    assert rates[comparison.FTRL] == pytest.approx((5 * 10 / (0.05 * 0.03) * log_T, 5 * np.sqrt(1e7)))
    assert rates[comparison.PIE][0] == pytest.approx(10 / (0.2 * 0.03) * log_T)
    assert rates[comparison.TOP_RANK][0] == pytest.approx(5 * 10 / 0.03 * log_T)
    assert rates[comparison.MW][1] == pytest.approx(5 * np.sqrt(1e7 * np.log(10)))
    # gap 0.03: (1/5 - 0) is not the smallest gap of the examinations, 1/4 - 1/5 is
    assert 90 < table1.least_constant("gap 0.03") < 115


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of somebody else's, with a ranker that needs no horizon."""
    source = tmp_path / "somebodys" / "rankers.py"
    source.parent.mkdir()
    (source.parent / "__init__.py").touch()
    source.write_text("from rankloop.rankers import FTRLPBM\n\n\nclass Mine(FTRLPBM):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield source
    for name in ("somebodys", "somebodys.rankers"):
        sys.modules.pop(name, None)


def test_a_ranker_of_another_package_plays_beside_the_six(foreign: Path) -> None:
    name = "somebodys.rankers:Mine"
    experiment = experiments.get("pbm-2022-fig1", also=[name])
    ours = experiments.get("pbm-2022-fig1").jobs(quick=True)
    assert [job for job in experiment.jobs(quick=True) if job.settings["algorithm"] != name] == ours
    rows = []
    for job in experiment.jobs(quick=True):
        if job.settings["panel"] == "a":
            short = dict(job.settings) | {"rounds": 400, "phase": 100}
            found = experiment.run(Job(name=job.name, seed=job.seed, settings=short))
            rows.append(found.select(pl.lit(job.seed).alias("seed"), pl.all()))
    results = pl.concat(rows)
    table = experiment.summary(results)
    assert table is not None
    theirs, own = (
        table.filter(pl.col("algorithm") == each).drop("algorithm") for each in (name, comparison.FTRL)
    )
    assert theirs.equals(own)
    panels = [comparison.FIGURE_1[0]] * 3  # a row of them
    (figure,) = comparison.draw_panels(results, panels, title="t", caption="c", also=[name]).values()
    assert any(text.get_text().startswith("Mine ") for text in figure.texts)


def test_its_rows_are_made_again_when_its_code_changes(foreign: Path) -> None:
    def identities() -> set[str]:
        made = comparison.jobs(comparison.FIGURE_1[:1], quick=True, also=["somebodys.rankers:Mine"])
        return {job.identity(experiment="pbm-2022-fig1", version=1) for job in made}

    before = identities()
    foreign.write_text(foreign.read_text() + "# changed\n")
    assert len(before - identities()) == comparison.QUICK_RUNS


def test_who_cannot_play_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match=r"ranker 'nobody\.rankers:Mine' cannot be imported"):
        experiments.get("pbm-2022-fig1", also=["nobody.rankers:Mine"])
    with pytest.raises(ValueError, match="'top1-2015-fig1' compares no further rankers"):
        experiments.get("top1-2015-fig1", also=["Uniform"])


def test_standard_errors_are_over_runs() -> None:
    rows = pl.DataFrame(
        {
            "panel": ["a"] * 4,
            "algorithm": [comparison.MW] * 4,
            "seed": [1, 1, 2, 2],
            "round": [5, 10, 5, 10],
            "reward": [0.0, 1.0, 0.0, 3.0],
            "ideal": [4.0] * 4,
        }
    )
    found = comparison.run_ends(rows, "a", comparison.MW, column="reward")
    assert found.tolist() == [1.0, 3.0]
    assert runs.mean_and_error(found) == pytest.approx((2.0, 1.0))
    last = comparison.curve(rows, "a", comparison.MW).row(-1, named=True)
    assert (last["low"], last["mean"], last["high"]) == pytest.approx((1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match=r"no rows with {'panel': 'b'"):
        comparison.run_ends(rows, "b", comparison.MW)
