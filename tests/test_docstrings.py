"""Docstrings of everything public have numpydoc's form, so that the API reference can be made from them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from numpydoc import validate
from numpydoc.docscrape import NumpyDocString, get_doc_object

sys.path.insert(0, str(Path(__file__).parent.parent / "docs" / "_ext"))

import public_api

OWN_SECTIONS = ["Notation", "Departures"]
# Parameters: all there, in order, with a type, and a description that is a sentence. Returns: a type, a description;
# it may be left out, since the first line says what is given, and the signature of what type. A parameter that needs
# no more than a word, or is as in another place, may stand in the text instead, by its name in backquotes; what all
# functions of a module take, in the text of the module.
FORM = {f"PR{i:02}" for i in range(1, 11)} | {"RT02", "RT03", "RT04", "RT05", "GL07", "GL08"}


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        # A method of a contract is documented where the contract is.
        if not any(getattr(vars(parent).get(name), "__doc__", None) for parent in kind.__mro__[1:-1]):
            yield name, getattr(kind, name)


def _documented() -> Iterator[tuple[str, Any, set[str]]]:
    for path, name, kind, value in public_api.everything():
        if kind == "function":
            yield f"{path}.{name}", getattr(value, "py_func", value), FORM
        elif kind in {"class", "exception"} and not getattr(
            value, "_is_protocol", False
        ):  # a protocol is never constructed
            yield f"{path}.{name}", value, FORM
            for method, function in _methods(value):
                yield f"{path}.{name}.{method}", function, FORM


@pytest.fixture(autouse=True)
def _own_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    known = validate.ALLOWED_SECTIONS
    place = known.index("References")
    monkeypatch.setattr(validate, "ALLOWED_SECTIONS", [*known[:place], *OWN_SECTIONS, *known[place:]])
    sections = NumpyDocString.sections | {name: [] for name in OWN_SECTIONS}
    monkeypatch.setattr(NumpyDocString, "sections", sections)


def _parameters(value: Any) -> Iterable[str]:
    try:
        return inspect.signature(value).parameters
    except (TypeError, ValueError):  # a property, or what is built in
        return ()


def _errors(value: Any) -> list[tuple[str, str]]:
    document = get_doc_object(value)
    errors = list(validate.validate(document)["errors"])
    listed = {name.strip() for one in document["Parameters"] for name in one.name.split(",")}
    text = f"{inspect.getdoc(value)}\n{inspect.getdoc(inspect.getmodule(value))}"
    missing = {*_parameters(value)} - {"self", "cls"} - listed
    if "arameters as of `" in text or all(f"`{name}`" in text for name in missing):
        return [(code, message) for code, message in errors if code != "PR01"]
    return errors


def test_docstrings_have_numpydocs_form() -> None:
    checked, problems = 0, []
    for name, value, codes in _documented():
        checked += 1
        problems += [f"{name}: {code} {message}" for code, message in _errors(value) if code in codes]
    assert checked > 300
    assert not problems, "\n".join(problems)


def test_the_form_is_really_checked() -> None:
    def half(x: int) -> float:
        """Halve it.

        Parameters
        ----------
        x : the number to halve.
        """
        return x / 2

    assert {"PR05", "PR07"} <= {code for code, _ in _errors(half)}
    half.__doc__ = "Halve a number."
    assert "PR01" in {code for code, _ in _errors(half)}
    half.__doc__ = "Halve the number `x`."
    assert "PR01" not in {code for code, _ in _errors(half)}
