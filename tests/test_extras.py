"""What works without the optional libraries, and the one sentence where one is needed; whole files; and small HTML of
our objects for a notebook, in which every name is escaped, with a bar that moves.
"""

from __future__ import annotations

import errno
import importlib.metadata
import subprocess
import sys
import textwrap
import types
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.utils import canonicalize_name
from rich.console import Console

from rankloop import data, environments, extras, games, rankers, simulation
from rankloop.experiments.harness.reproduce import run_jobs
from rankloop.extras import card, write_whole
from rankloop.simulation.play import Bar, in_notebook
from tests.experiments.toy import Toy
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
    "optuna",
    "polars",
    "prometheus_client",
    "pyarrow",
    "rich",
    "starlette",
    "torch",
    "typer",
    "uvicorn",
)
SERVICE = 'the service needs apsw, asyncpg, msgspec, starlette and uvicorn: pip install "rankloop[serve]"'
CORE = ("numpy",)
NOT_CORE = ("llvmlite", "numba", "scipy")


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
        environment = environments.FixedItems(environments.users.noisy_halves(n_items=4), measure="dcg")
        ranker = rankers.RTop1F(n_items=4, horizon=100)
        trace = simulation.play(ranker, environment, rounds=100, seed=1, progress=True)
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


def test_python_names_the_extra() -> None:
    sentences = {
        "import rankloop; rankloop.Client": (
            'rankloop.Client needs httpx and msgspec: pip install "rankloop[client]"'
        ),
        "from rankloop import AsyncClient": (
            'rankloop.AsyncClient needs httpx and msgspec: pip install "rankloop[client]"'
        ),
        "import rankloop.serving": 'rankloop.serving needs msgspec: pip install "rankloop[serve]"',
        "from rankloop import data; data.read_clicks('x')": (
            'reading a click log needs polars: pip install "rankloop[data]"'
        ),
        "from rankloop import data; data.read_logged_lists('x')": (
            'reading a log of lists needs polars: pip install "rankloop[data]"'
        ),
        "from rankloop import rankers; rankers.NeuralPDGD(module=None, n_features=3)": (
            'NeuralPDGD needs torch: pip install "rankloop[torch]"'
        ),
        "from rankloop import experiments; experiments.get('top1-2015-fig1')": (
            'an experiment needs matplotlib, polars and rich: pip install "rankloop[cli,data,plot]"'
        ),
    }
    code = f"""
    from rankloop.extras import MissingExtra
    for code in {list(sentences)!r}:
        try:
            exec(code)
        except MissingExtra as missing:
            print(missing)
    """
    done = run_without(OPTIONAL, code)
    assert (done.stdout.splitlines(), done.stderr) == (list(sentences.values()), "")


def test_the_client_needs_nothing_but_httpx_and_msgspec() -> None:
    absent = (*CORE, *NOT_CORE, *(name for name in OPTIONAL if name not in ("httpx", "msgspec")))
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


def test_a_command_names_the_extra(tmp_path: Path) -> None:
    experiment = 'an experiment needs matplotlib and polars: pip install "rankloop[cli,data,plot]"'
    sentences = {
        "reproduce top1-2015-fig1": experiment,
        "demo": experiment,
        f"fit-clicks {__file__}": 'fit-clicks needs matplotlib and polars: pip install "rankloop[data,plot]"',
        "tune --ranker RTop1F --environment bernoulli": (
            'tune needs matplotlib, optuna and polars: pip install "rankloop[data,plot,tune]"'
        ),
        "serve": SERVICE,
        "rankers": SERVICE,
    }
    absent = tuple(name for name in OPTIONAL if name not in ("typer", "rich"))
    code = f"""
    import os
    from rankloop.__main__ import main
    os.chdir({str(tmp_path)!r})
    for words in {list(sentences)!r}:
        sys.argv[1:] = words.split()
        try:
            main()
        except SystemExit as end:
            assert end.code == 2, words
    """
    done = run_without(absent, code)
    assert done.stderr == "".join(f"error: {sentence}\n" for sentence in sentences.values())
    assert (done.returncode, list(tmp_path.iterdir())) == (0, [])


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


