"""The worlds of the suite: pinned by their hashes, and each with something to learn."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers, simulation
from rankloop.environments import FixedItems
from rankloop.suite import WORLDS, World, capabilities
from rankloop.suite.worlds import SETTINGS, VERSION
from tests.suite.small import RELEVANT, STILL, TURNING

# A world that changes is another suite: raise VERSION in rankloop/suite/worlds.py, and write the hashes anew.
HASHES = {
    "noise-rare-clicks": "8e27ef73d4deffe2",
    "gap-0.03": "e65b822aa4f4d2a3",
    "gap-0.01": "b0c0f334f38a53ed",
    "ties": "245d612afcae945a",
    "positions-mixed": "8ab7a4a010be0c8c",
    "drift": "b64955816fed0906",
    "reversal": "f584f8c052b2a6f0",
    "corruption-1": "2049a65cec34ab9a",
    "corruption-3": "d35b27023d43f92f",
    "corruption-10": "03e56f77718f42a7",
    "delay-200": "56897bdaca92bf26",
    "scale-10": "dee8dfc8c211d604",
    "scale-100": "75bcea485a6ba346",
    "scale-1000": "2bad4bf8c2be9117",
    "scale-10000": "191212e858edfbb8",
    "clicks-cascade": "70097d6e102ccdea",
    "clicks-dependent": "cc64197cc089eac5",
    "clicks-browsing": "6cf813e3590e51ac",
    "clicks-bayesian": "f1d28104b8da8946",
    "clicks-trust": "54b2daa3454ad230",
    "fraud-promoted": "8f07daf3609db52f",
    "fraud-attacked": "850855e28bbd2411",
    "relevance-noise": "7ae5d499e76ac2af",
    "relevance-gap": "3322b4e03e2290fc",
    "relevance-ties": "a1f524504ff67a1b",
    "relevance-reversal": "ece984e460d3e9ef",
    "relevance-five-items": "8344f4f5efec7868",
    "documents-informational": "3bbe6e3b0e2d06a3",
    "documents-near-random": "7ea355f7a570ea6d",
    "documents-labels": "79d54f17f032f052",
}


def test_the_worlds_are_those_of_this_version() -> None:
    assert VERSION == 1
    assert {world.name: world.fingerprint(full=False) for world in WORLDS} == HASHES


def test_a_hash_follows_every_part_of_a_world() -> None:
    def changed(**parts: object) -> str:
        told = {name: getattr(STILL, name) for name in World.__dataclass_fields__} | parts
        return World(**told).fingerprint(full=False)  # type: ignore[arg-type]

    others = [
        changed(name="other"),
        changed(capability="ties"),
        changed(quick=301),
        changed(delay=1),
        changed(by_phase=True),
        changed(features=np.ones((4, 1))),
        changed(make=TURNING.make),
    ]
    assert len({STILL.fingerprint(full=False), STILL.fingerprint(full=True), *others}) == len(others) + 2
    assert changed(description="in other words") == STILL.fingerprint(full=False)


def test_names_are_unique_and_settings_known() -> None:
    assert len({world.name for world in WORLDS}) == len(WORLDS) == 30
    assert {world.setting for world in WORLDS} == set(SETTINGS)
    assert sum(len(worlds) for worlds in capabilities().values()) == len(WORLDS)
    assert list(capabilities()) == [
        "noise",
        "small gaps",
        "ties",
        "unknown position bias",
        "drift",
        "reversal",
        "corruption",
        "delay",
        "scale",
        "other click models",
        "click fraud",
        "features",
    ]


@pytest.mark.parametrize(
    "world", [world for world in WORLDS if world.setting == "clicks"], ids=lambda one: one.name
)
def test_nobody_wins_by_showing_the_first_items(world: World) -> None:
    environment = world.make(world.quick)
    environment.arrive(rng=np.random.default_rng(1))
    first = np.arange(environment.n_positions)
    assert environment.best().items.tolist() != first.tolist()


def test_the_best_of_each_phase() -> None:
    trace = simulation.play(
        rankers.Uniform(n_items=4, n_positions=2), TURNING.make(400), rounds=400, seed=1, points=1
    )
    assert TURNING.best(trace) == pytest.approx(0.9 + 0.5 * 0.5), (
        "in both halves the best two items are on top"
    )
    fixed = simulation.play(
        rankers.Uniform(n_items=4, n_positions=2), STILL.make(300), rounds=300, seed=1, points=1
    )
    assert STILL.best(fixed) == pytest.approx(0.9 + 0.5 * 0.5)
    told = World(
        "told", "reversal", "", next(w for w in WORLDS if w.name == "relevance-reversal").make, by_phase=True
    )
    one = told.make(1_000)
    assert isinstance(one, FixedItems)
    trace = simulation.play(rankers.Uniform(n_items=10), one, rounds=1_000, seed=1, points=1)
    chances, discount = np.linspace(0.9, 0.1, 10), 1 / np.log2(np.arange(2, 12))
    assert told.best(trace) == pytest.approx(float(chances @ discount))
    assert RELEVANT.best(trace) > 0
    wrong = World("wrong", "drift", "", lambda rounds: FixedItems(np.eye(3)), by_phase=True)
    with pytest.raises(ValueError, match="by_phase needs an environment with phases"):
        wrong.best(trace)
