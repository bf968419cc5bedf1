"""Every public name with its signature, as text: what somebody else's code may call, and with which arguments.

`public_names.txt` has a line for each name that the API reference lists, with the public classes that a class is one
of, and for each method, property and constant that it does not have from one of those or from outside. Names are
looked up under the path on the line, so a thing that moves to another module passes as long as the old path still
leads to it, with a warning or without. Types are left out: how an annotation is spelt is no promise, and the type
checkers look at them.

A line may change only where a promise changes. Then write the file anew, look at the difference, commit it, and put
a line into the changelog; a name is never dropped so: take its line out by hand.

    RANKLOOP_WRITE_GOLDEN=1 python -m pytest tests/guards/test_public_names.py
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

import public_api

import rankloop

FILE = Path(__file__).with_name("public_names.txt")


def _ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "rankloop"


def _default(value: Any) -> str:
    """A default as it would be written, without the address of an object in memory."""
    if inspect.isclass(value) or inspect.isroutine(value) or hasattr(value, "py_func"):
        return str(value.__name__)
    words = repr(value)
    return f"<{type(value).__name__}>" if " at 0x" in words else words


def _parameters(value: Any) -> str:
    """Names, kinds and defaults of the parameters, in parentheses; nothing where Python does not tell."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [
        one.replace(
            annotation=one.empty, default=one.empty if one.default is one.empty else _Word(one.default)
        )
        for one in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


class _Word:
    """A default that `str(signature)` writes as `_default` does."""

    def __init__(self, value: Any) -> None:
        self.text = _default(value)

    def __repr__(self) -> str:
        return self.text


def _makes_its_own(kind: type) -> bool:
    """Whether the class says itself how it is made: what comes from Python differs between its versions."""
    if hasattr(kind, "__struct_fields__"):
        return True
    for name in ("__init__", "__new__"):
        owner = next((one for one in kind.__mro__ if name in vars(one)), object)
        if _ours(owner) and not getattr(kind, "_is_protocol", False):
            return True
    return False


@functools.cache
def _public_classes() -> set[type]:
    return {value for *_, value in public_api.everything() if inspect.isclass(value)}


def _public_bases(kind: type) -> list[type]:
    return [one for one in kind.__mro__[1:] if one in _public_classes()]


def _members(kind: type) -> dict[str, Any]:
    """The public members of a class that a class of this package defines, and no public base, by their names."""
    members: dict[str, Any] = {}
    for one in kind.__mro__:
        if _ours(one):
            members |= {name: inspect.getattr_static(kind, name) for name in vars(one) if name[0] != "_"}
    bases = _public_bases(kind)
    return {
        name: value
        for name, value in members.items()
        if not any(inspect.getattr_static(base, name, None) is value for base in bases)
    }


def _described(path: str, value: Any, static: Any = None) -> str:
    """The line of a thing under its public path."""
    value = getattr(value, "py_func", value)
    if inspect.isclass(value):
        bases = " ".join(sorted(base.__name__ for base in _public_bases(value)))
        return f"{path}{_parameters(value) if _makes_its_own(value) else ''}{bases and f' is {bases}'}"
    if isinstance(static, property) or not callable(value) or not inspect.isroutine(value):
        return path
    return f"{path}{_parameters(value)}"


def _lines(path: str, value: Any) -> list[str]:
    """A public thing, and below a class its members."""
    lines = [_described(path, value)]
    if inspect.isclass(value):
        for name, static in sorted(_members(value).items()):
            lines.append(_described(f"{path}.{name}", getattr(value, name, static), static))
    return lines


def _path(line: str) -> str:
    return re.split(r"[( ]", line, maxsplit=1)[0]


def _listed() -> dict[str, str]:
    """The lines of all that is public now, by path."""
    lines = [
        line for path, name, _, value in public_api.everything() for line in _lines(f"{path}.{name}", value)
    ]
    front_door = [name for name in dir(rankloop) if not name.startswith("_")]
    lines += [_described(f"rankloop.{name}", getattr(rankloop, name)) for name in front_door]
    return {_path(line): line for line in lines}


def _found(path: str) -> str | None:
    """The line of what stands under a path now, or None where nothing does."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            owner: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        static = None
        for name in parts[cut:]:
            try:
                static = inspect.getattr_static(owner, name, None)
                owner = getattr(owner, name, static)
            except AttributeError:
                return None
            if owner is None and static is None:
                return None
        return _described(path, owner, static)
    return None


def test_public_names_and_their_arguments_are_those_on_paper() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        listed = _listed()
        written = {_path(line): line for line in FILE.read_text().splitlines()} if FILE.exists() else {}
        now = {path: listed.get(path) or _found(path) for path in written}
        if os.environ.get("RANKLOOP_WRITE_GOLDEN"):
            kept = {path: line or written[path] for path, line in now.items()}
            FILE.write_text("".join(f"{line}\n" for _, line in sorted((kept | listed).items())))
            return
    gone = [path for path, line in now.items() if line is None]
    assert not gone, f"these public names lead nowhere: {gone}"
    changed = [f"{written[path]}\n    is now {line}" for path, line in now.items() if line != written[path]]
    assert not changed, "\n".join(changed)
    new = sorted(set(listed) - set(written))
    assert not new, f"public, and not in {FILE.name} (this module says how to write it): {new}"


def test_a_changed_argument_and_a_lost_name_are_noticed() -> None:
    def before(items: list[str], *, k: int = 1) -> None:
        return None

    def after(items: list[str], *, k: int = 2) -> None:
        return None

    assert _described("x.f", before) == "x.f(items, *, k=1)"
    assert _described("x.f", after) != _described("x.f", before)
    assert _found("rankloop.rankers.RTop1F.rank") is not None
    assert _found("rankloop.rankers.RTop1F.rang") is None
    assert _found("rankloop.rankers.RTop9F") is None
