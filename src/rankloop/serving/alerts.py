"""Alerts about a ranker: exploration that collapses, feedback that stops or comes late, a baseline that is better.

All but the last compare the last hour with the rest of the last day, by the log's own series, and only where there was
enough of both to tell. The last one looks at the interval of the lift, which may be watched at any time: however often
it is looked, an alert that is wrong ever comes about a ranker with a probability of 5% at most.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from rankloop.serving.log.fold import Fold
from rankloop.serving.series import Bucket

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine

_log = logging.getLogger("rankloop.serving")
KINDS = ("exploration", "feedback", "late", "holdout")
_EXPECTED = 20.0  # lists that would have explored, or been answered, at the usual rate
_SHARE = 0.1  # of what was expected, or less
_USUAL_HOURS = 6.0  # of the day before, at least, to know what is usual
_LATE = 10  # late feedback in an hour, at least
_SOON = 900.0  # seconds: where feedback usually takes longer, its absence in an hour tells nothing
_HOUR = 3_600_000
_LOOK_SECONDS = 30


class Alert(NamedTuple):
    """What is not as it should be: one of `KINDS`, and a sentence."""

    kind: str
    sentence: str


class _Sums(NamedTuple):
    decisions: int
    explored: int
    answers: int
    late: int
    delay: float

    @classmethod
    def of(cls, buckets: list[Bucket]) -> _Sums:
        return cls(
            sum(one.decisions for one in buckets),
            sum(one.explored for one in buckets),
            sum(one.answers for one in buckets),
            sum(one.late for one in buckets),
            sum(one.delay for one in buckets),
        )


def alerts_of(fold: Fold, *, now: int) -> list[Alert]:
    """The alerts about one ranker at the time `now`, in milliseconds."""
    recent = fold.series.window("hour", now=now)[1]
    if not recent:
        return []
    hour = _Sums.of(recent)
    before = [one for one in fold.series.window("day", now=now)[1] if one.last_at < now - _HOUR]
    usual = _Sums.of(before)
    found = []
    known = bool(before) and now - before[0].first_at >= (_USUAL_HOURS + 1) * _HOUR and usual.decisions > 0
    # Who changed the policy, perhaps the exploration cap, need not be told what came of it.
    as_before = not any(seq >= before[0].first_seq for seq, *_ in fold.policies.changes) if before else False
    if known and as_before and _fell(hour.explored, usual.explored, hour.decisions, usual.decisions):
        found.append(
            Alert(
                "exploration",
                f"{hour.explored:,} of the last hour's {hour.decisions:,} lists explored, before it were "
                f"{usual.explored / usual.decisions:.1%}",
            )
        )
    soon = usual.answers > 0 and usual.delay / usual.answers <= _SOON
    if (
        known
        and soon
        and not fold.frozen
        and _fell(hour.answers, usual.answers, hour.decisions, usual.decisions)
    ):
        found.append(
            Alert(
                "feedback",
                f"{hour.answers:,} of the last hour's {hour.decisions:,} lists have feedback, before it had "
                f"{usual.answers / usual.decisions:.1%}",
            )
        )
    if hour.late >= _LATE and hour.late > hour.answers:
        found.append(
            Alert("late", f"{hour.late:,} answers of the last hour came late, and {hour.answers:,} in time")
        )
    worse = _worse_than_baseline(fold)
    return found if worse is None else [*found, worse]


def _worse_than_baseline(fold: Fold) -> Alert | None:
    lift = fold.trial.lift()
    if lift is None or lift.high >= 0.0:
        return None
    return Alert(
        "holdout",
        f"the baseline is better: over {fold.trial.difference.n:,} lists the lift in mean reward is between "
        f"{lift.low:.4g} and {lift.high:.4g}",
    )


def _fell(found: int, before: int, lists: int, lists_before: int) -> bool:
    """Whether there is a tenth, or less, of what the rate before lets expect."""
    expected = before / lists_before * lists
    return expected >= _EXPECTED and found <= _SHARE * expected


class AlertWatch:
    """Looks at all rankers now and then, and tells in the service's messages when an alert begins and ends."""

    def __init__(self) -> None:
        self.active: dict[tuple[str, str], str] = {}  # by ranker and kind: the sentence
        self._next = 0

    def tick(self, engine: Engine) -> None:
        """Look, where it is time again."""
        if engine.now() >= self._next:
            self._next = engine.now() + 1000 * _LOOK_SECONDS
            self.look(engine)

    def look(self, engine: Engine) -> None:
        """Look at every ranker now."""
        found = {
            (name, alert.kind): alert.sentence
            for name, served in list(engine.rankers.items())
            if engine.housekeeping.is_mine(name)
            for alert in alerts_of(served.fold, now=engine.now())
        }
        for name, kind in found.keys() - self.active.keys():
            _log.warning("alert %s of ranker %r: %s", kind, name, found[name, kind])
        for name, kind in self.active.keys() - found.keys():
            _log.warning("alert %s of ranker %r is over", kind, name)
        self.active = found

    def sentences(self) -> list[str]:
        """All alerts there are."""
        return [f"ranker {name!r}: {sentence}" for (name, _), sentence in sorted(self.active.items())]
