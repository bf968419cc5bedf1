"""Series for the dashboard: a bounded number of buckets, however long the log. When they are full, pairs are joined.

Everything in a bucket follows from rows of the log, so a roll-up can always be built anew.
"""

from __future__ import annotations

import bisect
from typing import Any

import msgspec

MOST = 240  # buckets in a series
WINDOWS = {"hour": (60_000, 60), "day": (900_000, 96)}  # milliseconds of a bucket, and how many are kept
_HOUR, _DAY = WINDOWS["hour"][0], WINDOWS["day"][0]
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
    """Buckets of `width` rows each; the width doubles when there are too many. Beside them, the last hour and day."""

    width: int = 8
    buckets: list[Bucket] = msgspec.field(default_factory=list)
    delays: list[int] = msgspec.field(default_factory=lambda: [0] * (len(_DELAYS) + 1))
    hour: list[Bucket] = msgspec.field(default_factory=list)
    day: list[Bucket] = msgspec.field(default_factory=list)

    def at(self, seq: int, at: int) -> tuple[Bucket, Bucket, Bucket]:
        """The buckets for this row: of all time, of the last hour, of the last day."""
        if self.buckets and self.hour and self.day:
            now = self.buckets[-1], self.hour[-1], self.day[-1]
            if (
                seq - now[0].first_seq < self.width
                and at - now[1].first_at < _HOUR
                and at - now[2].first_at < _DAY
            ):  # as nearly always, the newest ones
                now[0].last_at = now[1].last_at = now[2].last_at = at
                return now
        if not self.buckets or seq - self.buckets[-1].first_seq >= self.width:
            if len(self.buckets) == MOST:
                pairs = zip(self.buckets[::2], self.buckets[1::2], strict=True)
                self.buckets = [one.join(other) for one, other in pairs]
                self.width *= 2
            if not self.buckets or seq - self.buckets[-1].first_seq >= self.width:
                self.buckets.append(Bucket(seq, at))
        bucket = self.buckets[-1]
        bucket.last_at = at
        return (
            bucket,
            _timed(self.hour, seq, at, *WINDOWS["hour"]),
            _timed(self.day, seq, at, *WINDOWS["day"]),
        )

    def decided(self, seq: int, at: int, *, explored: bool) -> None:
        for bucket in self.at(seq, at):
            bucket.decisions += 1
            if explored:
                bucket.explored += 1

    def was_late(self, seq: int, at: int) -> None:
        for bucket in self.at(seq, at):
            bucket.late += 1

    def has_expired(self, seq: int, at: int) -> None:
        for bucket in self.at(seq, at):
            bucket.expired += 1

    def answered(
        self, seq: int, at: int, *, reward: float, delay: float | None, estimate: dict[str, float]
    ) -> None:
        """Something was learnt, `delay` seconds after it was shown; None where there was no feedback."""
        for bucket in self.at(seq, at):
            bucket.estimate = estimate
            bucket.learnt += 1
            bucket.reward += reward
            if delay is not None:
                bucket.answers += 1
                bucket.delay += delay
        if delay is not None:
            self.delays[bisect.bisect_left(_DELAYS, delay)] += 1

    def heard(self, seq: int, at: int, *, delay: float) -> None:
        """Feedback came, `delay` seconds after its list, from which nothing is learnt."""
        for bucket in self.at(seq, at):
            bucket.answers += 1
            bucket.delay += delay
        self.delays[bisect.bisect_left(_DELAYS, delay)] += 1

    def window(self, name: str, *, now: int) -> tuple[int, list[Bucket]]:
        """The buckets of "all" time, or of the last "hour" or "day" before `now`; and their width."""
        if name == "all":
            return self.width, self.buckets
        width, most = WINDOWS[name]
        kept: list[Bucket] = getattr(self, name)
        return width, [one for one in kept if one.first_at >= now - width * most]

    def n_answers(self) -> int:
        """How many lists have feedback that counts, without silence that was taken for an answer."""
        return sum(one.answers for one in self.buckets)

    def delay_histogram(self) -> dict[str, list[float]]:
        """How many answers came within how many seconds; the last count is of all that took longer."""
        return {"at_most_seconds": list(map(float, _DELAYS)), "answers": list(map(float, self.delays))}


def columns(found: list[Bucket]) -> dict[str, Any]:
    """Buckets as the page draws them: one list for each quantity, all of one length."""
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


def _timed(kept: list[Bucket], seq: int, at: int, width: int, most: int) -> Bucket:
    """The bucket of this time; those that are too old are let go."""
    first = at - at % width
    if not kept or kept[-1].first_at < first:
        while kept and kept[0].first_at <= first - width * most:
            del kept[0]
        kept.append(Bucket(seq, first))
    kept[-1].last_at = at
    return kept[-1]
