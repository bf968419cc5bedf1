"""Code in a sentence that names something public, such as `rankers.RTop1F`, leads to its page in the API reference."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

_CALL = re.compile(r"(?:rankloop\.)?(?P<name>[A-Za-z_][\w.]*)(?:\(.*\))?")


def _known(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Page and anchor of each public thing, under its full name, its name within rankloop, and its class name."""
    known: dict[str, tuple[str, str]] = {}
    classes: dict[str, set[tuple[str, str]]] = {}
    for name, entry in app.env.domains["py"].objects.items():
        place = (entry.docname, entry.node_id)
        known[name.removeprefix("rankloop.")] = place
        if entry.objtype in {"class", "exception"}:
            classes.setdefault(name.rpartition(".")[2], set()).add(place)
    # Two things of one name (a ranker and a surrogate called ListNet) stay without a link.
    return {name: places.pop() for name, places in classes.items() if len(places) == 1} | known


def _link(app: Sphinx, tree: nodes.document, page: str) -> None:
    known = _known(app)
    for code in list(tree.findall(nodes.literal)):
        written = _CALL.fullmatch(code.astext())
        place = known.get(written["name"]) if written else None
        if place is None or place[0] == page or isinstance(code.parent, nodes.reference):
            continue
        if any(isinstance(one, nodes.title) for one in _above(code)):
            continue
        link = make_refnode(app.builder, page, place[0], place[1], [code.deepcopy()])
        code.replace_self(link)


def _above(node: nodes.Node) -> Any:
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app: Sphinx) -> dict[str, Any]:
    """Link once everything is known."""
    app.connect("doctree-resolved", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
