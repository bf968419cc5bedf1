"""The search for arguments: it finds what is known to be best, goes on where it was stopped, and says what is wrong."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
import pytest

from rankloop import environments, rankers, simulation
from rankloop.extras import MissingExtra
from rankloop.ranges import Between, OneOf, Whole
from rankloop.simulation import runs
from rankloop.simulation.tune import FINAL
from tests.examples import of_ranker
from tests.simulation.dial import Dial, world
from tests.simulation.interrupt import interrupted

SMALL: dict[str, Any] = {"rounds": 60, "settings": 8, "final_runs": 3, "seed": 5}


@pytest.mark.parametrize("measure", ["dcg", "sum_loss"])
def test_it_finds_what_is_best_and_says_how_much_better(measure: str) -> None:
    found = simulation.tune(Dial(), world(measure), rounds=200, settings=16, final_runs=6)
    assert 3.0 < found.arguments["dial"] < 30.0
    assert found.best().get_params()["dial"] == found.arguments["dial"]
    gain, error = found.gain
    assert gain > 5 * error > 0.0
    assert "better by" in str(found)
    assert "no clear gain" not in str(found)


def test_the_given_arguments_stay_where_they_are_best() -> None:
    found = simulation.tune(Dial(dial=10.0), world(), rounds=200, settings=8, final_runs=4)
    assert (found.chosen, found.arguments, found.gain) == (0, {}, (0.0, 0.0))
    assert len(found.values(0, final=True)) == 4
    assert "none was better" in str(found)


def test_worse_settings_are_given_up_and_the_given_one_never() -> None:
    found = simulation.tune(Dial(), world(), **SMALL)
    counts = {setting: len(found.values(setting)) for setting in range(len(found.tried))}
    assert set(counts.values()) <= {1, 2, 4}
    assert counts[0] == counts[found.chosen] == 4
    assert 1 in counts.values()
    seeds = {rung: {run.seed for run in found.runs if run.rung == rung} for rung in (0, 1, 2)}
    assert seeds == {0: {5}, 1: {6}, 2: {7, 8}}
    complete = {setting: np.mean(found.values(setting)) for setting, count in counts.items() if count == 4}
    assert found.chosen == max(complete, key=complete.__getitem__)
    final = [run for run in found.runs if run.rung == FINAL]
    assert {run.seed for run in final}.isdisjoint(run.seed for run in found.runs if run.rung != FINAL)


def test_a_setting_that_is_drawn_twice_plays_once() -> None:
    found = simulation.tune(Dial(), world(), ranges={"dial": OneOf(0.1, 5.0)}, **SMALL | {"settings": 12})
    assert found.tried == ({}, {"dial": 5.0})
    assert len({(run.setting, run.seed) for run in found.runs}) == len(found.runs)


def test_optuna_is_asked_for_in_words(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    simulation.tune(Dial(), world(), **SMALL)
    assert capfd.readouterr() == ("", ""), "Optuna tells nothing"
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r'^tune needs optuna: pip install "rankloop\[tune\]"$'):
        simulation.tune(Dial(), world(), **SMALL)


def test_a_run_is_that_of_play() -> None:
    users = environments.named("noisy-halves", n_items=4)
    given = rankers.RTop1F(n_items=4, horizon=300)
    found = simulation.tune(
        given, users, rounds=300, ranges={"blocks": Whole(1, 50)}, settings=3, final_runs=2
    )
    for run in found.runs[-3:]:
        alone = simulation.play(
            rankers.RTop1F(n_items=4, horizon=300, **found.tried[run.setting]),
            environments.named("noisy-halves", n_items=4),
            rounds=300,
            seed=run.seed,
        )
        assert run[3:] == (alone.mean_value, alone.total_regret, alone.exploration_share)


def test_the_evaluation_may_have_an_environment_of_its_own() -> None:
    others = environments.FixedItems(environments.users.bernoulli([0.2, 0.1]), measure="dcg")
    found = simulation.tune(Dial(), world(), held_out=others, **SMALL)
    for run in (run for run in found.runs if run.rung == FINAL):
        player = Dial(**{"dial": 0.1} | found.tried[run.setting])
        alone = simulation.play(player, others.clone(), rounds=60, seed=run.seed)
        assert run.value == alone.mean_value
    assert "held-out" in str(found)


def test_workers_do_not_change_the_answer() -> None:
    one, three = (simulation.tune(Dial(), world(), workers=workers, **SMALL) for workers in (1, 3))
    assert (one.runs, one.tried, one.chosen) == (three.runs, three.tried, three.chosen)
    other = simulation.tune(Dial(), world(), **SMALL | {"seed": 6})
    assert other.tried != one.tried


def data_of(folder: Path) -> dict[str, Any]:
    """What lies in a folder, without the seconds that runs took."""
    return {
        path.relative_to(folder).as_posix(): pl.read_parquet(path).rows()
        if path.suffix == ".parquet"
        else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("after", [0, 5, 14])
def test_a_search_that_was_stopped_goes_on(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    count = len(simulation.tune(Dial(), world(), folder=whole, **SMALL).runs)
    written: list[str] = []
    keep = runs.Kept.keep

    def interrupted(self: Any, identity: str, *args: Any) -> None:
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(identity)
        keep(self, identity, *args)

    monkeypatch.setattr(runs.Kept, "keep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulation.tune(Dial(), world(), folder=stopped, **SMALL)
    assert len(list((stopped / "runs").glob("*"))) == after
    assert not (stopped / "tuning.json").exists()
    again: list[str] = []

    def noted(self: Any, identity: str, *args: Any) -> None:
        again.append(identity)
        keep(self, identity, *args)

    monkeypatch.setattr(runs.Kept, "keep", noted)
    (stopped / "runs").mkdir(parents=True, exist_ok=True)
    (stopped / "runs" / ".search-0-5.parquet.1.part").write_text("half")  # what a killed process leaves
    simulation.tune(Dial(), world(), folder=stopped, **SMALL)
    assert len(again) == count - after
    assert data_of(stopped) == data_of(whole)


def test_runs_of_other_code_and_damaged_ones_are_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation.tune(Dial(), world(), folder=tmp_path, **SMALL)
    before = data_of(tmp_path)
    next((tmp_path / "runs").iterdir()).write_text("{")
    simulation.tune(Dial(), world(), folder=tmp_path, **SMALL)
    assert data_of(tmp_path) == before
    monkeypatch.setattr(runs, "code_fingerprint", lambda: "other")
    simulation.tune(Dial(), world(), folder=tmp_path, **SMALL)
    assert all(pl.read_parquet_metadata(file)["code"] == "other" for file in (tmp_path / "runs").iterdir())


def test_searches_share_a_folder_and_no_run_that_is_another(tmp_path: Path) -> None:
    others = environments.FixedItems(environments.users.bernoulli([0.9, 0.2]))
    changes: list[dict[str, Any]] = [
        {"rounds": 61},
        {"ranges": {"dial": Between(1.0, 2.0)}},
        {"ranker": Dial(other=2.0)},
        {"environment": others},
        {"held_out": world()},
        {},
    ]
    for change in changes:
        ranker, environment = change.pop("ranker", Dial()), change.pop("environment", world())
        shared, alone = (
            simulation.tune(ranker, environment, folder=folder, **SMALL | change)
            for folder in (tmp_path, None)
        )
        assert (shared.runs, shared.tried, shared.chosen) == (alone.runs, alone.tried, alone.chosen)
    count = len(list((tmp_path / "runs").iterdir()))
    simulation.tune(Dial(), world(), folder=tmp_path, **SMALL)
    assert len(list((tmp_path / "runs").iterdir())) == count


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
        ({"settings": 1}, "settings must be a whole number of at least 2, got 1"),
        ({"factor": 1}, "factor must be a whole number of at least 2, got 1"),
        ({"final_runs": 1}, "final_runs must be a whole number of at least 2, got 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        ({"ranges": {}}, "Dial declares nothing to tune"),
        (
            {"ranges": {"dail": Whole(1, 2)}},
            "ranges must be of arguments of Dial: n_items, dial, other; got 'dail'",
        ),
        ({"ranges": {"dial": (1, 2)}}, r"ranges\['dial'\] must be a range of rankloop.ranges, got \(1, 2\)"),
        (
            {"ranges": {"dial": OneOf(-1.0)}},
            "ranges has dial=-1.0, which Dial refuses: dial must be positive",
        ),
        ({"ranges": {"dial": OneOf(0.1)}}, "ranges must hold another setting than the one that is given"),
        ({"held_out": world("sum_loss")}, "held_out must be measured by 'dcg'"),
        ({"ranker": rankers.TopFTRL(n_items=2)}, "TopFTRL declares nothing to tune"),
        ({"ranker": rankers.PBMTS(n_items=2)}, "learns from clicks"),
        ({"ranker": world(), "environment": Dial()}, "the ranker comes first"),
        ({"environment": environments.FixedItems([[1, 0]] * 50)}, "rounds must be at most 50"),
        (
            {"folder": "s3://bucket/search"},
            "folder must be on this machine, got the address 's3://bucket/search'",
        ),
    ],
)
def test_mistakes_are_named_before_anything_is_played(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    ranker, environment = change.pop("ranker", Dial()), change.pop("environment", world())
    with pytest.raises(ValueError, match=message):
        simulation.tune(ranker, environment, **{"folder": tmp_path / "search"} | SMALL | change)
    assert not (tmp_path / "search").exists()


def test_an_interrupt_leaves_whole_files(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    code = (
        "from rankloop import simulation; from tests.simulation.dial import Dial, world\n"
        "try:\n"
        f"    simulation.tune(Dial(), world(), rounds=2_000, settings=64, seed=5, folder={str(folder)!r}, workers=2)\n"
        "except KeyboardInterrupt:\n"
        "    print('left', flush=True)\n"
    )

    def begun(output: IO[str]) -> None:
        until = time.monotonic() + 120
        while len(list(folder.glob("runs/*.parquet"))) < 3 and time.monotonic() < until:
            time.sleep(0.02)

    assert interrupted(code, begun) == ("left\n", "", 0)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert all(pl.read_parquet(path).height == 1 for path in files)


def test_what_a_ranker_declares_it_takes() -> None:
    for name in rankers.__all__:
        kind = getattr(rankers, name)
        for example in of_ranker(name):
            declared = example.tunable()
            assert set(declared) <= set(example.get_params())
            for share in (0.0, 0.3, 0.6, 0.999):
                kind(**{**example.get_params(), **{each: declared[each].at(share) for each in declared}})
