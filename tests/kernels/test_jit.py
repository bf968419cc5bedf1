"""Where kernels run: in the library, by numba, as plain Python. Everywhere the same; a line where it is slow."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankloop
from rankloop.kernels import jit, library
from rankloop.kernels.measures import separable_rows
from rankloop.rankers import reference

PACKAGE = Path(rankloop.__file__).parent
STORY = """
import sys
from rankloop import data, environments, rankers, simulation
from rankloop.kernels import jit
name = sys.argv[1]
if name == "RTop1F":
    ranker = rankers.RTop1F(n_items=3, horizon=40)
    users = environments.FixedItems([[1, 0, 1], [0, 1, 0]] * 20, measure="dcg")
elif name == "RTopKF":
    queries = data.synthetic_letor(n_queries=12, n_features=3, seed=1, list_length=(2, 8))
    ranker, users = rankers.RTopKF(n_features=3), environments.QueryStream(queries, measure="ndcg@3")
else:
    ranker = getattr(rankers, name)(n_items=3, n_positions=2)
    users = environments.PositionBased(attraction=[0.9, 0.1, 0.5], examination=[1.0, 0.5])
trace = simulation.play(ranker, users, rounds=40, seed=1, fused=name == "RTop1F")
state = [part.tobytes().hex() for part in ranker.state]
print(jit.MODE, "numba" in sys.modules, float(trace.total_regret).hex(), *state)
"""
DRAW = """
import numpy as np
from rankloop import rankers
from rankloop.kernels import jit
print(jit.MODE, *rankers.Uniform(n_items=9).rank(rng=np.random.default_rng(1)).items)
"""
WITHOUT_NUMBA = "import sys; sys.modules['numba'] = None\n"
HAS_LIBRARY = pytest.mark.skipif(jit.LIBRARY is None, reason="no compiled kernels here: make kernels")


def run(
    program: str, package: Path = PACKAGE, *, name: str = "RTop1F", **environment: str
) -> subprocess.CompletedProcess[str]:
    names = ("RANKLOOP_", "NUMBA_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    environment |= {"PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", program, name]
    return subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False)


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@HAS_LIBRARY
def test_every_way_plays_the_same() -> None:
    here = told(run(STORY))
    assert here[:2] == ["library", "False"]
    others = [
        told(run(STORY, RANKLOOP_KERNELS="numba")),
        told(run(STORY, RANKLOOP_KERNELS="python")),
        told(run(STORY, NUMBA_DISABLE_JIT="1")),
        told(run(STORY, RANKLOOP_KERNELS="x86-64-v2")) if "x86-64-v2" in library.processors() else here,
    ]
    assert [other[0] for other in others] == ["numba", "python", "python", "library"]
    assert {tuple(other[2:]) for other in others} == {tuple(here[2:])}


# With the one above a ranker of each paper, and one that learns from clicks. Step by step: the loop has its own tests.
@HAS_LIBRARY
@pytest.mark.parametrize("name", ["RTopKF", "FTRLPBM", "CascadeKLUCB"])
def test_numba_plays_what_the_library_plays(name: str) -> None:
    ours, numbas = (told(run(STORY, name=name, RANKLOOP_KERNELS=mode)) for mode in ("", "numba"))
    assert (ours[0], numbas[0]) == ("library", "numba")
    assert ours[2:] == numbas[2:]


@HAS_LIBRARY
def test_the_library_needs_no_numba() -> None:
    done = run(WITHOUT_NUMBA + STORY)
    assert told(done)[0] == "library"
    assert done.stderr == ""


def test_neither_library_nor_numba_is_plain_python_and_one_line(tmp_path: Path) -> None:
    done = run(WITHOUT_NUMBA + STORY, copied(tmp_path))
    assert told(done)[0] == "numba"
    assert done.stderr.count("\n") == 1
    assert 'pip install "rankloop[jit]"' in done.stderr


def copied(folder: Path, *, with_library: bool = False) -> Path:
    """The package somewhere else."""
    left_out = ["__pycache__", "experiments", "serving"] + ["compiled"] * (not with_library)
    package = folder / "rankloop"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns(*left_out))
    # Of the experiments, what belongs to the sources that a library is made of.
    own = "experiments/pbm_2022/rankers.py"
    (package / own).parent.mkdir(parents=True)
    shutil.copyfile(PACKAGE / own, package / own)
    return package


@HAS_LIBRARY
@pytest.mark.parametrize("fault", ["cut", "flipped", "index"])
def test_a_damaged_library_is_not_used(fault: str, tmp_path: Path) -> None:
    package = copied(tmp_path, with_library=True)
    assert jit.LIBRARY is not None
    index = jit.LIBRARY.path.name.removesuffix(f"-{jit.LIBRARY.processor}.so") + ".json"
    file = package / "kernels/compiled" / (index if fault == "index" else jit.LIBRARY.path.name)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content[: len(content) // 2] if fault == "cut" else content)
    if fault == "index":
        file.write_text("{")
    done = run(WITHOUT_NUMBA + STORY, package)
    assert told(done)[0] == "numba"
    assert "cannot be used" in done.stderr


@HAS_LIBRARY
def test_a_library_that_is_there_has_nothing_written_beside_it(tmp_path: Path) -> None:
    package = copied(tmp_path, with_library=True)
    before = sorted(package.rglob("*"))
    assert told(run(STORY, package, PYTHONDONTWRITEBYTECODE="1"))[0] == "library"
    assert sorted(package.rglob("*")) == before


def test_numba_keeps_its_code_elsewhere_where_nothing_can_be_written(tmp_path: Path) -> None:
    package = copied(tmp_path)
    (package / "kernels/__pycache__").write_text("not a folder")
    program = "from rankloop.kernels.random import word\nimport numpy as np\nprint(word(np.uint64(1), 2))"
    done = run(program, package, RANKLOOP_KERNELS="numba", HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert told(done) == told(run(program, RANKLOOP_KERNELS="python"))


@HAS_LIBRARY
def test_a_library_is_for_every_python() -> None:
    # What it needs is in the C library of every system: nothing of Python, so no version of it.
    assert jit.LIBRARY is not None
    command = ["nm", "-D", "--undefined-only", jit.LIBRARY.path]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    needed = {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}
    assert needed <= {"malloc", "free", "memcpy", "memmove", "memset", "log10"}


@HAS_LIBRARY
def test_an_edited_kernel_is_not_taken_from_the_library(tmp_path: Path) -> None:
    package = copied(tmp_path, with_library=True)
    source = package / "kernels/random.py"
    source.write_text(source.read_text().replace("0x9E3779B97F4A7C15", "0x9E3779B97F4A7C17"))
    before = told(run(DRAW))
    after = told(run(DRAW, package, RANKLOOP_KERNELS="", NUMBA_CACHE_DIR=str(tmp_path / "cache")))
    assert (before[0], after[0]) == ("library", "numba")
    assert after[1:] != before[1:]


@HAS_LIBRARY
def test_a_kernel_in_other_words_is_taken_from_the_library(tmp_path: Path) -> None:
    package = copied(tmp_path, with_library=True)
    source = package / "rankers/reference.py"
    begin, docstring, rest = source.read_text().split('"""', 2)
    source.write_text(f'# A comment.\n{begin}"""{docstring}\n\nMore of it."""{rest}')
    assert told(run(WITHOUT_NUMBA + DRAW, package))[0] == "library"


