"""Series for the dashboard: a bounded number of buckets, however long the log. When they are full, pairs are joined.

Everything in a bucket follows from rows of the log, so a roll-up can always be built anew.
"""

from __future__ import annotations

from typing import Any

import msgspec

MOST = 240  # buckets in a series
_DELAYS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)  # seconds


class Bucket(msgspec.Struct, array_like=True):
    """What happened between two rows of the log."""

    first_seq: int
    first_at: int
    last_at: int = 0
    decisions: int = 0
    explored: int = 0
    learnt: int = 0
    reward: float = 0.0  # summed over what was learnt: mean of the values that came back
    delay: float = 0.0  # seconds from decision to answer, summed over the answers
    late: int = 0
    expired: int = 0
    estimate: dict[str, float] = {}  # the estimates as they stood at the end of the bucket
    answers: int = 0  # learnt, without silence that was taken for an answer

    def join(self, other: Bucket) -> Bucket:
        """Both in one, where the other is the next."""
        return Bucket(
            self.first_seq,
            self.first_at,
            other.last_at,
            self.decisions + other.decisions,
            self.explored + other.explored,
            self.learnt + other.learnt,
            self.reward + other.reward,
            self.delay + other.delay,
            self.late + other.late,
            self.expired + other.expired,
            other.estimate or self.estimate,
            self.answers + other.answers,
        )


class Series(msgspec.Struct):
    """Buckets of `width` rows each; the width doubles when there are too many."""

    width: int = 8
    buckets: list[Bucket] = msgspec.field(default_factory=list)
    delays: list[int] = msgspec.field(default_factory=lambda: [0] * (len(_DELAYS) + 1))

    def at(self, seq: int, at: int) -> Bucket:
        """The bucket for this row."""
        if not self.buckets or seq - self.buckets[-1].first_seq >= self.width:
            if len(self.buckets) == MOST:
                pairs = zip(self.buckets[::2], self.buckets[1::2], strict=True)
                self.buckets = [one.join(other) for one, other in pairs]
                self.width *= 2
            if not self.buckets or seq - self.buckets[-1].first_seq >= self.width:
                self.buckets.append(Bucket(seq, at))
        bucket = self.buckets[-1]
        bucket.last_at = at
        return bucket

    def answered(self, bucket: Bucket, *, reward: float, delay: float | None) -> None:
        """Something was learnt, `delay` seconds after it was shown; None where there was no feedback."""
        bucket.learnt += 1
        bucket.reward += reward
        if delay is None:
            return
        bucket.answers += 1
        bucket.delay += delay
        self.delays[sum(delay > edge for edge in _DELAYS)] += 1

    def columns(self) -> dict[str, Any]:
        """The series as the page draws them: one list for each quantity, all of one length."""
        found = self.buckets
        return {
            "seq": [one.first_seq for one in found],
            "at": [one.last_at for one in found],
            "decisions": [one.decisions for one in found],
            "learnt": [one.learnt for one in found],
            "exploration": [one.explored / one.decisions if one.decisions else None for one in found],
            "reward": [one.reward / one.learnt if one.learnt else None for one in found],
            "answers": [one.answers for one in found],
            "delay_seconds": [one.delay / one.answers if one.answers else None for one in found],
            "late": [one.late for one in found],
            "expired": [one.expired for one in found],
            "estimates": [one.estimate for one in found],
        }

    def delay_histogram(self) -> dict[str, list[float]]:
        """How many answers came within how many seconds; the last count is of all that took longer."""
        return {"at_most_seconds": list(map(float, _DELAYS)), "answers": list(map(float, self.delays))}
