"""What the service answers about its rankers, lists and snapshots. It reads, and changes nothing."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from rankloop.serving.api import (
    DeadLettersAnswer,
    DecisionAnswer,
    DecisionsAnswer,
    DecisionSummary,
    EventsAnswer,
    Policy,
    RankerAnswer,
    SeriesAnswer,
    SnapshotAnswer,
    SnapshotsAnswer,
    StoryRow,
    TrialAnswer,
)
from rankloop.serving.errors import NotFound, RequestError
from rankloop.serving.log import records
from rankloop.serving.log.candidate_lists import free_of
from rankloop.serving.log.decision_state import Outcome, replay_decision
from rankloop.serving.log.events import events_of
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.guard_rails import rail_of
from rankloop.serving.log.records import Decision, Row
from rankloop.serving.log.stored_features import candidate_names
from rankloop.serving.privacy import read_context
from rankloop.serving.series import WINDOWS, Series, columns
from rankloop.serving.served_ranker import ServedRanker

_LISTS = 20  # newest lists that are shown
_ROWS = 400  # rows that are searched for them
_EVENT_ROWS = 1_000  # rows that are searched for events in one request
_POINTS = 40  # in a sparkline
_SMOOTH = 5  # points that each is the mean of


async def ranker_answer(served: ServedRanker, *, duplicate: bool = False) -> RankerAnswer:
    """One ranker as it stands."""
    fold = served.fold
    n = fold.ranker.n_positions
    decisions = fold.counts.decisions
    return RankerAnswer(
        name=served.name,
        algorithm=fold.config.algorithm,
        summary=fold.ranker.summary,
        rounds=fold.rounds,
        model_seq=fold.applied,
        state_hash=fold.state_hash(),
        current=fold.current(),
        last_seq=await served.store.last_seq(served.name),
        generation=fold.generation,
        frozen=fold.frozen,
        feedback=fold.ranker.feedback.kind,
        feedback_length=None if n is None else fold.ranker.feedback.length(n),
        max_grade=fold.ranker.max_grade,
        parameters=fold.config.parameters,
        policy=Policy(**records.given(fold.config.policy)),
        counts=msgspec.structs.asdict(fold.counts) | {"answered": fold.series.n_answers()},
        parked=sum(map(len, fold.parked.values())),
        exploration_share=fold.counts.explored / decisions if decisions else None,
        last_at=fold.at,
        snapshot_seq=served.snapshot_seq,
        estimates=fold.estimates.report(),
        trial=_trial(fold),
        candidates=(fold.has_items and fold.ranker.no_candidates) or "yes",
        duplicate=duplicate,
        baselines="yes" if fold.ranker.learns_others_lists() else fold.ranker.no_baselines,
        stored_items=len(fold.stored.present),
        stored_features=fold.stored.n_columns,
        feature_names=fold.stored.feature_names,
        not_estimated=fold.estimates.why_not(),
    )


def _trial(fold: Fold) -> TrialAnswer | None:
    """How the ranker compares with the baseline; None as long as no list had one and none was asked for."""
    sums, policy = fold.trial, fold.config.policy
    holdout = policy.holdout if isinstance(policy.holdout, float) else 0.0
    apprentice = policy.apprentice is True
    own, other = sums.ranker, sums.baseline
    if not (apprentice or holdout or own.n or other.n or sums.live is not None):
        return None
    live = sums.live if sums.live is not None else float(not apprentice)
    return TrialAnswer(
        live=live * (1.0 - holdout),
        holdout=holdout,
        ranker_lists=own.n,
        ranker_mean=own.total / own.n if own.n else None,
        baseline_lists=other.n,
        baseline_mean=other.total / other.n if other.n else None,
        lift=sums.lift(),
        agreed=sums.agreed / sums.compared if sums.compared else None,
        at_least=sums.at_least / other.n if other.n else None,
    )


async def decision_answer(served: ServedRanker, decision_id: str) -> DecisionAnswer:
    """The whole story of one list."""
    fold = served.fold
    story = (await served.store.stories(served.name, [decision_id]))[decision_id]
    told: dict[int, Outcome] = {}
    state = replay_decision(
        story,
        through=1 << 60,
        policy=fold.policies,
        silence_counts=fold.silence_counts,
        outcomes=told,
    )
    if state is None:
        raise NotFound(f"there is no decision {decision_id!r}", field="decision_id")
    decision = state.decision
    context = await read_context(served.store, decision.context, ranker=served.name, decision_id=decision_id)
    chances = decision.propensities
    names, free = fold.names(decision), free_of(decision)
    among = None if free is None or free.among is None else [fold.catalogue[i] for i in free.among]
    return DecisionAnswer(
        decision_id=decision_id,
        items=names,
        candidates=candidate_names(fold.stored, decision) if among is None else among,
        propensities=None if chances is None else np.frombuffer(chances, "<f8").tolist(),
        explored=decision.explored,
        model_seq=decision.model_seq,
        seq=state.seq,
        at=state.at,
        deadline=state.deadline,
        key=decision.key.hex(),
        generation=decision.generation,
        context=context.value,
        context_erased=context.erased,
        activated=state.activated,
        answered=state.answer is not None or bool(state.heard),
        expired=state.expired,
        rows=[_story_row(row, told.get(row.seq)) for row in story],
        pinned={} if free is None else {str(position): names[position] for position in sorted(free.pinned)},
        shown_by=_shown_by(decision),
        guard_rail=rail_of(decision),
    )


def _shown_by(decision: Decision) -> Literal["ranker", "baseline"]:
    return "baseline" if decision.trial is not None and decision.trial.would else "ranker"


def _story_row(row: Row, outcome: Outcome | None) -> StoryRow:
    values = None
    if row.kind == "feedback":
        values = np.frombuffer(records.read_body(row).values, "<f8").tolist()
    return StoryRow(row.seq, row.at, row.kind, row.event_id, values, outcome.status if outcome else None)


async def events_answer(served: ServedRanker, *, after: str, limit: str) -> EventsAnswer:
    """The events of up to `limit` rows after row `after`, as far as the ranker has folded its log."""
    if not after.isdecimal() or int(after) >= 1 << 40:
        raise RequestError(f"after must be the number of a row, or 0, got {after!r}", field="after")
    if not limit.isdecimal() or not 1 <= int(limit) <= _EVENT_ROWS:
        raise RequestError(f"limit must be between 1 and {_EVENT_ROWS:,}, got {limit!r}", field="limit")
    store, name, fold, through = served.store, served.name, served.fold, int(after)
    applied = fold.applied
    (first,) = await store.read(name, after=0, limit=1)
    rows = []
    if through < applied:
        rows = await store.read(name, after=through, limit=min(int(limit), applied - through))
    events = await events_of(store, name, fold, rows) if rows else []
    return EventsAnswer(events, rows[-1].seq if rows else through, applied, first.link.hex())


async def snapshots_answer(served: ServedRanker) -> SnapshotsAnswer:
    """All snapshots, oldest first."""
    found = await served.store.snapshots(served.name)
    return SnapshotsAnswer(
        [
            SnapshotAnswer(one.seq, one.at, one.epoch, one.state_hash, one.config_hash, one.code_hash)
            for one in found
        ]
    )


def series_answer(served: ServedRanker, *, window: str, now: int) -> SeriesAnswer:
    """The roll-ups."""
    series = served.fold.series
    if window not in ("all", *WINDOWS):
        raise RequestError(f"window must be all, hour or day, got {window!r}", field="window")
    width, found = series.window(window, now=now)
    return SeriesAnswer(served.name, width, columns(found), series.delay_histogram())


def dead_letters_answer(served: ServedRanker) -> DeadLettersAnswer:
    """Feedback that came to nothing, newest first."""
    return DeadLettersAnswer(served.fold.counts.dead, list(reversed(served.fold.dead)))


async def decisions_answer(served: ServedRanker) -> DecisionsAnswer:
    """The newest lists, found in the last rows of the log."""
    last = await served.store.last_seq(served.name)
    answers: dict[str, Row] = {}
    found: list[DecisionSummary] = []
    for row in reversed(await served.store.read(served.name, after=max(0, last - _ROWS), limit=_ROWS)):
        if row.kind == "feedback" and row.decision is not None:
            answers[row.decision] = row
        elif row.kind == "decision":
            found.append(_summary(served, row, answers.get(row.event_id)))
            if len(found) == _LISTS:
                break
    return DecisionsAnswer(found)


def _summary(served: ServedRanker, row: Row, answer: Row | None) -> DecisionSummary:
    decision = records.read_decision(row.body)
    names = served.fold.names(decision)
    values = None if answer is None else np.frombuffer(records.read_body(answer).values, "<f8").tolist()
    return DecisionSummary(
        row.event_id,
        row.seq,
        row.at,
        names[0],
        len(names),
        decision.explored,
        values,
        _shown_by(decision),
        rail_of(decision),
    )


def sparkline(series: Series) -> list[float | None]:
    """The series in at most 40 points.

    >>> series = Series(width=1)
    >>> for seq in range(1, 201):
    ...     series.answered(seq, seq, reward=float(seq > 100), delay=0.0, estimate={})
    >>> points = sparkline(series)
    >>> len(points), points[0], points[-1]
    (40, 0.0, 1.0)
    """
    size = max(1, -(-len(series.buckets) // _POINTS))
    points: list[float | None] = []
    for end in range(min(size, len(series.buckets)), len(series.buckets) + 1, size):
        piece = series.buckets[max(0, end - _SMOOTH * size) : end]
        learnt = sum(one.learnt for one in piece)
        points.append(sum(one.reward for one in piece) / learnt if learnt else None)
    return points
