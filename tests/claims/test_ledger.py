"""The table of statements is complete, and every judge that it names is there and names the statement in turn."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from rankloop import claims, experiments
from tests.mutations import INSIDE, MUTATIONS

ROOT = Path(__file__).parents[2]
NUMBERS = {"2015": range(1, 92), "2016": range(92, 157), "2022": range(157, 224)}
# Data that may not be passed on, and questions that are still open.
UNDECIDED = {"2016-143", "2016-149", "2022-219", "2022-223"}
ALL = claims.statements()


@cache
def marked(path: Path) -> dict[str, set[str]]:
    """The tests of a file, each with the ids of its marker."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            found[node.name] = {
                ast.literal_eval(argument)
                for decorator in node.decorator_list
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.judges"
                for argument in decorator.args
            }
    return found


@cache
def claim_names(experiment: str) -> list[str]:
    """Patterns for the names of an experiment's claims, in its module and in those beside it in its folder."""
    module = (
        ROOT / "src" / Path(*experiments._KNOWN[experiment].partition(":")[0].split(".")).with_suffix(".py")
    )
    files = [module] if module.parent.name == "experiments" else sorted(module.parent.rglob("*.py"))
    patterns = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Claim":
                patterns += [_pattern(word.value) for word in node.keywords if word.arg == "name"]
    return patterns


def _pattern(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return re.escape(str(value.value))
    if isinstance(value, ast.JoinedStr):
        return "".join(_pattern(part) if isinstance(part, ast.Constant) else ".+" for part in value.values)
    strings = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return "".join(re.escape(str(string)) for string in strings[:1]) + ".*"


def fault(id_: str, judge: str) -> str | None:
    """What is wrong with a judge of a statement, or None."""
    if judge.startswith("experiment:"):
        _, experiment, *claim = judge.split(":")
        if experiment not in experiments.names():
            return f"no experiment {experiment}"
        known = [re.compile(pattern) for pattern in claim_names(experiment)]
        lost = [name for name in claim if not any(pattern.fullmatch(name) for pattern in known)]
        return f"no claim {lost[0]} of {experiment}" if lost else None
    file, _, name = judge.partition("::")
    if name not in marked(ROOT / file):
        return f"no test {judge}"
    return None if id_ in marked(ROOT / file)[name] else f"the marker of {judge} does not name {id_}"


def test_ids_are_unique_and_complete() -> None:
    assert [each.id for each in ALL] == [f"{year}-{n:03d}" for year, own in NUMBERS.items() for n in own]


def faults(each: claims.Statement) -> list[str]:
    """What is wrong with a statement."""
    found = {
        "unknown status": each.status not in claims.STATUSES,
        "no place": not each.place,
        "no sentence": not each.statement.endswith((".", "?")),
        "not said how": len(each.how) <= 8,
        "nothing decides it": each.decided and not each.where,
        "undecided": each.status == "cannot be judged here" and each.id not in UNDECIDED,
    }
    judges = [fault(each.id, judge) for judge in each.where]
    return [*(what for what, wrong in found.items() if wrong), *(what for what in judges if what)]


def test_every_statement_has_a_judge_or_a_reason() -> None:
    assert {each.id: faults(each) for each in ALL if faults(each)} == {}


@pytest.mark.parametrize(
    ("judge", "found"),
    [
        ("experiment:no-such-experiment", "no experiment"),
        ("experiment:pbm-2022-bounds:theorem-4", "no claim"),
        ("experiment:top1-2015-rates:bound-", "no claim"),
        ("tests/claims/test_ledger.py::test_that_is_not_there", "no test"),
        ("tests/claims/test_ledger.py::test_filters", "does not name"),
    ],
)
def test_a_judge_that_is_not_there_is_noticed(judge: str, found: str) -> None:
    assert found in str(fault("2015-050", judge))


def test_every_mark_is_in_the_table() -> None:
    where = {each.id: each.where for each in ALL}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, ids in marked(file).items():
            for id_ in ids:
                assert f"{file.relative_to(ROOT)}::{name}" in where.get(id_, ()), (
                    f"{name} is no judge of {id_}"
                )


def test_near_mistakes_can_be_made_and_are_in_the_docs() -> None:
    page = (ROOT / "docs" / "experiments.md").read_text()
    for each in MUTATIONS:
        assert each.place(ROOT).exists(), each.name
        assert f"| {each.name} |" in page or not re.match(r"20\d\d-", each.statements)


def test_every_verified_statement_with_a_number_has_a_near_mistake() -> None:
    planted = {id_ for each in MUTATIONS for id_ in each.statements.split(", ")}
    numbers = {each.id for each in ALL if each.status == "verified" and re.search(r"\d", each.statement)}
    assert numbers <= planted | INSIDE.keys()
    assert INSIDE.keys() <= numbers


def test_every_erratum_is_on_its_page() -> None:
    labels = set(re.findall(r"^\| ([ABC]\d+) \|", (ROOT / "docs" / "errata.md").read_text(), re.M))
    named = {label for each in ALL for label in each.errata}
    assert named <= labels
    assert len(named) > 40


def test_filters() -> None:
    assert {each.year for each in claims.statements(paper="2016")} == {"2016"}
    assert {each.status for each in claims.statements(status="background")} == {"background"}
    assert [each.id for each in claims.statements(word="birkhoff")] == ["2022-170"]
    assert not claims.statements(word="no such words")
    with pytest.raises(ValueError, match=r"paper must be one of 2015, 2016, 2022, got '1995'"):
        claims.statements(paper="1995")
    with pytest.raises(ValueError, match=r"status must be one of verified.*got 'missing'"):
        claims.statements(status="missing")
