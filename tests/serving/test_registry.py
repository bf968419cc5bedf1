"""Rankers by name: those of the package, those of somebody else's package, and names that are never imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.rankers import PDGD, ListNet, RTopKF
from rankloop.serving import registry
from rankloop.serving.admission import RequestError, Unavailable
from rankloop.serving.log import records
from rankloop.serving.log.records import DEFAULTS, Config, Entry, Policy
from rankloop.serving.registry import fingerprint
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.service import ITEMS, adds_up, answer, create, play, rank, running

OWN = '''
from typing import Any, NamedTuple
import numpy as np
from rankloop.base import Ranker, Ranking
from rankloop.feedback import Clicks

class Seen(NamedTuple):
    clicks: np.ndarray
    shown: np.ndarray

class Counting(Ranker):
    """Sorts by clicks a display, with a little noise."""

    summary = "Counts clicks."

    def __init__(self, *, n_items: int, noise: float = 0.1) -> None:
        self.n_items = self.n_positions = n_items
        self.noise = noise
        self.feedback = Clicks()
        self.state = Seen(np.zeros(n_items), np.zeros(n_items))

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        mean = self.state.clicks / np.maximum(self.state.shown, 1)
        return Ranking(np.argsort(-(mean + self.noise * rng.random(self.n_items))))

    def learn(self, ranking: Ranking, feedback: Any) -> None:
        given = self.feedback.check(feedback, self.n_positions)
        self.state.clicks[ranking.items] += given
        self.state.shown[ranking.items] += 1

    def current(self, context: Any = None) -> np.ndarray:
        return np.argsort(-self.state.clicks, kind="stable")
'''
NAME = "acme_lists.counting:Counting"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of somebody else's, installed: a folder on the path, and metadata with an entry point."""
    package, info = tmp_path / "acme_lists", tmp_path / "acme_lists-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").touch()
    (package / "counting.py").write_text(OWN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-lists\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rankloop.rankers]\nacme = acme_lists.counting:Counting\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_allowed", {})
    registry.served.cache_clear()
    yield package
    registry.served.cache_clear()
    for name in [name for name in sys.modules if name.startswith("acme_lists")]:
        del sys.modules[name]


@pytest.mark.parametrize("algorithm", ["acme", NAME])
def test_a_ranker_of_somebody_elses_is_served_like_ours(acme: Path, tmp_path: Path, algorithm: str) -> None:
    if algorithm == NAME:
        registry.allow([NAME])

    async def story() -> None:
        async with running(SQLiteStore(tmp_path / "data")) as engine:
            await create(engine, "own", algorithm=algorithm, items=ITEMS, parameters={"noise": 0.5})
            for i in range(30):
                shown = await rank(engine, f"d{i}", "own")
                clicks = [float(name == "tea") for name in shown.items]
                told = await answer(engine, f"d{i}", name="own", relevance=None, clicks=clicks)
                assert told.learnt
                if i == 20:
                    await engine.snapshot("own")
            assert engine.rankers["own"].fold.current()[0] == "tea"
            await adds_up(engine, "own")
        async with running(SQLiteStore(tmp_path / "data")) as engine:
            assert engine.rankers["own"].snapshot_seq > 0  # it began from the snapshot
            assert engine.rankers["own"].fold.rounds == 30

    play(story)
    data = ["--data", str(tmp_path / "data")]
    allowed = [] if algorithm == "acme" else ["--ranker", NAME]
    command = CliRunner()
    done = command.invoke(app, ["verify", *data, *allowed])
    assert done.exit_code == 0, done.output
    assert "1 snapshots" in done.output
    assert "30 lists drawn again" in done.output
    listed = command.invoke(app, ["rankers", *data, *allowed])
    assert "30 rounds learnt" in listed.output, listed.output
    table = command.invoke(
        app, ["export", "own", "--parquet", str(tmp_path / "own.parquet"), *data, *allowed]
    )
    assert "150 rows" in table.output, table.output
    log_ranker = [] if algorithm == "acme" else ["--log-ranker", NAME]
    other = command.invoke(app, ["replay", "own", "--ranker", "FTRLPBM", *data, *log_ranker])
    assert "30 lists with feedback" in other.output, other.output
    played = command.invoke(app, ["replay", "own", "--ranker", NAME, *data])
    assert "30 lists with feedback" in played.output, played.output


def test_a_request_cannot_import_what_the_operator_did_not_allow(acme: Path) -> None:
    (acme / "trap.py").write_text("raise SystemExit('imported')")

    async def story() -> None:
        async with running() as engine:
            for name in (NAME, "acme_lists.trap:Trap", "os:system", "acme_lists.counting:Seen"):
                with pytest.raises(RequestError, match="is not allowed here") as refused:
                    await create(engine, algorithm=name, items=ITEMS)
                assert refused.value.field == "algorithm"
            assert "acme_lists.trap" not in sys.modules

    play(story)