def test_folders_are_made_and_an_old_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deeper" / "rows.txt"
    for text in ("old", "new"):
        write_whole(path, lambda part, text=text: part.write_text(text))  # type: ignore[misc]
        assert path.read_text() == text
    assert [file.name for file in path.parent.iterdir()] == ["rows.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("old")

    def write(part: Path) -> None:
        part.write_text("ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, write)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["rows.txt"]


@pytest.mark.parametrize(
    "problem",
    [OSError(errno.ENOSPC, "no room"), RuntimeError("parquet: No space left on device (os error 28)")],
    ids=["of the system", "of a library"],
)
def test_a_full_disk_is_an_error_that_names_the_file(problem: Exception, tmp_path: Path) -> None:
    def write(part: Path) -> None:
        raise problem

    with pytest.raises(OSError, match=r"rows\.txt") as told:
        write_whole(tmp_path / "rows.txt", write)
    assert (told.value.errno, told.value.filename) == (errno.ENOSPC, str(tmp_path / "rows.txt"))


def test_an_error_that_is_not_of_the_system_stays(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_whole(tmp_path / "rows.txt", lambda part: 1 // 0)


def test_an_address_is_no_folder() -> None:
    for address in ("s3://bucket/results", "memory://results", "file:///tmp/results"):
        with pytest.raises(ValueError, match=f"folder must be on this machine, got the address '{address}'"):
            extras.local_folder(address)
    assert extras.local_folder("results") == Path("results")


NASTY = "<script>alert('&')</script>"


class Read(HTMLParser):
    """Text and tags, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.open = "", set[str](), list[str]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _shown() -> dict[str, tuple[Any, str]]:
    users = environments.FixedItems(environments.users.bernoulli([0.2, 0.9, 0.5]), measure="dcg")
    letor = data.synthetic_letor(n_queries=3, n_features=4, seed=1)
    return {
        "ranker": (rankers.RTop1F(n_items=3, horizon=100, measure="dcg"), "horizon100"),
        "ranker by features": (rankers.PDGD(n_features=4), "by their features"),
        "environment": (users, "measured bydcg, larger is better"),
        "environment of queries": (environments.QueryStream(letor, measure="ndcg@3"), "reveals"),
        "verdict": (games.classify(games.ranking_game(measure="dcg", n_items=3, k=1)), "T^(2/3)"),
        "verdict of a game": (games.classify(games.zoo.apple_tasting()), "Verdict: easy"),
        "trace": (
            simulation.play(rankers.Uniform(n_items=3), users, rounds=10, seed=1, fused=False),
            "10, of which",
        ),
    }


def test_small_html() -> None:
    for name, (value, wanted) in _shown().items():
        html = value._repr_html_()
        read = Read(html)
        assert wanted in read.text, name
        assert read.open == [], name
        assert read.tags <= {"div", "b", "table", "tbody", "tr", "th", "td"}, name
        assert len(html) < 5_000, name
        assert "\n" not in repr(value), name
        assert len(repr(value)) < 1_000, name


def test_names_are_escaped() -> None:
    html = card(NASTY, {NASTY: NASTY})
    assert "<script" not in html
    assert "alert(" in Read(html).text


def test_a_long_argument_is_cut() -> None:
    many = rankers.Uniform(n_items=3)
    many._given = {"listed": list(range(500)), "array": np.zeros((20, 30))}
    assert repr(many) == "Uniform(listed=<list of 500>, array=<20x30 float64>)"
    assert len(card("long", {"text": "x" * 10_000})) < 1_000


class _Screen:
    """Stands in for IPython in a kernel: keeps what is displayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kernel: bool = True) -> None:
        self.shown: list[dict[str, str]] = []
        shell = types.SimpleNamespace(kernel=object() if kernel else None)
        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
        displays = types.ModuleType("IPython.display")
        displays.display = self.display  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", displays)
        monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))

    def display(self, shown: dict[str, str], *, raw: bool, display_id: bool) -> _Screen:
        assert raw
        assert display_id
        assert not self.shown, "a second output instead of an update"
        self.shown.append(shown)
        return self

    def update(self, shown: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(shown)


def test_here_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_notebook()
    _Screen(monkeypatch, kernel=False)  # IPython in a terminal
    assert not in_notebook()


def test_a_run_shows_a_bar_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = _Screen(monkeypatch)
    assert in_notebook()
    with Bar(1_000, wanted=True) as bar:
        bar.show(250)
        bar.show(500)
    assert ["500 of 1,000 rounds, " in shown["text/plain"] for shown in screen.shown] == [False, True, False]
    assert 'value="0.5000"' in screen.shown[1]["text/html"]
    assert screen.shown[-1] == {"text/html": "", "text/plain": ""}
    assert capsys.readouterr() == ("", "")


def test_a_short_run_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen(monkeypatch)
    with Bar(1_000, wanted=None) as bar:
        bar.show(500)
    with Bar(1_000, wanted=False) as bar:
        bar.show(500)
    assert screen.shown == []


def test_jobs_show_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = _Screen(monkeypatch)
    with Bar(4.0, wanted=True, label=NASTY) as bar:
        bar.show(0, "until the first ends")
        bar.show(3.0, "1/2 jobs")
    assert [shown["text/plain"] for shown in screen.shown] == [
        f"{NASTY}, until the first ends",
        f"{NASTY}, 1/2 jobs",
        "",
    ]
    assert 'value="0.7500"' in screen.shown[1]["text/html"]
    assert "<script" not in "".join(shown["text/html"] for shown in screen.shown)
    screen.shown.clear()
    run_jobs(Toy(), out=tmp_path, quick=True, console=Console(stderr=True, force_terminal=False))
    assert "toy, 3/3 jobs" in screen.shown[-2]["text/plain"]
    assert screen.shown[-1] == {"text/html": "", "text/plain": ""}
