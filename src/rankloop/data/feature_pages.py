"""Pages whose candidates bring features: what each could have shown, what it did, and with which probability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.data.clicks.pages import PROPENSITY, Page
from rankloop.data.text_files import malformed
from rankloop.features import read_features
from rankloop.feedback import Candidates, LoggedLists

FEATURES = "features"
CANDIDATES = "candidates"


def read_feature_pages(path: Path, pages: Iterable[Page], bad_rows: Counter[str], name: str) -> LoggedLists:
    """The pages as lists with features; bad ones are counted in `bad_rows`."""
    parts: list[NDArray[np.float64]] = []
    shown: list[list[int]] = []
    clicks: list[list[int]] = []
    chances: list[Any] = []
    for page in pages:
        chance = next((page.fields[field] for field in PROPENSITY if field in page.fields), None)
        whole_list = not isinstance(chance, list)
        if chances and whole_list != (not isinstance(chances[0], list)):
            bad_rows["a propensity of another kind than the first"] += 1
            continue
        each = chance if isinstance(chance, list) else [chance]
        if not all(isinstance(one, int | float) and 0 < one <= 1 for one in each) or (
            not whole_list and len(each) != len(page.shown)
        ):
            bad_rows["a propensity that is not above 0 and up to 1"] += 1
            continue
        try:
            features = read_features(page.fields.get(FEATURES), parts[0].shape[1] if parts else None)
        except ValueError:
            bad_rows["features that are not rows of as many finite numbers as the first"] += 1
            continue
        number = _numbers(page)
        if len(features) != len(number):
            bad_rows["another number of candidates than of rows of features"] += 1
        elif not set(page.shown) <= set(number):
            bad_rows["something shown that is not among the candidates"] += 1
        else:
            parts.append(features.astype(np.float64))
            shown.append([number[one] for one in page.shown])
            clicks.append(page.clicked)
            chances.append(chance)
    if not shown:
        malformed(path, 1, f"no good page; bad ones: {dict(bad_rows)}")
    m = max(len(row) for row in shown)
    single = not isinstance(chances[0], list)
    return LoggedLists(
        items=_padded(shown, m, -1),
        clicks=_padded(clicks, m, 0),
        propensities=None if single else _padded(chances, m, 1.0),
        list_propensities=np.array(chances, np.float64) if single else None,
        features=Candidates.read(parts),
        bad_rows=bad_rows,
        name=name,
    )


def _numbers(page: Page) -> dict[str, int]:
    """The number of each candidate by its name; without a list of them, they are what was shown, by position."""
    given = page.fields.get(CANDIDATES, page.shown)
    names = [str(one) for one in given] if isinstance(given, list) else []
    return {one: number for number, one in enumerate(names)}


def _padded(rows: list[list[Any]], m: int, fill: float) -> NDArray[Any]:
    return np.array([row + [fill] * (m - len(row)) for row in rows])
