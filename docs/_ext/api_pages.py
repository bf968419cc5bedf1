"""Writes the API reference, from the names that each public module lists, and says what search leaves out."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import public_api
from sphinx.application import Sphinx

from rankloop.base import Environment, Ranker
from rankloop.compiled import CompiledEnvironment, CompiledRanker
from rankloop.rankers.candidates import SomeItems
from rankloop.servable import Servable

KINDS = {
    "class": "Classes",
    "function": "Functions",
    "data": "Values",
    "exception": "Errors and warnings",
    "alias": "Types",
}
# What only those need who write a ranker or an environment stands on the pages of the contracts, not of every ranker.
_CORE = {name for contract in (Ranker, Environment) for name in vars(contract)}
_HOOKS = {
    name for contract in (Servable, CompiledRanker, CompiledEnvironment) for name in vars(contract)
} - _CORE
# What only the service and simulations call, of rankers that can be asked for some of their items.
_HOOKS |= {name for name in vars(SomeItems) if not name.startswith("_")}
_HOOKS |= {
    "absorb",
    "part_arguments",
    "part_kind",
    "put_back",
    "carry_missed",
    "rounds_learnt",
    "state_arrays",
}
_HOOKS = (_HOOKS - _CORE) | {"check_state", "example_context", "examples", "params", "state", "state_arrays"}
_FIRST = ("rank", "learn")
_CONTRACTS = {"api/rankloop.base", "api/rankloop.compiled", "api/rankloop.servable"}


def _heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def _entry(name: str, kind: str, value: Any) -> list[str]:
    if kind == "alias":
        return [f".. py:data:: {name}", "", f"   Stands for ``{value}``.", ""]
    members = kind in {"class", "exception"}
    foreign = "Exception, Warning, tuple, Struct, ProcessPoolExecutor"
    options = ["   :members:", f"   :inherited-members: {foreign}"] if members else []
    if kind == "data":
        options = ["   :no-value:"]
    first: list[str] = []
    if members and issubclass(value, Ranker):
        options.append(f"   :exclude-members: {', '.join(_FIRST)}")
        first = ["", *(line for method in _FIRST for line in (f"   .. automethod:: {name}.{method}", ""))]
    return [f".. auto{kind}:: {name}", *options, *first, ""]


def _module_page(title: str, module: ModuleType, own_pages: bool) -> dict[str, str]:
    path = module.__name__
    names = public_api.names(module)
    kinds = {name: public_api.kind(getattr(module, name)) for name in names}
    lines = [*_heading(title, "="), f".. automodule:: {path}", "", f".. currentmodule:: {path}", ""]
    pages = {}
    for kind, heading in KINDS.items():
        chosen = [name for name in names if kinds[name] == kind]
        if not chosen:
            continue
        lines += _heading(heading, "-")
        if kind != "alias":
            lines += [".. autosummary::", "", *(f"   {name}" for name in chosen), ""]
        if own_pages:
            lines += [".. toctree::", "   :hidden:", "", *(f"   {path}.{name}" for name in chosen), ""]
            for name in chosen:
                text = [
                    *_heading(name, "="),
                    f".. currentmodule:: {path}",
                    "",
                    *_entry(name, kind, getattr(module, name)),
                ]
                pages[f"{path}.{name}"] = "\n".join(text)
        else:
            for name in chosen:
                lines += _entry(name, kind, getattr(module, name))
    return {path: "\n".join(lines)} | pages


def _write(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "api"
    pages: dict[str, str] = {}
    for title, path, own_pages in public_api.MODULES:
        pages |= _module_page(title, importlib.import_module(path), own_pages)
    for old in folder.glob("rankloop*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        page = folder / f"{name}.rst"
        if not page.exists() or page.read_text() != text:  # an unchanged page need not be read again
            page.write_text(text)


def _skip(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    if name in _HOOKS and what == "class" and app.env.docname not in _CONTRACTS:
        return True
    return None


def _shorten(
    app: Sphinx, what: str, name: str, of: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """NumPy spells out what NDArray[float64] stands for; say NDArray again."""

    def shorter(text: str | None) -> str | None:
        text = text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)
        return text and re.sub(
            r"~numpy\.ndarray\[.*?, ~numpy\.dtype\[(.*?)\]\]", r"~numpy.typing.NDArray[\1]", text
        )

    return shorter(signature), shorter(returns)


_NOT_SEARCHED = (
    "changelog",
    "claims",
    "benchmarks",
    "decisions/",
)  # they have every word, and are about none


def _leave_out_of_search(app: Sphinx, doctree: Any) -> None:
    if app.env.docname.startswith(_NOT_SEARCHED):
        app.env.metadata[app.env.docname]["nosearch"] = "true"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write before Sphinx looks for pages."""
    _write(app)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _shorten)
    app.connect("doctree-read", _leave_out_of_search)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
