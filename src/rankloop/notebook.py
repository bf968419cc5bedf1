"""What a notebook shows: small HTML of an object, and a line that moves while something runs. Needs no library."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from html import escape
from typing import Any

_TABLE = "border-collapse:collapse;margin:0.2em 0"
_NAME = "text-align:left;vertical-align:top;padding:0 1em 0 0;font-weight:normal;opacity:0.7"
_TEXT = "text-align:left;vertical-align:top;padding:0;overflow-wrap:anywhere"
_LONGEST = 300  # characters of one fact


def card(title: str, facts: Mapping[str, object]) -> str:
    """A title and named facts as a small HTML table; everything is escaped.

    Parameters
    ----------
    title : str
        What it is.
    facts : mapping of str to object
        A row for each, written with `str`.

    Returns
    -------
    str
        HTML that stands alone.

    Examples
    --------
    >>> "&lt;3 items&gt;" in card("Ranker", {"n_items": "<3 items>"})
    True
    """
    rows = "".join(
        f'<tr><th style="{_NAME}">{escape(name)}</th><td style="{_TEXT}">{escape(_short(str(value)))}</td></tr>'
        for name, value in facts.items()
    )
    table = f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>' if rows else ""
    return f"<div><b>{escape(title)}</b>{table}</div>"


def sentence(text: str) -> str:
    """A `repr` such as ``Kind('name': this, that)`` as HTML: the kind in bold, then the rest.

    Parameters
    ----------
    text : str
        The `repr`.

    Returns
    -------
    str
        HTML that stands alone.

    Examples
    --------
    >>> sentence("Ratings('jokes': 5 users)")
    '<div><b>Ratings</b> &#x27;jokes&#x27;: 5 users</div>'
    """
    kind, _, rest = text.partition("(")
    return f"<div><b>{escape(kind)}</b> {escape(rest.removesuffix(')'))}</div>"


def in_notebook() -> bool:
    """Whether this code runs in the kernel of a notebook.

    Returns
    -------
    bool
        False in a script, in a terminal, and in IPython in a terminal.
    """
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None and "ipykernel" in sys.modules else None
    return getattr(running, "kernel", None) is not None


class Line:
    """A progress bar with a text in the output of a cell; it appears when it first moves."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, share: float, text: str) -> None:
        """Move the bar.

        Parameters
        ----------
        share : float
            How much is done, from 0 to 1.
        text : str
            What stands beside the bar.
        """
        done = min(1.0, max(0.0, share))
        self._put(f'<progress value="{done:.4f}" max="1"></progress> {escape(text)}', text)

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._handle is not None:
            self._put("", "")

    def _put(self, html: str, text: str) -> None:
        display: Any = importlib.import_module("IPython.display").display
        shown = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
