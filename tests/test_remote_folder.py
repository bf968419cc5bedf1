"""Results in an object store: whole files, there as soon as they are written, and found again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from rankloop import simulation
from rankloop.experiments.harness.job_runner import run_jobs
from rankloop.extras import MissingExtra
from rankloop.remote_folder import opened_folder
from rankloop.whole_file import write_whole
from tests.experiments.harness.test_job_runner import interrupted_at
from tests.experiments.toy import Toy
from tests.simulation.dial import Dial, world


@pytest.fixture
def store() -> Iterator[Any]:
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    yield memory
    memory.store.clear()


def test_a_folder_of_this_machine_stays_what_it_is(tmp_path: Path) -> None:
    with opened_folder(tmp_path / "a") as folder:
        assert folder == tmp_path / "a"
    with opened_folder(f"file://{tmp_path}/b") as folder:
        assert folder == tmp_path / "b"


def test_a_file_is_there_as_soon_as_it_is_whole(store: Any) -> None:
    with opened_folder("memory://bucket/results") as folder:
        write_whole(folder / "a" / "one.txt", lambda part: part.write_text("1"))
        assert store.find("/bucket") == ["/bucket/results/a/one.txt"]
        with pytest.raises(RuntimeError):
            write_whole(folder / "two.txt", _fails)
        (folder / "draft.txt").write_text("not whole")
    assert not folder.exists()
    with opened_folder("memory://bucket/results/") as folder:
        assert [path.name for path in folder.rglob("*.txt")] == ["one.txt"]
        assert (folder / "a" / "one.txt").read_text() == "1"
    write_whole(folder.parent / "elsewhere.txt", lambda part: part.write_text("1"))
    (folder.parent / "elsewhere.txt").unlink()
    assert store.find("/bucket") == ["/bucket/results/a/one.txt"]


def _fails(part: Path) -> None:
    part.write_text("half")
    raise RuntimeError


def test_an_interrupted_run_goes_on_from_the_store(store: Any) -> None:
    with opened_folder("memory://results") as folder, pytest.raises(KeyboardInterrupt):
        run_jobs(interrupted_at("seed 3"), out=folder, workers=1)
    assert len(store.find("/results")) == 3
    with opened_folder("memory://results") as folder:
        outcome = run_jobs(Toy(), out=folder, workers=1)
    assert (outcome.ran, outcome.resumed) == (3, 3)
    assert len(store.find("/results")) == 6


def test_a_search_goes_on_from_the_store(store: Any) -> None:
    told: dict[str, Any] = {"rounds": 20, "settings": 4, "final_runs": 2}
    found = simulation.tune(Dial(), world(), folder="memory://searches/dial", **told)
    kept = store.find("/searches")
    assert "/searches/dial/tuning.json" in kept
    before = {name: store.modified(name) for name in kept if "/runs/" in name}
    again = simulation.tune(Dial(), world(), folder="memory://searches/dial", **told)
    assert (again.runs, again.chosen) == (found.runs, found.chosen)
    assert {name: store.modified(name) for name in before} == before
    with pytest.raises(ValueError, match="holds another search: rounds is 20 there and 21 here"):
        simulation.tune(Dial(), world(), folder="memory://searches/dial", **told | {"rounds": 21})


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(ValueError, match="address nosuch://place cannot be used"),
        opened_folder("nosuch://place"),
    ):
        pass
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with (
        pytest.raises(MissingExtra, match=r"memory://results needs fsspec: pip install"),
        opened_folder("memory://results"),
    ):
        pass