def test_what_is_not_there_is_refused_in_words() -> None:
    done = run("import rankloop.rankers; rankloop.rankers.RTop1F", RANKLOOP_KERNELS="x86-64-v9")
    assert done.returncode != 0
    assert "RANKLOOP_KERNELS='x86-64-v9': there is no such library of compiled kernels here" in done.stderr


def test_an_unknown_processor_has_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.platform, "machine", lambda: "riscv64")
    assert library.processors() == []
    assert library.opened("", pytest.fail) is None
    monkeypatch.setattr(library.platform, "system", lambda: "Darwin")
    assert library.processors() == []


class Pair(library.NamedTuple):  # type: ignore[misc, name-defined]
    """Two parts with names."""

    first: Any
    second: Any


def test_kinds_of_arguments() -> None:
    rows = np.zeros((2, 3))
    assert (
        library.kind_of((rows, rows[:, 1], np.zeros(2, np.float32), True, np.uint64(1)))
        == "(d2C,d1A,f1C,b,u)"
    )
    name = f"{__name__}:Pair"
    kind = library.kind_of((Pair(1, 2.0), (), None, (np.int64(3),), object()))
    assert kind == f"({name}(i,f),(),n,(i),{library.UNKNOWN})"
    assert library.n_words(f"({name}(i,d2C),(),n,(f))") == 1 + 9 + 0 + 1 + 1


@HAS_LIBRARY
def test_arrays_that_a_kernel_returns_are_copied() -> None:
    orders, relevances = np.array([[1, 0], [0, 1]]), np.array([[0.0, 1.0]])
    numbers = np.arange(2), np.zeros(2, np.int64)
    for _ in range(1_000):
        values = separable_rows(0, orders, relevances, *numbers, np.array([1.0, 0.5]))
    np.testing.assert_array_equal(
        values, separable_rows.py_func(0, orders, relevances, *numbers, np.array([1.0, 0.5]))
    )  # type: ignore[attr-defined]
    assert values.base is None or values.base.base is None


def test_a_kernel_travels_by_name() -> None:
    assert pickle.loads(pickle.dumps(reference.rank_uniform)) is reference.rank_uniform


def test_a_former_name_warns() -> None:
    with pytest.warns(DeprecationWarning, match="inlined is hot"):
        assert jit.inlined is jit.hot
    with pytest.raises(AttributeError, match="nothing"):
        _ = jit.nothing
