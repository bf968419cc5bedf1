"""Snapshots: what they hold, when they are refused, and that their code hash covers all code that a fold runs."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

import rankloop
from rankloop.serving.adapters import registry
from rankloop.serving.log import snapshots
from tests.serving.service import answer, create, play, rank, running

PACKAGE = Path(rankloop.__file__).parent
# Rankers are found by name, so no import in the fold leads to them.
BY_NAME = ["rankloop.rankers", "rankloop.rankers.ftrl_pbm_reference", "rankloop.rankers.pmed_plan"]
# Places where tests let a process crash, and sentences about packages that are missing: neither changes a state.
HARMLESS = {"serving/failpoints.py", "extras.py", "__init__.py", "serving/__init__.py"}


def _file_of(module: str) -> Path | None:
    path = PACKAGE.parent / module.replace(".", "/")
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _imports(file: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it, and the packages above them."""
    found: set[str] = set()
    tree = ast.parse(file.read_text())
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []  # for type checkers: nothing of it runs
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file} imports relatively"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    parents = {".".join(name.split(".")[:i]) for name in found for i in range(1, name.count(".") + 1)}
    return {name for name in found | parents if name.partition(".")[0] == "rankloop"}


def _closure(start: list[str]) -> set[Path]:
    files: set[Path] = set()
    waiting = list(start)
    while waiting:
        file = _file_of(waiting.pop())
        if file is not None and file not in files:
            files.add(file)
            waiting += _imports(file)
    return files


def test_the_code_hash_covers_everything_that_a_fold_imports() -> None:
    covered = {path for pattern in snapshots._DECIDES for path in PACKAGE.glob(pattern)}
    needed = _closure(["rankloop.serving.log.fold", *BY_NAME])
    assert PACKAGE / "kernels/rankers/ftrl_pbm.py" in needed  # the walk does reach the kernels
    missing = {str(path.relative_to(PACKAGE)) for path in needed - covered} - HARMLESS
    assert not missing


def test_every_pattern_of_the_code_hash_finds_something() -> None:
    for pattern in snapshots._DECIDES:
        assert list(PACKAGE.glob(pattern)), pattern


def test_a_snapshot_comes_back_as_it_was() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(10):
                await rank(engine, f"d{i}")
                await answer(engine, f"d{i}")
            await answer(engine, "parked")
            fold = engine.rankers["unwind"].fold
            taken = snapshots.take(fold, epoch=1)
            assert (taken.seq, taken.code_hash) == (fold.applied, snapshots.code_hash("RTop1F"))
            assert taken.config_hash == registry.config_hash(fold.config)
            again = snapshots.revive(taken)
            assert again.state_hash() == fold.state_hash() == taken.state_hash
            assert again.estimates.report() == fold.estimates.report()
            assert (again.parked, again.counts, again.items) == (fold.parked, fold.counts, fold.items)

    play(story)


def test_a_snapshot_that_is_not_what_it_says_is_refused() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            taken = snapshots.take(engine.rankers["unwind"].fold, epoch=1)
            for change, words in [
                ({"state": b"\xc1"}, "cannot be read"),
                ({"seq": 5}, "another configuration"),
                ({"config_hash": "0" * 64}, "another configuration"),
                ({"state_hash": "0" * 64}, "another state"),
            ]:
                with pytest.raises(ValueError, match=words):
                    snapshots.revive(msgspec.structs.replace(taken, **change))

    play(story)
