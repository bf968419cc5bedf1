"""How experiments put things: lists of sentences, and numbers with their errors."""

from __future__ import annotations

import re
from collections.abc import Mapping


def points(text: str) -> tuple[str, ...]:
    r"""The sentences of a text, each behind a dash.

    >>> points("- One thing that goes\n  over two lines.\n- Another.")
    ('One thing that goes over two lines.', 'Another.')
    """
    return tuple(" ".join(point.split()) for point in re.split(r"^ *- ", text, flags=re.MULTILINE)[1:])


def listed(levels: Mapping[str, tuple[float, float]], form: str = ".4f") -> str:
    """Names with their mean and its standard error.

    >>> listed({"DBGD": (0.1, 0.02), "MGD": (-0.5, 0.1)}, "+.2f")
    'DBGD +0.10 ± 0.02, MGD -0.50 ± 0.10'
    """
    of_error = form.lstrip("+")
    return ", ".join(f"{name} {mean:{form}} ± {error:{of_error}}" for name, (mean, error) in levels.items())
