"""The package as a thing to install and import: light, typed, pinned, and built in the direction it was drawn."""

from __future__ import annotations

import ast
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import rankloop
from tests.requirements import closure, of_extra

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
    for name in ("pyproject.toml", "README.md", "LICENSE", "setup.py", "compile_kernels.py", "kernels.txt"):
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


@pytest.mark.parametrize("repository", ["", "someone/rankloop"])
def test_pictures_and_links_of_the_readme_work_on_an_index(repository: str, tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "setup.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src" / "rankloop").mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", tmp_path / "src" / "rankloop")
    build = (
        f"from setuptools import build_meta; build_meta.prepare_metadata_for_build_wheel({str(tmp_path)!r})"
    )
    where = os.environ | {"GITHUB_REPOSITORY": repository, "GITHUB_REF_NAME": "v1.2.3"}
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, env=where, capture_output=True, check=True)
    (metadata,) = tmp_path.glob("*.dist-info/METADATA")
    page = metadata.read_text()
    readme = (ROOT / "README.md").read_text()
    if not repository:
        assert page.endswith(readme)
        return
    assert f"Project-URL: Repository, https://github.com/{repository}" in page
    pictures, links = (re.findall(rf"{sign}\[[^\]]*\]\(([^)]*)\)", page) for sign in ("!", "[^!]"))
    assert [one.partition("/v1.2.3/")[2] for one in pictures] == re.findall(r"!\[.*?\]\((.*?)\)", readme)
    assert all((ROOT / one.partition("/raw/v1.2.3/")[2]).is_file() for one in pictures)
    assert all(one.startswith(("https:", "#")) for one in links)


def test_the_changelog_tells_of_this_version() -> None:
    assert f"## {rankloop.__version__}" in (ROOT / "docs" / "changelog.md").read_text()


def _pins(lock: str) -> dict[str, str]:
    lines = (ROOT / lock).read_text().splitlines()
    digest = re.compile(r" +--hash=sha256:[0-9a-f]{64}( \\)?")
    pins = [
        line.removesuffix(" \\") for line in lines if not (line.startswith("#") or digest.fullmatch(line))
    ]
    assert all(re.fullmatch(r"[a-z0-9.-]+==[A-Za-z0-9.+!]+", pin) for pin in pins)
    assert not re.search(r"https?:|file:|/", "\n".join(lines))
    return dict(pin.split("==") for pin in pins)


def test_the_locks_pin_everything_agree_and_name_no_address() -> None:
    running, developing = _pins("requirements.lock"), _pins("requirements-dev.lock")
    assert running.items() <= developing.items()
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *(one for extra in extras.values() for one in extra)]
    unlocked = {"rankloop", "torch", "numba-cuda"}  # this one, and compilers for a GPU that no test needs
    assert {_name(requirement) for requirement in wanted} - unlocked <= set(developing)


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_has_a_digest_for_every_package(lock: str) -> None:
    """Whatever index serves a file, pip refuses another one than was locked."""
    lines = (ROOT / lock).read_text().splitlines()
    for line, below in itertools.pairwise([*lines, ""]):
        if "==" in line:
            assert below.startswith("    --hash=sha256:"), line


def test_the_lock_for_running_has_what_the_extra_all_needs_and_no_more() -> None:
    pinned = set(_pins("requirements.lock"))
    needed = set(closure(of_extra("all")))
    assert needed <= pinned
    if sys.version_info[:2] == (3, 11):  # the Python that it is made for
        assert pinned - needed == {"setuptools"}  # builds the editable installation
    assert not pinned & {"pyarrow", "pytest", "torch"}


def test_the_readme_installs_in_an_environment_and_runs_a_command_that_is_there() -> None:
    """Debian's own Python refuses to install anywhere else; `make` sets up the same folder."""
    text = (ROOT / "README.md").read_text()
    block = re.search(r"^```sh\n(.*?)^```", text, re.M | re.S)
    assert block is not None
    create, install, run = [shlex.split(line, comments=True) for line in block[1].splitlines()]
    assert create[:-1] == ["python3", "-m", "venv"]
    place = create[-1]
    makefile = (ROOT / "Makefile").read_text()
    assert f"VENV ?= {place}\n" in makefile
    assert "-m venv --clear $(VENV)" in makefile
    assert install[:-1] == [
        f"{place}/bin/pip",
        "install",
        "-e",
    ]  # without it all kernels are compiled: minutes
    extra = re.fullmatch(r"\.\[(\w+)\]", install[-1])
    assert extra is not None
    assert extra[1] in PROJECT["project"]["optional-dependencies"]
    assert run[0] == f"{place}/bin/rankloop"
    assert Path(run[0]).name in PROJECT["project"]["scripts"]
    assert f"$(BIN)/{' '.join(['rankloop', *run[1:]])}\n" in makefile
    outside = [line for line in text.splitlines() if re.match(r"(sudo )?pip3? install", line)]
    assert outside == []


def test_a_plain_installation_needs_numpy_alone() -> None:
    assert {_name(one) for one in PROJECT["project"]["dependencies"]} == {"numpy"}


def test_imports_go_the_way_the_house_is_drawn() -> None:
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    assert "ignore_imports" not in contract
    # The three parts: papers and service do not import each other, and what is below them imports neither.
    assert contract["layers"][:3] == ["__main__", "cli", "experiments | serving"]
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_source_file_is_one_documented_idea() -> None:
    for path in SOURCES:
        name, text = _in_source(path), path.read_text()
        module = ast.parse(text)
        assert ast.get_docstring(module), f"{name} has no docstring"
        assert len(text.splitlines()) <= 800, f"{name} is two things"
        assert path.stem not in {"utils", "helpers", "common", "misc"}, name
        classes = [node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
        vague = [one for one in classes if re.search(r"^Base|Base$|Manager$|Helper$|Utils?$", one)]
        assert vague == [], name
