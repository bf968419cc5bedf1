"""A trace as a frame, a figure and a file; and the fingerprint of the code that made it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rankloop
from rankloop import environments, rankers, simulation
from rankloop.extras import MissingExtra
from rankloop.simulation import Trace
from rankloop.simulation import trace as traces


@pytest.fixture(scope="module")
def trace() -> Trace:
    users = environments.named("gap-0.03")
    return simulation.play(rankers.FTRLPBM(n_items=10, n_positions=5), users, rounds=2_000, seed=4, points=40)


def test_a_line_says_what_it_is(trace: Trace) -> None:
    assert repr(trace).startswith("<Trace of FTRLPBM in PositionBased: 2,000 rounds, seed 4, mean clicks ")
    assert f"regret {trace.total_regret:,.4g}>" in repr(trace)
    assert "regret 201,234>" in repr(replace(trace, regret=np.full(40, 201_234.5)))
    unknown = replace(trace, regret=np.full(40, np.nan), provenance={})
    assert repr(unknown) == f"<Trace: 2,000 rounds, seed 4, mean clicks {trace.mean_value:.4g}>"


def test_a_trace_without_a_round_can_be_shown(trace: Trace) -> None:
    arrays = {name: getattr(trace, name)[:0] for name in ("rounds", "value", "total", "regret", "explored")}
    assert "no rounds yet" in repr(replace(trace, **arrays))
    with pytest.raises(ValueError, match="a recorded round"):
        replace(trace, **arrays).plot()


def test_as_a_frame(trace: Trace) -> None:
    frame = trace.to_polars()
    assert frame.columns == ["round", "value", "mean_value", "total", "regret", "explored"]
    assert frame["round"].to_list() == list(range(50, 2_001, 50))
    assert frame["mean_value"][-1] == trace.mean_value


def test_pandas_is_asked_for_in_words(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        trace.to_pandas()


def test_saved_and_read_again(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "run.parquet")
    read = Trace.load(tmp_path / "run.parquet")
    for name in ("rounds", "value", "total", "regret", "explored"):
        assert np.array_equal(getattr(read, name), getattr(trace, name))
        assert getattr(read, name).dtype == getattr(trace, name).dtype
    for name in ("measure", "is_loss", "seed", "seconds", "counters"):
        assert getattr(read, name) == getattr(trace, name)
    assert read.provenance["ranker"] == "FTRLPBM(n_items=10, n_positions=5)"
    assert read.provenance["environment"].startswith("PositionBased(")
    assert set(read.provenance) == {"ranker", "environment", "versions", "machine", "code", "made"}
    again = tmp_path / "again.parquet"
    replace(read, provenance=read.provenance | {"made": "long ago"}).save(again)
    assert Trace.load(again).provenance["made"] == "long ago"  # what made it, not what copied it


def test_an_unknown_regret_is_saved_as_such(trace: Trace, tmp_path: Path) -> None:
    unknown = replace(trace, regret=np.full(40, np.nan))
    unknown.save(tmp_path / "run.parquet")
    assert np.isnan(Trace.load(tmp_path / "run.parquet").regret).all()


def test_files_that_hold_no_trace(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no saved trace"):
        Trace.load(tmp_path / "none.parquet")
    for name, write in (
        ("text", lambda file: file.write_text("round,value\n1,2\n")),
        ("frame", pl.DataFrame({"round": [1]}).write_parquet),
    ):
        write(tmp_path / name)
        with pytest.raises(ValueError, match=f"path must be of a trace that rankloop saved, got .*{name}"):
            Trace.load(tmp_path / name)


def test_figures(trace: Trace) -> None:
    figure = trace.plot()
    (axes,) = figure.axes
    assert axes.get_lines()[0].get_ydata()[-1] == trace.total_regret
    assert axes.get_xscale() == "log"
    assert any("FTRLPBM in PositionBased" in text.get_text() for text in figure.texts)
    bare = trace.plot("value", log=False, titles=False)
    assert bare.axes[0].get_xscale() == "linear"
    assert not bare.texts
    unknown = replace(trace, regret=np.full(40, np.nan))
    assert "mean of all so far" in unknown.plot().axes[0].get_title(loc="left")
    with pytest.raises(ValueError, match="regret is not known"):
        unknown.plot("regret")
    with pytest.raises(ValueError, match="measure must be one of"):
        trace.plot("ndcg")


def test_arguments_of_any_length_fit_into_a_trace() -> None:
    users = environments.named("gap-0.03")
    ranker = rankers.Uniform(n_items=10, n_positions=5)
    ranker._given = {"n_items": list(range(10_000))}
    told = simulation.play(ranker, users, rounds=1, seed=1).provenance
    assert len(told["ranker"]) < 1_100


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    copy = tmp_path / "rankloop"
    shutil.copytree(
        Path(rankloop.__file__).parent, copy, ignore=lambda _, names: {"__pycache__"} & set(names)
    )
    monkeypatch.setattr(traces, "_PACKAGE", copy)
    traces.code_fingerprint.cache_clear()
    yield copy
    traces.code_fingerprint.cache_clear()


def fingerprint() -> str:
    traces.code_fingerprint.cache_clear()
    return traces.code_fingerprint()


def test_a_change_in_what_computes_changes_it(package: Path) -> None:
    folders = ("rankers", "kernels", "environments", "simulation")
    sources = [max((package / folder).glob("*.py")) for folder in folders]
    for source in (*sources, package / "experiments" / "pbm_2022" / "rankers.py"):
        before = fingerprint()
        source.write_text(source.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
        assert fingerprint() != before, source


def test_a_change_in_what_only_shows_or_has_a_version_does_not(package: Path) -> None:
    before = fingerprint()
    for source in ("experiments/pbm_2022/comparison.py", "experiments/harness/report.py", "cli/__init__.py"):
        (package / source).write_text("# changed\n", encoding="utf-8")
    assert fingerprint() == before


def test_a_new_file_and_a_new_name_change_it(package: Path) -> None:
    before = fingerprint()
    new = package / "rankers" / "another.py"
    new.write_text("", encoding="utf-8")
    added = fingerprint()
    new.rename(package / "rankers" / "renamed.py")
    assert len({before, added, fingerprint()}) == 3


def test_versions_name_the_software_and_the_machine_is_not_named() -> None:
    assert traces.versions()["rankloop"] == rankloop.__version__
    assert {"python", "numpy", "numba", "polars", "matplotlib"} <= set(traces.versions())
    assert traces.machine().endswith(" cores")
