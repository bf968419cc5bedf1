"""The search for arguments: it finds what is known to be best, goes on where it was stopped, and says what is wrong."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop import data, environments, rankers, simulation
from rankloop.ranges import Between, OneOf, Whole
from rankloop.simulation import halving, tuning_folder
from rankloop.simulation.tuning_result import FINAL
from tests.examples import of_ranker
from tests.simulation.dial import Dial, world

ROOT = Path(__file__).parents[2]
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


def test_every_rung_keeps_the_better_half_by_all_runs_so_far() -> None:
    found = simulation.tune(Dial(), world(), **SMALL)
    rungs = [[run for run in found.runs if run.rung == rung] for rung in range(3)]
    assert [len(rung) for rung in rungs] == [8, 4 * 1, 2 * 2]
    assert [{run.seed for run in rung} for rung in rungs] == [{5}, {6}, {7, 8}]
    for i in (0, 1):
        so_far = {setting: found.values(setting)[: 2**i] for setting in {run.setting for run in rungs[i]}}
        assert {run.setting for run in rungs[i + 1]} == set(halving.best(so_far, 4 // 2**i, is_loss=False))
    last = {setting: np.mean(found.values(setting)) for setting in {run.setting for run in rungs[2]}}
    assert found.chosen == max(last, key=last.__getitem__)
    final = [run for run in found.runs if run.rung == FINAL]
    assert {run.seed for run in final}.isdisjoint(run.seed for run in found.runs if run.rung != FINAL)


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


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("after", [0, 1, 5, 14, 21])
def test_a_search_that_was_stopped_goes_on(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    simulation.tune(Dial(), world(), folder=whole, **SMALL)
    kept: list[str] = []
    keep = tuning_folder.TuningFolder.keep

    def interrupted(self: Any, name: str, result: Any) -> None:
        if len(kept) == after:
            raise KeyboardInterrupt
        kept.append(name)
        keep(self, name, result)

    monkeypatch.setattr(tuning_folder.TuningFolder, "keep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulation.tune(Dial(), world(), folder=stopped, **SMALL)
    assert len(list((stopped / "runs").glob("*"))) == after
    assert not (stopped / "tuning.json").exists()
    again: list[str] = []

    def counted(self: Any, name: str, result: Any) -> None:
        again.append(name)
        keep(self, name, result)

    monkeypatch.setattr(tuning_folder.TuningFolder, "keep", counted)
    (stopped / "runs").mkdir(exist_ok=True)
    (stopped / "runs" / ".search-0-5.json.1.part").write_text('{"val')  # what a killed process leaves
    simulation.tune(Dial(), world(), folder=stopped, **SMALL)
    assert len(again) == 22 - after
    assert bytes_of(stopped) == bytes_of(whole)


def test_runs_of_other_code_and_damaged_ones_are_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation.tune(Dial(), world(), folder=tmp_path, **SMALL)
    before = bytes_of(tmp_path)
    (tmp_path / "runs" / "search-1-5.json").write_text("{")
    simulation.tune(Dial(), world(), folder=tmp_path, **SMALL)
    assert bytes_of(tmp_path) == before
    monkeypatch.setattr(tuning_folder, "code_fingerprint", lambda: "other")
    simulation.tune(Dial(), world(), folder=tmp_path, **SMALL)
    assert all(json.loads(file.read_text())["code"] == "other" for file in (tmp_path / "runs").iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 61}, "rounds is 60 there and 61 here; choose another folder"),
        ({"seed": 6}, "seed is 5 there and 6 here"),
        ({"ranges": {"dial": Between(1.0, 2.0)}}, "ranges is .*0.01.* there"),
        ({"ranker": Dial(other=2.0)}, "given is .* there"),
        (
            {"environment": environments.FixedItems(environments.users.bernoulli([0.9, 0.2]))},
            "environment is",
        ),
        ({"held_out": world()}, "held_out is None there"),
    ],
)
def test_a_folder_is_for_one_search(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "search"
    simulation.tune(Dial(), world(), folder=folder, **SMALL)
    before = bytes_of(folder)
    ranker, people = change.pop("ranker", Dial()), change.pop("environment", world())
    with pytest.raises(ValueError, match=message):
        simulation.tune(ranker, people, folder=folder, **SMALL | change)
    assert bytes_of(folder) == before


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
    ],
)
def test_mistakes_are_named_before_anything_is_played(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    ranker, people = change.pop("ranker", Dial()), change.pop("environment", world())
    with pytest.raises(ValueError, match=message):
        simulation.tune(ranker, people, folder=tmp_path / "search", **SMALL | change)
    assert not (tmp_path / "search").exists()


def test_a_folder_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="folder must be empty or that of an earlier search"):
        simulation.tune(Dial(), world(), folder=tmp_path, **SMALL)
    with pytest.raises(ValueError, match="folder must be a folder, got the file"):
        simulation.tune(Dial(), world(), folder=tmp_path / "thesis.txt", **SMALL)
    assert bytes_of(tmp_path) == {"thesis.txt": b"mine"}


def test_what_cannot_be_compared_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="plain arguments"):
        tuning_folder.identity([print])


def test_a_hash_sees_every_number() -> None:
    queries = data.synthetic_letor(n_queries=3, n_features=2, seed=1)
    changed = queries.features.copy()
    changed[-1, -1] += 1e-12
    streams = [
        environments.QueryStream(each)
        for each in (queries, data.synthetic_letor(n_queries=3, n_features=2, seed=1))
    ]
    assert len({tuning_folder.identity(stream) for stream in streams}) == 1
    assert tuning_folder.identity(queries.features) != tuning_folder.identity(changed)


def test_a_regret_that_is_not_known_is_kept_as_such(tmp_path: Path) -> None:
    folder = tuning_folder.TuningFolder(tmp_path / "search", {"rounds": 1})
    folder.keep("one", tuning_folder.Result(0.5, math.nan, 0.0))
    found = folder.find("one")
    assert found is not None
    assert math.isnan(found.regret)


def test_an_interrupt_leaves_whole_files(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    code = (
        "import signal; from rankloop import simulation; from tests.simulation.dial import Dial, world\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whoever runs the tests may ignore it
        "try:\n"
        f"    simulation.tune(Dial(), world(), rounds=2_000, settings=64, seed=5, folder={str(folder)!r}, workers=2)\n"
        "except KeyboardInterrupt:\n"
        "    print('left', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            begun = time.monotonic()
            while len(list(folder.glob("runs/*.json"))) < 3 and time.monotonic() - begun < 120:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()  # should it still be there
    assert (out, err, process.returncode) == ("left\n", "", 0)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert all(json.loads(path.read_text()) and path.suffix == ".json" for path in files)


@pytest.mark.parametrize("name", rankers.__all__)
def test_what_a_ranker_declares_it_takes(name: str) -> None:
    kind = getattr(rankers, name)
    if not isinstance(kind, type):
        return
    for example in of_ranker(name):
        declared = example.tunable()
        assert set(declared) <= set(example.get_params())
        for share in (0.0, 0.3, 0.6, 0.999):
            kind(**{**example.get_params(), **{each: declared[each].at(share) for each in declared}})
