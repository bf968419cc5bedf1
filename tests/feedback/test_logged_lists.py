"""Logged lists with features of their own: candidates list by list, checked before anything is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop.feedback import Candidates, LoggedLists

FEATURES = [[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [[0.2, 0.3]]]


def test_lists_of_different_lengths_keep_their_candidates() -> None:
    log = LoggedLists(items=[[2, 0], [0, -1]], clicks=[[0, 1], [1, 0]], features=FEATURES)
    assert log.features is not None
    assert (log.n_rows, log.n_items, log.n_positions) == (2, 3, 2)
    assert log.features.sizes.tolist() == [3, 1]
    np.testing.assert_array_equal(log.features[1], FEATURES[1])
    assert len(log.features) == 2
    assert "2 lists of 2, up to 3 candidates with 2 features, 2 clicks" in repr(log)
    assert Candidates.read(log.features) is log.features
    with pytest.raises(ValueError, match="read-only"):
        log.features.rows[0] = 0.0
    with pytest.raises(ValueError, match="this log has features"):
        log.shares()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"features": FEATURES[:1]}, "features must be given for 2 lists, got 1"),
        ({"features": []}, "features must be given for at least one list"),
        ({"features": [[[1.0, 2.0]], [[1.0]]]}, "features of list 1 must be items x features"),
        ({"features": [[[1.0, np.nan]], [[1.0, 2.0]]]}, "features of list 0 must be finite"),
        (
            {"items": [[3, 0], [0, -1]]},
            r"items must be candidates of their list, got \[3. 0.\] for list 0 of 3",
        ),
        ({"items": [[0, 0], [0, -1]]}, r"items must not show a candidate twice, got \[0. 0.\] for list 0"),
        ({"items": [[-1, 0], [0, -1]]}, "items must be -1 only behind the last item"),
        ({"items": [[1, 0], [0, -2]]}, "items must be -1 only behind the last item"),
        ({"clicks": [[0, 0], [0, 1]]}, "clicks must be 0 where nothing was shown"),
        ({"features": None}, "items must be a matrix of item numbers"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        LoggedLists(
            **({"items": [[2, 0], [0, -1]], "clicks": [[0, 1], [1, 0]], "features": FEATURES} | arguments)
        )


@pytest.mark.parametrize("starts", [[0], [1, 2], [0, 0, 2], [0, 1]])
def test_candidates_by_hand_are_checked(starts: list[int]) -> None:
    with pytest.raises(ValueError, match="starts must"):
        Candidates(np.ones((2, 1)), np.array(starts))
