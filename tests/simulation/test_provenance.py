"""The fingerprint of the code: what changes it, and what does not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import rankloop
from rankloop.simulation import code_version, provenance


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    copy = tmp_path / "rankloop"
    shutil.copytree(
        Path(rankloop.__file__).parent, copy, ignore=lambda _, names: {"__pycache__"} & set(names)
    )
    monkeypatch.setattr(code_version, "_PACKAGE", copy)
    code_version.code_fingerprint.cache_clear()
    yield copy
    code_version.code_fingerprint.cache_clear()


def fingerprint() -> str:
    code_version.code_fingerprint.cache_clear()
    return code_version.code_fingerprint()


@pytest.mark.parametrize(
    "folder", ["experiments/pbm_2022/rankers", "rankers", "kernels/rankers", "environments", "simulation"]
)
def test_a_change_in_what_computes_changes_it(package: Path, folder: str) -> None:
    for source in (package / folder).glob("*.py"):
        if source.name == "__init__.py":
            continue
        before = fingerprint()
        source.write_text(source.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
        assert fingerprint() != before, source.name


@pytest.mark.parametrize(
    "source", ["experiments/pbm_2022/fig1.py", "experiments/harness/report.py", "cli/__init__.py"]
)
def test_a_change_in_what_only_shows_or_has_a_version_does_not(package: Path, source: str) -> None:
    before = fingerprint()
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
    assert provenance.versions()["rankloop"] == rankloop.__version__
    assert {"python", "numpy", "numba", "polars", "matplotlib"} <= set(provenance.versions())
    assert provenance.machine().endswith(" cores")
