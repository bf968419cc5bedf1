"""Files of click parameters: what is written is read, and what is something else is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop.feedback import ClickParameters, read_parameters


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pbm.json"
    given = ClickParameters(
        attraction=[0.1, 1 / 3],  # type: ignore[arg-type]
        examination=[1.0, 0.2, 0.1],  # type: ignore[arg-type]
        items=("ä", "b"),
        provenance={"source": "me", "rows": 3},
    )
    given.save(path)
    read = read_parameters(path)
    assert read.items == ("ä", "b")
    assert read.provenance == {"source": "me", "rows": 3}
    np.testing.assert_array_equal(read.attraction, [0.1, 1 / 3])
    np.testing.assert_array_equal(read.examination, [1.0, 0.2, 0.1])


def test_the_two_arrays_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "hand.json"
    path.write_text('{"attraction": [0.9, 0.1], "examination": [1, 0.5]}')
    read = read_parameters(path)
    assert read.items == ("0", "1")
    assert read.model().n_positions == 2


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("[1", "not JSON"),
        ("[1]", "attraction and examination are missing"),
        ({"attraction": [0.5]}, "attraction and examination are missing"),
        ({"attraction": [1.5], "examination": [1]}, "attraction must lie between 0 and 1"),
        ({"attraction": [0.5], "examination": "x"}, "examination must be numbers"),
        ({"attraction": [0.5], "examination": [1], "items": ["a", "b"]}, "items must be 1 names"),
        ({"attraction": [0.5], "examination": [1], "items": 3}, "pbm.json"),
        ({"attraction": [0.5], "examination": [1], "format": "other"}, "format must be"),
    ],
)
def test_another_file_is_refused_by_name(told: Any, why: str, tmp_path: Path) -> None:
    path = tmp_path / "pbm.json"
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    with pytest.raises(ValueError, match=why) as caught:
        read_parameters(path)
    assert "pbm.json" in str(caught.value)
