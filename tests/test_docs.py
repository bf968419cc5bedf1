"""The docs tell the truth: their code runs, their commands exist, and nothing public goes without a page."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import itertools
import os
import posixpath
import re
import shlex
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import typer
from playwright.sync_api import expect
from sphinx.util.inventory import InventoryFile
from typer.testing import CliRunner, Result

from rankloop import base, experiments, rankers
from tests.serving.browser import launched

sys.path.insert(0, str(Path(__file__).parent.parent / "docs" / "_ext"))

import cli_page
import public_api

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
RANKERS = [
    name
    for name in rankers.__all__
    if inspect.isclass(getattr(rankers, name)) and issubclass(getattr(rankers, name), base.Ranker)
]
RANKER_SECTIONS = ["Paper", "Assumption", "Usage", "Departures from the paper", "Our numbers"]

_FENCE = re.compile(
    r"^(?P<indent>[ ]*)```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.M | re.S
)
_NO_RUN = re.compile(r'^\s*no-run="(?P<why>[^"]+)"\s*$')
# Means of several runs are printed on pages; that their code works is seen in one run as well.
_RUNS = re.compile(r"\b(runs=)\d+")
_SHELL = {"sh", "bash", "shell", "console"}


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _python_blocks(page: Path) -> Iterator[tuple[int, str]]:
    """Line number and source of every Python block that is to run."""
    text = page.read_text()
    for fence in _FENCE.finditer(text):
        rest = fence["rest"].strip()
        if fence["language"] not in {"python", "py", "pycon"}:
            continue
        line = text.count("\n", 0, fence.start("body"))
        assert fence["language"] == "python", f"{page.name}:{line}: fence it as python, so that it is run"
        if rest:
            assert _NO_RUN.match(rest), f'{page.name}:{line}: only no-run="why" may stand behind python'
            continue
        yield line, textwrap.dedent(fence["body"])


def _said_to_print(page: Path) -> dict[int, str]:
    """What a page says that its blocks print: by the line of the block, the text that stands right below it."""
    text, found = page.read_text(), {}
    fences = list(_FENCE.finditer(text))
    for fence, below in itertools.pairwise(fences):
        if below["language"] == "text" and not text[fence.end() : below.start()].strip():
            found[text.count("\n", 0, fence.start("body"))] = below["body"]
    return found


def _command_lines(page: Path) -> Iterator[str]:
    """Everything the page tells a reader to type: lines of shell blocks, and code within sentences."""
    text = page.read_text()
    for fence in _FENCE.finditer(text):
        if fence["language"] in _SHELL:
            prompts = fence["language"] == "console"
            for line in re.sub(r"\\\n\s*", " ", fence["body"]).splitlines():
                if not prompts or line.lstrip().startswith("$ "):
                    yield from re.split(r"&&|\|\||;|\|", line.strip().removeprefix("$ "))
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", _FENCE.sub("", text))


def _words_after(program: str, line: str) -> list[str] | None:
    """What follows `program` in a command line, or None where the line runs something else."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    while words and re.fullmatch(r"[A-Z_]+=.*|time|nice", words[0]):
        words = words[1:]
    if len(words) < 2 or words[0].removeprefix(".venv/bin/") != program:
        return None
    return words[1:]


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_code_on_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = list(_python_blocks(page))
    if not blocks:
        return
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    said = _said_to_print(page)
    for line, source in blocks:
        if line not in said:
            source = _RUNS.sub(r"\g<1>1", source)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            # The blank lines in front make a traceback point at the line of the page.
            exec(compile("\n" * line + source, str(page), "exec"), module.__dict__)
        if line in said:  # line breaks may differ
            assert printed.getvalue().split() == said[line].split(), (
                f"{page.name}:{line}: it prints\n{printed.getvalue()}"
            )


@pytest.fixture(scope="module")
def command() -> typer.main.TyperGroup:
    from rankloop import cli

    group = typer.main.get_command(cli.app)
    assert isinstance(group, typer.main.TyperGroup)
    return group


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_commands_on_the_page_exist(page: Path, command: typer.main.TyperGroup) -> None:
    context = typer.Context(command)
    for line in _command_lines(page):
        words = _words_after("rankloop", line)
        if words is None or re.match(r"[\[<A-Z]", words[0]):  # "rankloop COMMAND" stands for any command
            continue
        chosen, path = command, []
        if not words[0].startswith("-"):
            chosen = command.get_command(context, words[0])
            path = words[:1]
            assert chosen is not None, f"{line!r}: there is no command {words[0]!r}"
            if isinstance(chosen, typer.main.TyperGroup) and len(words) > 1 and words[1] != "[OPTIONS]":
                chosen, path = chosen.get_command(context, words[1]), words[:2]
                assert chosen is not None, f"{line!r}: {words[0]} has no command {words[1]!r}"
        known = {"--help"} | {
            option for one in chosen.get_params(context) for option in (*one.opts, *one.secondary_opts)
        }
        for word in words[len(path) :]:
            if word.startswith("--"):
                assert word.partition("=")[0] in known, f"{line!r}: there is no option {word!r}"
        if path == ["reproduce"] and len(words) > 1 and re.fullmatch(r"[a-z0-9-]+\d[a-z0-9-]*", words[1]):
            assert words[1] in experiments.names(), f"{line!r}: there is no such experiment"
        result = _help_of(*path)
        assert result.exit_code == 0, f"{line!r}: {result.output}"


