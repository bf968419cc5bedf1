"""What works without the optional libraries, and the one sentence that names the extra where one is needed."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from rankloop import extras
from tests.requirements import closure, of_extra

# Importing one of these fails as if it were not installed.
BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
"""
OPTIONAL = (
    "apsw",
    "asyncpg",
    "httpx",
    "matplotlib",
    "msgspec",
    "polars",
    "prometheus_client",
    "pyarrow",
    "redis",
    "rich",
    "starlette",
    "torch",
    "typer",
    "uvicorn",
)
SERVICE = 'the service needs apsw, asyncpg, msgspec, starlette and uvicorn: pip install "rankloop[serve]"'
CORE = ("llvmlite", "numba", "numpy", "scipy")


def run_without(names: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process of its own in which `names` cannot be imported."""
    program = BLOCK.format(names=set(names)) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_a_plain_installation_ranks_learns_and_simulates() -> None:
    done = run_without(
        OPTIONAL,
        """
        import numpy as np
        from rankloop import data, environments, games, logs, measures, rankers, simulation, surrogates
        people = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="dcg")
        ranker = rankers.RTop1F(n_items=4, horizon=100)
        trace = simulation.play(ranker, people, rounds=100, seed=1, progress=True)
        print(trace.n_rounds, len(ranker.rank(rng=np.random.default_rng(1)).items))
        print(data.synthetic_letor(n_queries=3, n_features=2, seed=1).n_queries)
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["100", "4", "3"]


def test_help_and_completion_work_on_a_plain_installation() -> None:
    done = run_without(
        OPTIONAL,
        """
        import pydoc, rlcompleter, rankloop
        print(pydoc.plain(pydoc.render_doc(rankloop)))
        completer = rlcompleter.Completer({"rankloop": rankloop})
        print(sorted(completer.attr_matches("rankloop.s")))
        print(completer.attr_matches("rankloop.C"))
        """,
    )
    assert done.returncode == 0, done.stderr
    assert "rankloop[plot]" in done.stdout
    offered, clients = done.stdout.splitlines()[-2:]
    assert "'rankloop.simulation'" in offered
    assert "'rankloop.serving'" not in offered
    assert clients == "[]"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "import rankloop; rankloop.Client",
            'rankloop.Client needs httpx: pip install "rankloop[client]"',
        ),
        (
            "from rankloop import AsyncClient",
            'rankloop.AsyncClient needs httpx: pip install "rankloop[client]"',
        ),
        ("import rankloop.serving", 'rankloop.serving needs msgspec: pip install "rankloop[serve]"'),
        (
            "from rankloop import data; data.read_clicks('x')",
            'reading a click log needs polars: pip install "rankloop[data]"',
        ),
        (
            "from rankloop import data; data.read_logged_lists('x')",
            'reading a log of lists needs polars: pip install "rankloop[data]"',
        ),
        (
            "from rankloop import rankers; rankers.NeuralPDGD(module=None, n_features=3)",
            'NeuralPDGD needs torch: pip install "rankloop[torch]"',
        ),
        (
            "from rankloop import experiments; experiments.get('top1-2015-fig1')",
            'an experiment needs matplotlib, polars and rich: pip install "rankloop[cli,data,plot]"',
        ),
    ],
)
def test_python_names_the_extra(code: str, sentence: str) -> None:
    done = run_without(OPTIONAL, code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"rankloop.extras.MissingExtra: {sentence}"


def test_the_client_needs_nothing_but_httpx() -> None:
    absent = (*CORE, *(name for name in OPTIONAL if name != "httpx"))
    done = run_without(
        absent,
        """
        from rankloop import AsyncClient, Client
        with Client("http://127.0.0.1:9") as client:
            print(type(client).__name__, AsyncClient.__name__, "numpy" in sys.modules)
        """,
    )
    assert (done.returncode, done.stdout) == (0, "Client AsyncClient False\n"), done.stderr


def test_the_command_without_its_libraries_is_one_sentence() -> None:
    done = run_without(OPTIONAL, "from rankloop.__main__ import main; main()")
    sentence = 'error: the command rankloop needs typer and rich: pip install "rankloop[cli]"\n'
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["reproduce", "top1-2015-fig1"],
            'an experiment needs matplotlib and polars: pip install "rankloop[cli,data,plot]"',
        ),
        (["demo"], 'an experiment needs matplotlib and polars: pip install "rankloop[cli,data,plot]"'),
        (["rates", "--picture", "rates.png"], '--picture needs matplotlib: pip install "rankloop[plot]"'),
        (
            ["fit-clicks", __file__],
            'fit-clicks needs matplotlib and polars: pip install "rankloop[data,plot]"',
        ),
        (
            ["tune", "--ranker", "RTop1F", "--environment", "bernoulli"],
            'tune needs matplotlib and polars: pip install "rankloop[data,plot]"',
        ),
        (["serve"], SERVICE),
        (["rankers"], SERVICE),
    ],
)
def test_a_command_names_the_extra(words: list[str], sentence: str, tmp_path: Path) -> None:
    absent = tuple(name for name in OPTIONAL if name not in ("typer", "rich"))
    code = f"import os, sys; os.chdir({str(tmp_path)!r}); sys.argv[1:] = {words!r}\n"
    done = run_without(absent, code + "from rankloop.__main__ import main; main()")
    assert (done.returncode, done.stderr) == (2, f"error: {sentence}\n")
    assert list(tmp_path.iterdir()) == []


def test_commands_that_need_no_more_work_with_the_command_line_alone() -> None:
    absent = tuple(name for name in OPTIONAL if name not in ("typer", "rich"))
    code = """
    from rankloop.__main__ import main
    for words in (["list"], ["simulate", "--rounds", "100", "--items", "3"], ["rates", "--items", "3"]):
        sys.argv[1:] = words
        try:
            main()
        except SystemExit as end:
            assert not end.code
    """
    done = run_without(absent, code)
    assert done.returncode == 0, done.stderr
    assert "total regret" in done.stdout
    assert "top1-2015-fig1" in done.stdout


def test_a_module_that_is_there_is_no_complaint() -> None:
    extras.require("json", "sys", extra="plot", for_="this")


@pytest.fixture(scope="module")
def outside_serve() -> tuple[str, ...]:
    """Every module that is installed here, and would not be after `pip install "rankloop[serve]"`."""
    brought = set(closure(of_extra("serve"))) | {"rankloop"}
    return tuple(
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if not brought & {canonicalize_name(owner) for owner in owners}
    )


def test_the_extra_serve_brings_all_that_the_service_needs(
    outside_serve: tuple[str, ...], tmp_path: Path
) -> None:
    assert {"matplotlib", "polars", "pyarrow", "pytest"} <= set(outside_serve)
    for words in (
        ["--help"],
        ["--simulated-users", "--port", "0", "--seconds", "1", "--data", str(tmp_path)],
    ):
        code = f"import sys; sys.argv[1:] = {['serve', *words]!r}\nfrom rankloop.__main__ import main; main()"
        done = run_without(outside_serve, code)
        assert (done.returncode, done.stderr) == (0, "")
    assert "rankloop serves at" in done.stdout