def test_a_log_names_only_what_is_allowed(acme: Path, tmp_path: Path) -> None:
    """Whoever can write to the database cannot make the service import something."""
    registry.allow([NAME])

    async def story() -> None:
        async with running(SQLiteStore(tmp_path / "data")) as engine:
            await create(engine, "own", algorithm=NAME, items=ITEMS)
        registry._allowed.clear()
        registry.served.cache_clear()
        async with running(SQLiteStore(tmp_path / "data")) as engine:
            with pytest.raises(
                Unavailable, match=r"ranker 'own' is quarantined: .* not allowed here: .*--ranker"
            ):
                await engine.find("own")

    play(story)


def test_what_is_not_a_ranker_cannot_be_allowed(acme: Path) -> None:
    for name, words in [
        ("acme_lists.counting:Seen", "must be a subclass"),
        ("acme_lists.nothing:Here", "cannot be imported"),
        ("rankloop.rankers:Uniform", "cannot be served: it learns nothing"),
    ]:
        with pytest.raises(ValueError, match=words):
            registry.allow([name])
    assert NAME not in registry.served()


def test_the_fingerprint_of_somebody_elses_ranker_has_its_version(acme: Path) -> None:
    config = Config("acme", 1, ["a", "b", "c"])
    kind = registry.find("acme")
    before = fingerprint(config)
    assert before.startswith("format 2, version 1, arithmetic ")
    kind.algorithm_version = 2
    assert fingerprint(config) == before.replace("version 1", "version 2")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Config("FTPL", 1, ["a"], {"horizon": 5}), "no horizon"),
        (Config("FTPL", 1, ["a"], {"n_items": 5}), "no parameter 'n_items'"),
        (Config("ListNet", 1), "needs the parameter n_features"),
        (Config("PBMPIE", 1, ["a"]), "PBMPIE cannot be served: it needs to know beforehand"),
        (Config("Nobody", 1, ["a"]), "algorithm must be one of"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(config: Config, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        registry.build(config, n_items=1)


def test_lists_in_a_request_become_tuples_and_the_hash_ignores_their_order() -> None:
    config = Config("ListNet", 1, None, {"n_features": 2, "learning_rate": [0.5, 0.25]})
    built = registry.build(config, n_items=0)
    assert built.learning_rate == (0.5, 0.25)  # type: ignore[attr-defined]
    other = Config("ListNet", 1, None, {"learning_rate": [0.5, 0.25], "n_features": 2})
    assert registry.config_hash(config) == registry.config_hash(other)


def _parameters(ranker: Any) -> str:
    return repr(ranker.params)  # arrays among them: tuples of arrays cannot be compared


def test_a_row_without_a_version_is_built_with_the_defaults_of_its_time() -> None:
    # As 0.1 wrote it: algorithm, seed and parameters, nothing else.
    row = msgspec.msgpack.encode({"algorithm": "RTopKF", "seed": 3, "parameters": {"n_features": 2}})
    old = msgspec.msgpack.decode(row, type=Config)
    built = registry.build(old, n_items=0)
    papers = RTopKF(n_features=2, surrogate="kl", learning_rate=(0.01, 2 / 3), exploration=(0.1, 1 / 3))
    assert _parameters(built) == _parameters(papers)
    assert records.encode(old) == row  # so that hashes of configurations stay
    now = registry.build(msgspec.structs.replace(old, defaults=DEFAULTS), n_items=0)
    assert _parameters(now) == _parameters(RTopKF(n_features=2))
    second = msgspec.structs.replace(old, parameters={"n_features": 2, "surrogate": "smooth_dcg"}, defaults=2)
    built = registry.build(second, n_items=0)
    smooth = RTopKF(n_features=2, surrogate="smooth_dcg", epsilon=None)
    assert _parameters(built) == _parameters(smooth)
    assert _parameters(built) != _parameters(RTopKF(n_features=2, surrogate="smooth_dcg"))
    listnet = registry.build(msgspec.structs.replace(old, algorithm="ListNet"), n_items=0)
    assert _parameters(listnet) == _parameters(ListNet(n_features=2, learning_rate=(0.01, 0.5)))
    pdgd = registry.build(msgspec.structs.replace(old, algorithm="PDGD", defaults=3), n_items=0)
    assert _parameters(pdgd) == _parameters(PDGD(n_features=2, learning_rate=0.1))
    assert "scale" not in pdgd.state_arrays()


def test_a_ranker_keeps_the_defaults_that_it_was_created_with() -> None:
    async def story() -> None:
        parameters = {"n_features": 2}
        async with running() as engine:
            await create(engine, "docs", algorithm="RTopKF", parameters=parameters)
            assert engine.rankers["docs"].fold.config.defaults == DEFAULTS
            assert engine.rankers["docs"].fold.ranker.adaptive
        async with running() as engine:
            # A row of before, and the request that led to it once more.
            asked = Config("RTopKF", 7, parameters=parameters, policy=Policy())
            digest = bytes.fromhex(registry.config_hash(asked))[:16]
            before = msgspec.structs.replace(asked, version=RTopKF.algorithm_version)
            await engine.commit.submit([Entry("docs", "config", "docs", records.encode(before), digest)])
            await create(engine, "docs", algorithm="RTopKF", parameters=parameters)
            assert not engine.rankers["docs"].fold.ranker.adaptive

    play(story)
