"""The commands of the library: what they tell, what they leave behind, and mistakes in one sentence."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop import data, environments, experiments, measures, rankers, simulation
from rankloop.cli import library
from rankloop.cli.library import environment_names, make_ranker, named_environment, simulate_one
from rankloop.extras import MissingExtra
from rankloop.kernels import jit
from rankloop.rankers import registry
from tests.cli.call import call, refused

PERIODIC: dict[str, Any] = {"environment": "yandex-periodic-1", "rounds": 250_000, "seed": 1}
TUNE = ["tune", "--ranker", "RTop1F", "--environment", "noisy-halves", "--items", "4", "--rounds", "300"]
TUNE += ["--settings", "3", "--final-runs", "2"]


def test_list_shows_everything_with_a_description() -> None:
    listed = re.findall(r"^  (\S+)  +\S", call("list").stdout, re.M)
    for name in (*rankers.__all__, "noisy-halves", "jester", "sum_loss", "top1-2015-fig1"):
        assert name in listed
    assert {name.split("[")[0].split("@")[0] for name in listed} >= set(measures.names())
    everything = json.loads(call("list", "--json").stdout)
    assert set(everything) == {"rankers", "environments", "measures", "experiments"}
    only = json.loads(call("list", "rankers", "--json").stdout)
    assert only == everything["rankers"]
    assert all(only.values())


def test_simulate_tells_the_same_story_twice() -> None:
    command = ["simulate", "--rounds", "2e3", "--items", "4", "--seed", "3"]
    first, second = (json.loads(call(*command, "--json").stdout) for _ in range(2))
    for told in (first, second):
        del told["seconds"]
    assert first == second
    assert first["rounds"] == 2000
    assert 0 < first["average_regret"] < 1
    assert 0 < first["exploration_share"] < 1
    plain = call(*command)
    assert re.search(r"^average regret +0\.\d{4}$", plain.stdout, re.M)
    assert "\x1b" not in plain.stdout
    assert plain.stderr == ""


def test_simulate_takes_arguments_of_the_ranker() -> None:
    command = ["simulate", "--ranker", "RTop1F", "--rounds", "1000", "--items", "4", "--json"]
    one, two = (json.loads(call(*command, *more).stdout) for more in ([], ["--set", "k=2"]))
    assert two["exploration_share"] < one["exploration_share"]


def test_simulate_plays_every_simulated_environment() -> None:
    for world in ("bernoulli", "switching", "adversary-ndcg", "adversary-map", "adversary-auc"):
        told = simulate_one(ranker="Uniform", environment=world, n_items=4, rounds=100, seed=1)
        assert told["rounds"] == 100


def test_simulate_plays_a_ranker_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lists_of_a_neighbour.py").write_text(
        "from rankloop.rankers import Uniform\n\n\nclass Mine(Uniform):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    name = "lists_of_a_neighbour:Mine"
    result = call("simulate", "--ranker", name, "--items", "3", "--rounds", "20", "--json")
    assert json.loads(result.stdout)["ranker"] == name
    sys.modules.pop("lists_of_a_neighbour")


def test_what_cannot_be_simulated_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path))
    for words, told in (
        ("--ranker RTop2F", "ranker must be one of .*RTop1F.*got 'RTop2F'"),
        ("--ranker BestInHindsight", "BestInHindsight needs the relevance of all users"),
        ("--ranker ListNet", "ListNet needs n_features: say --set n_features=VALUE"),
        ("--ranker no.such:Thing", "ranker 'no.such:Thing' cannot be imported"),
        ("--environment mars", "environment must be one of noisy-halves.*movielens.*, got 'mars'"),
        ("--environment jester", ".*RANKLOOP_DATA"),
        ("--environment yandex", "ranker TopFTRL learns from relevance, .* reveals clicks"),
        ("--environment yandex --items 7", "n_items must be 10 or left out: .*got 7"),
        ("--environment yandex --measure dcg", "measure must be 'clicks' or left out: .*'dcg'"),
        ("--environment documents --items 3", "n_items must be left out.*got 3"),
        ("--measure mrr", "measure 'mrr' is not known; known are sum_loss"),
        ("--measure ndcg", ".*measure 'ndcg' cannot be learnt"),
        ("--measure precision@50", "measure must have a cut-off of at most n_items=10, got 'precision@50'"),
        ("--rounds many", "rounds must be a whole number of at least 1, such as 20000 or 1e5, got 'many'"),
        ("--rounds inf", ".*got 'inf'"),
        ("--items 0", "n_items must be"),
        ("--items 99999999999999", "not enough memory for this: "),
        ("--set k", "--set takes KEY=VALUE, got 'k'"),
        ("--set speed=3", "TopFTRL has no argument 'speed'; it has n_items, measure"),
        ("--items 4 --set k=99", "k must be a whole number from 1 to 4, got 99"),
    ):
        assert re.match(told, refused("simulate", *words.split())), words


def test_clicks_are_told_with_both_regrets() -> None:
    told = simulate_one(ranker="Fixed", settings={"order": [0, 1, 2, 3, 4]}, **PERIODIC)
    world = environments.named("yandex-periodic-1")
    here, there = (world.clicks[phase, np.arange(5), np.arange(5)].sum() for phase in (0, 1))
    best = world.params.best[0]
    assert (told["measure"], told["items"], told["positions"]) == ("clicks", 10, 5)
    assert told["mean_value"] == pytest.approx((150_000 * here + 100_000 * there) / 250_000)
    assert told["total_phase_regret"] == pytest.approx(100_000 * (best - there))
    assert told["average_phase_regret"] == pytest.approx(0.4 * (best - there))
    # Of all fixed lists, the items that are best first beat the others where their phase came twice.
    assert 0 <= told["total_regret"] < told["total_phase_regret"]


def test_relevance_is_told_without_phases() -> None:
    told = simulate_one(ranker="FTPL", environment="bernoulli", rounds=100, seed=1)
    assert (told["items"], told["positions"], told["measure"]) == (10, 10, "dcg")
    assert not any("phase" in key for key in told)


def test_what_a_ranker_counts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted:
        def __init__(self, trace: Any) -> None:
            self.trace = trace
            self.counters = {"solver_fallbacks": 3}

        def __getattr__(self, name: str) -> Any:
            return getattr(self.trace, name)

    play = simulation.play
    monkeypatch.setattr(simulation, "play", lambda *args, **kwargs: Counted(play(*args, **kwargs)))
    told = simulate_one(ranker="Uniform", environment="yandex", rounds=10, seed=1)
    assert told["solver_fallbacks"] == 3


def test_a_ranker_gets_the_positions_of_the_world() -> None:
    world = environments.named("yandex")
    ranker = make_ranker("Uniform", world, rounds=10, settings={})
    assert (ranker.n_items, ranker.n_positions) == (10, 5)
    with pytest.raises(ValueError, match="Uniform has no argument 'k'; it has n_items, n_positions"):
        make_ranker("Uniform", world, rounds=10, settings={"k": 1})


def test_the_command_plays_a_world_of_clicks() -> None:
    command = ["simulate", "--ranker", "Uniform", "--environment", "gap-0.03-corrupted", "--rounds", "1e3"]
    told = json.loads(call(*command, "--json").stdout)
    assert (told["rounds"], told["positions"], told["exploration_share"]) == (1000, 5, 1.0)
    assert told["average_phase_regret"] >= told["average_regret"] > 0
    assert re.search(r"^average phase regret +0\.\d{4}$", call(*command).stdout, re.M)


def test_environments_have_names_of_the_package_and_of_the_data() -> None:
    names = environment_names()
    kinds = ("perfect", "navigational", "informational", "near-random")
    documents = {"documents", *(f"documents-{kind}" for kind in kinds)}
    assert set(environments.names()) | {"jester", "movielens"} | documents == set(names)
    assert all(names.values())
    simulated = named_environment("bernoulli", n_items=3, measure="sum_loss")
    assert (simulated.n_items, simulated.measure) == (3, "sum_loss")
    assert named_environment("documents").reveals == "relevance"
    clicked = named_environment("documents-navigational", measure="dcg@5")
    assert (clicked.reveals, clicked.n_features, clicked.measure) == ("clicks", 20, "dcg@5")


def test_tune_answers_and_reports_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "tune"
    done = call(*TUNE, "--out", out)
    assert done.output.startswith("dcg of RTop1F as given: ")
    assert f"Report: {out / 'report.html'}" in done.output
    before = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (out / "tuning.json").unlink()
    (out / "report.html").unlink()
    told = call(*TUNE, "--out", out, "--json")
    assert {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert set(json.loads(told.output)) == {"arguments", "gain", "standard_error", "report"}

    def stopped(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "tune", stopped)
    left = call(*TUNE, "--out", out, code=130)
    assert "the same command goes on from there" in left.output


def test_queries_are_split_for_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{i % 3} qid:{i // 3} 1:{i % 3}.5 2:{i % 5}" for i in range(60)]
    file = tmp_path / "queries.txt"
    file.write_text("\n".join(lines) + "\n")
    given: dict[str, Any] = {}

    def stopped(ranker: Any, environment: Any, **options: Any) -> None:
        given.update(options, ranker=ranker, environment=environment)
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "tune", stopped)
    words = ["tune", "--ranker", "RTopKF", "--letor", str(file), "--set", "k=2", "--only", "radius"]
    call(*words, "--held-out", "0.2", "--out", tmp_path / "out", code=130)
    train, test = data.read_letor(file).bounded().split(train=0.8, seed=0)
    assert given["environment"].params.relevance.tolist() == train.relevance.tolist()
    assert given["held_out"].params.relevance.tolist() == test.relevance.tolist()
    assert (given["ranker"].n_features, given["ranker"].max_grade) == (2, 2)
    assert (list(given["ranges"]), given["environment"].measure) == (["radius"], "ndcg@10")


def test_what_cannot_be_tuned_is_one_sentence(tmp_path: Path) -> None:
    for words, told in (
        ("RTop1F", "give either --environment or --letor"),
        ("RTop1F --environment bernoulli --letor x", "give either --environment or"),
        ("TopFTRL --environment bernoulli", "TopFTRL declares nothing to tune"),
        (
            "RTop1F --environment bernoulli --only k",
            "--only must name what RTop1F declares, blocks, epsilon, got 'k'",
        ),
        ("RTop1F --environment bernoulli --preset mslr", "--preset is of --letor"),
        ("RTop1F --letor x --held-out 1", "--held-out must be above 0 and below 1"),
        ("RTop1F --letor x --items 3", "--items is of --environment"),
        ("RTop1F --environment bernoulli --rounds x", "rounds must be a whole number"),
        ("Nobody --environment bernoulli", "ranker must be one of"),
        ("RTopKF --letor nowhere.txt", "nowhere.txt: No such file"),
    ):
        assert told in refused("tune", "--ranker", *words.split(), "--out", tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_warm_says_that_there_is_nothing_to_do() -> None:
    told = call("warm", "Uniform", "--calls", "--jobs", "1").output
    assert told.startswith("nothing to do: " if jit.MODE == "library" else "no compiled kernels here, ")


@pytest.mark.parametrize("kind", ["rankers", "environments", "measures", "experiments"])
def test_everything_has_a_description(kind: str) -> None:
    found = library.describe(kind)
    assert found
    assert all(found.values())


def test_registered_rankers_are_listed_even_when_they_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.find
    monkeypatch.setattr(registry, "names", lambda: ["Uniform", "mine", "broken"])

    def find(name: str) -> type:
        if name == "broken":
            raise ValueError("cannot be imported")
        return known("FTPL" if name == "mine" else name)

    monkeypatch.setattr(registry, "find", find)
    found = library.describe("rankers")
    assert found["mine"] == library._ranker_line("FTPL")
    assert found["broken"] == "cannot be used: cannot be imported"


def test_experiments_are_listed_without_their_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(name: str) -> object:
        raise MissingExtra('an experiment needs polars: pip install "rankloop[data]"')

    monkeypatch.setattr(experiments, "get", get)
    found = library.describe("experiments")
    assert list(found) == experiments.names()
    assert set(found.values()) == {'an experiment needs polars: pip install "rankloop[data]"'}


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kind must be one of rankers, .*got 'people'"):
        library.describe("people")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("simulate", "--ranker", "topftr"), "did you mean 'TopFTRL'?"),
        (("simulate", "--environment", "noisyhalves"), "did you mean 'noisy-halves'?"),
        (("simulate", "--measure", "ndgc"), "did you mean 'ndcg'?"),
        (("simulate", "--rounds", "1e30"), "rounds must be below 1e15"),
    ],
)
def test_a_slip_is_answered_with_what_may_be_meant(words: tuple[str, ...], told: str) -> None:
    assert told in refused(*words)


def test_advice_names_the_safest_and_the_usually_best() -> None:
    told = " ".join(call("advise", "--feedback", "clicks", "--users", "unknown").output.split())
    assert re.search(r"Safest: FTRLPBM.* [\d.]+% of .* users stay, [\d.]+% where they change", told)
    assert re.search(r"Usually best: PBMTS.* [\d.]+% of .* users stay, [\d.]+% where they change", told)
