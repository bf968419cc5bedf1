"""EM for the position-based model as it is usually written: over the sessions, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence


def step(
    pages: Sequence[Sequence[int]],
    clicks: Sequence[Sequence[int]],
    alpha: Sequence[float],
    beta: Sequence[float],
) -> tuple[list[float], list[float]]:
    """One step: how many liked each item and looked at each position, over how often either was shown."""
    likes, looks = [0.0] * len(alpha), [0.0] * len(beta)
    shown, times = [0] * len(alpha), [0] * len(beta)
    for page, clicked in zip(pages, clicks, strict=True):
        for j, item in enumerate(page):
            a, b = alpha[item], beta[j]
            if clicked[j]:
                likes[item] += 1.0
                looks[j] += 1.0
            else:
                none = 1.0 - a * b
                likes[item] += a * (1.0 - b) / none
                looks[j] += b * (1.0 - a) / none
            shown[item] += 1
            times[j] += 1
    return (
        [like / max(n, 1) for like, n in zip(likes, shown, strict=True)],
        [look / max(n, 1) for look, n in zip(looks, times, strict=True)],
    )