@functools.cache
def _help_of(*path: str) -> Result:
    from rankloop import cli

    return CliRunner().invoke(cli.app, [*path, "--help"])


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_make_targets_on_the_page_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for line in _command_lines(page):
        for word in _words_after("make", line) or ():
            if re.fullmatch(r"[a-z]+", word):
                assert word in targets, f"{line!r}: there is no target {word!r}"


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_has_a_page(name: str) -> None:
    page = DOCS / "rankers" / f"{name}.md"
    assert page.exists(), f"{_named(page)} is missing"
    headings = re.findall(r"^#+ +(.+?) *$", _FENCE.sub("", page.read_text()), re.M)
    missing = [section for section in RANKER_SECTIONS if section not in headings]
    assert not missing, f"{_named(page)} has no section {missing}"


def test_every_page_of_a_ranker_is_about_one() -> None:
    pages = {page.stem for page in (DOCS / "rankers").glob("*.md")} - {"README", "index"}
    assert pages == {*RANKERS, "Neural"}  # the rankers with a torch module share one page


@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_has_a_section(name: str) -> None:
    headings = re.findall(r"^#+ .*$", (DOCS / "experiments.md").read_text(), re.M)
    assert any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", heading) for heading in headings), headings


def test_the_command_line_page_is_what_the_command_says() -> None:
    page = "\n".join(cli_page.page())
    assert (DOCS / "cli.md").read_text() == page, "out of date: `make docs` writes it anew"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages; a warning, a dead link or an unknown reference among them, fails the build."""
    folder = tmp_path_factory.mktemp("docs")
    sphinx = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    done = subprocess.run(
        [*sphinx, "--doctree-dir", str(folder / "doctrees"), str(DOCS), str(folder / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_the_pages_fetch_nothing(site: Path) -> None:
    for page in site.rglob("*.html"):
        fetched = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:https?:)?//[^>]*>", page.read_text())
        assert not fetched, page.name


def test_everything_public_is_in_the_api_reference(site: Path) -> None:
    with (site / "objects.inv").open("rb") as file:
        documented = InventoryFile.load(file, "", posixpath.join)
    names = {name for kind, entries in documented.items() if kind.startswith("py:") for name in entries}
    missing = [
        f"{path}.{name}" for path, name, *_ in public_api.everything() if f"{path}.{name}" not in names
    ]
    assert not missing
    assert {"rankloop.rankers.RTop1F", "rankloop.rankers.RTop1F.rank", "rankloop.measures.dcg"} <= names


def test_the_api_reference_covers_every_public_package() -> None:
    covered = {path for _, path, _ in public_api.MODULES}
    source = ROOT / "src" / "rankloop"
    listed = {
        f"rankloop.{file.relative_to(source).parent.as_posix()}".replace("/", ".")
        for file in source.glob("*/__init__.py")
        if "__all__" in file.read_text()
    }
    assert listed - covered <= {"rankloop.kernels", "rankloop.serving", "rankloop.cli"}


def test_code_on_a_page_leads_to_the_api_reference(site: Path) -> None:
    assert re.search(r'<a [^>]*href="api/rankloop\.rankers\.TopFTRL\.html', (site / "start.html").read_text())


def test_the_pages_work_from_disk(site: Path) -> None:
    asked = []
    for browser in launched():
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "search.html").as_uri() + "?q=perturbed")
        expect(page.locator("#search-results ul.search")).to_contain_text("FTPL", timeout=30_000)
        page.goto((site / "search.html").as_uri() + "?q=click+log")
        expect(page.locator("#search-results ul.search li").first).to_contain_text(
            "Click logs", timeout=30_000
        )
        page.goto((site / "rankers" / "FeedExp3.html").as_uri())
        before = page.evaluate("document.documentElement.dataset.theme")
        page.locator("button.theme-switch-button:visible").first.click()
        page.get_by_text("Dark", exact=True).first.click()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark", before
        assert page.locator("math").first.bounding_box()["width"] > 5  # drawn, not left as text
        page.close()
    assert all(url.startswith(("file:", "data:")) for url in asked), asked


def test_formulas_need_no_script(site: Path) -> None:
    page = (site / "rankers" / "index.html").read_text()
    assert "<math" in page
    assert not re.search(r"<script[^>]*(mathjax|katex)", page, re.I)


def test_every_decision_is_listed() -> None:
    listed = (DOCS / "decisions" / "README.md").read_text()
    for note in (DOCS / "decisions").glob("[0-9]*.md"):
        assert f"]({note.name})" in listed, f"{note.name} is not in the list of decisions"
        assert note.read_text().startswith(f"# {note.name[:4]}: ")


def test_every_reference_is_whole() -> None:
    entries = re.split(r"^@", (DOCS / "references.bib").read_text(), flags=re.M)[1:]
    keys = [re.match(r"\w+\{([^,]+),", entry)[1] for entry in entries]
    assert len(keys) == len(set(keys))
    for key, entry in zip(keys, entries, strict=True):
        fields = set(re.findall(r"^  (\w+) *=", entry, re.M))
        assert {"author", "title", "year", "checked"} <= fields, key


def test_examples_run(tmp_path: Path) -> None:
    assert EXAMPLES, "there are no examples"
    environment = {**os.environ, "MPLBACKEND": "Agg"}

    def run(example: Path) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / example.stem
        folder.mkdir()
        # Those that take arguments are tested in tests/serving/examples.
        help_only = ["--help"] if "ArgumentParser" in example.read_text() else []
        return subprocess.run(
            [sys.executable, str(example), *help_only],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    with ThreadPoolExecutor(max_workers=2) as pool:
        for example, done in zip(EXAMPLES, pool.map(run, EXAMPLES), strict=True):
            assert done.returncode == 0, f"{example.name}:\n{done.stdout}{done.stderr}"
            assert done.stdout, f"{example.name} shows nothing"
            if example.stem == "from_log_to_service" and not done.stdout.startswith("Skipped: "):
                assert "PBMTS is in the service" in done.stdout
