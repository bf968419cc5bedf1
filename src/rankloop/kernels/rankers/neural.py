"""What PDGD does with scores that come from elsewhere: draw a list by them, and turn clicks into a gradient."""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import kernel
from rankloop.kernels.plackett_luce import draw_list
from rankloop.rankers.pdgd import gradient_in_scores


@kernel
def draw(scores: Any, m: int, key: Any, weights: Any, items: Any, header: Any) -> None:
    """Draw a list, and write to `header` what `preferences` needs to know about the documents after the first m."""
    shift, rest = draw_list(scores, len(scores), m, key, 0, weights, items)
    header[0] = m
    header[1] = shift
    header[2] = rest


@kernel
def preferences(shown: Any, header: Any, clicks: Any, room: Any, step: Any) -> bool:
    """Write PDGD's estimate, by shown document, to `step`; whether there is any preference."""
    return gradient_in_scores(shown, len(shown), header[1], header[2], clicks, room, step)
