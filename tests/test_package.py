"""The package as a thing to install and import: light, typed, pinned, and built in the direction it was drawn."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import rankloop

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "rankloop"
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in path.parts]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = [
    "apsw",
    "asyncpg",
    "matplotlib",
    "msgspec",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "ray",
    "scipy",
    "starlette",
    "uvicorn",
]


def _name(requirement: str) -> str:
    """The normalised name in front of the bounds and extras of a requirement."""
    return re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _in_source(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, rankloop; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_front_door_opens() -> None:
    from rankloop import environments, measures, rankers, simulation

    assert {environments, measures, rankers, simulation} <= set(sys.modules.values())
    assert {"environments", "measures", "rankers", "simulation"} <= set(dir(rankloop))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The package as it would be published, built in a copy so that the checkout stays clean."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "rankloop"
    shutil.copytree(PACKAGE, copy / "src" / "rankloop", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=copy, capture_output=True, check=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_ships_types_licence_and_command(wheel: zipfile.ZipFile) -> None:
    information = f"rankloop-{rankloop.__version__}.dist-info"
    shipped = set(wheel.namelist())
    assert {"rankloop/py.typed", f"{information}/licenses/LICENSE", f"{information}/METADATA"} <= shipped
    assert {f"rankloop/{_in_source(path)}" for path in SOURCES} <= shipped
    assert not [name for name in shipped if not name.startswith(("rankloop/", information))]
    assert "rankloop = rankloop.__main__:main" in wheel.read(f"{information}/entry_points.txt").decode()


def test_the_changelog_tells_of_this_version() -> None:
    assert f"## {rankloop.__version__}" in (ROOT / "docs" / "changelog.md").read_text()


def test_the_lock_pins_everything_and_names_no_address() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9.-]+==[A-Za-z0-9.+!]+", pin) for pin in pins)
    assert not re.search(r"https?:|file:|/|--", "\n".join(lines))
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"]]
    wanted += [one for extra in extras.values() for one in extra]
    assert {_name(requirement) for requirement in wanted} - {"rankloop"} <= {_name(pin) for pin in pins}


def test_a_plain_installation_needs_three_libraries() -> None:
    assert {_name(one) for one in PROJECT["project"]["dependencies"]} == {"numba", "numpy", "scipy"}


def test_imports_go_the_way_the_house_is_drawn() -> None:
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    assert "ignore_imports" not in contract
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=_in_source)
def test_every_source_file_is_one_documented_idea(path: Path) -> None:
    text = path.read_text()
    module = ast.parse(text)
    assert ast.get_docstring(module), f"{path.name} has no docstring"
    assert len(text.splitlines()) <= 400, f"{path.name} is two things"
    assert path.stem not in {"utils", "helpers", "common", "misc"}
    classes = [node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    vague = [name for name in classes if re.search(r"^Base|Base$|Manager$|Helper$|Utils?$", name)]
    assert vague == []
