"""What the service answers about its rankers, lists and snapshots. It reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.serving import api, verdict_answers
from rankloop.serving.admission import NotFound
from rankloop.serving.item_counts import feature_parts
from rankloop.serving.log import records
from rankloop.serving.log.candidate_lists import free_of
from rankloop.serving.log.comparison import comparison_of
from rankloop.serving.log.decision_state import Outcome
from rankloop.serving.log.digests import check_row
from rankloop.serving.log.fold import Fold, OtherHistory, fold_through, learnt_rows, state_of
from rankloop.serving.log.guard_rails import bound_of, rail_of
from rankloop.serving.log.records import Decision, Row
from rankloop.serving.log.snapshots import newest_fold
from rankloop.serving.log.stored_features import candidate_names, features_of, request_of
from rankloop.serving.privacy import read_context
from rankloop.serving.series import Series, columns
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import Store, StoreError
from rankloop.serving.verdicts import comparison_answer

_LISTS = 20  # newest lists that are shown
_ROWS = 400  # rows that are searched for them
_POINTS = 40  # in a sparkline
_SMOOTH = 5  # points that each is the mean of


async def ranker_answer(served: ServedRanker, *, duplicate: bool = False) -> api.RankerAnswer:
    """One ranker as it stands."""
    fold = served.fold
    n = fold.ranker.n_positions
    decisions = fold.counts.decisions
    return api.RankerAnswer(
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
        policy=api.Policy(**records.given(fold.config.policy)),
        counts=msgspec.structs.asdict(fold.counts) | {"answered": fold.series.n_answers()},
        parked=sum(map(len, fold.parked.values())) + fold.waiting.n,
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
        comparison=None if (found := comparison_of(fold)) is None else comparison_answer(found),
    )


def _trial(fold: Fold) -> verdict_answers.TrialAnswer | None:
    """How the ranker compares with the baseline; None as long as no list had one and none was asked for."""
    sums, policy = fold.trial, fold.config.policy
    holdout = policy.holdout if isinstance(policy.holdout, float) else 0.0
    apprentice = policy.apprentice is True
    own, other = sums.ranker, sums.baseline
    if not (apprentice or holdout or own.n or other.n or sums.live is not None):
        return None
    live = sums.live if sums.live is not None else float(not apprentice)
    return verdict_answers.TrialAnswer(
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


async def decision_answer(served: ServedRanker, decision_id: str) -> api.DecisionAnswer:
    """The whole story of one list."""
    fold = served.fold
    story = (await served.store.stories(served.name, [decision_id]))[decision_id]
    told: dict[int, Outcome] = {}
    state = state_of(fold, story, outcomes=told)
    if state is None:
        raise NotFound(f"there is no decision {decision_id!r}", field="decision_id")
    decision = state.decision
    context = await read_context(served.store, decision.context, ranker=served.name, decision_id=decision_id)
    chances = decision.propensities
    names, free = fold.names(decision), free_of(decision)
    among = None if free is None or free.among is None else [fold.catalogue[i] for i in free.among]
    return api.DecisionAnswer(
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
    return "ranker" if decision.key and not (decision.trial and decision.trial.would) else "baseline"


def _story_row(row: Row, outcome: Outcome | None) -> api.StoryRow:
    values = None
    if row.kind == "feedback":
        values = np.frombuffer(records.read_body(row).values, "<f8").tolist()
    return api.StoryRow(row.seq, row.at, row.kind, row.event_id, values, outcome.status if outcome else None)


async def events_answer(served: ServedRanker, *, after: int, limit: int) -> api.EventsAnswer:
    """The events of up to `limit` rows after row `after`, as far as the ranker has folded its log."""
    store, name, fold = served.store, served.name, served.fold
    applied = fold.applied
    (first,) = await store.read(name, after=0, limit=1)
    rows = []
    if after < applied:
        rows = await store.read(name, after=after, limit=min(limit, applied - after))
    events = await events_of(store, name, fold, rows) if rows else []
    return api.EventsAnswer(events, rows[-1].seq if rows else after, applied, first.link.hex())


async def snapshots_answer(served: ServedRanker) -> api.SnapshotsAnswer:
    """All snapshots, oldest first."""
    found = await served.store.snapshots(served.name)
    return api.SnapshotsAnswer(msgspec.convert(found, list[api.SnapshotAnswer], from_attributes=True))


def series_answer(served: ServedRanker, *, window: str, now: int) -> api.SeriesAnswer:
    """The roll-ups."""
    series = served.fold.series
    width, found = series.window(window, now=now)
    return api.SeriesAnswer(served.name, width, columns(found), series.delay_histogram())


def dead_letters_answer(served: ServedRanker) -> api.DeadLettersAnswer:
    """Feedback that came to nothing, newest first."""
    return api.DeadLettersAnswer(served.fold.counts.dead, list(reversed(served.fold.dead)))


async def decisions_answer(served: ServedRanker) -> api.DecisionsAnswer:
    """The newest lists, found in the last rows of the log."""
    last = await served.store.last_seq(served.name)
    answers: dict[str, Row] = {}
    found: list[api.DecisionSummary] = []
    for row in reversed(await served.store.read(served.name, after=max(0, last - _ROWS), limit=_ROWS)):
        if row.kind == "feedback" and row.decision is not None:
            answers[row.decision] = row
        elif row.kind == "decision":
            found.append(_summary(served, row, answers.get(row.event_id)))
            if len(found) == _LISTS:
                break
    return api.DecisionsAnswer(found)


def _summary(served: ServedRanker, row: Row, answer: Row | None) -> api.DecisionSummary:
    decision = records.read_decision(row.body)
    names = served.fold.names(decision)
    values = None if answer is None else np.frombuffer(records.read_body(answer).values, "<f8").tolist()
    return api.DecisionSummary(
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


# Why each item of a list stood where it stood, as data and in words.


_FEATURES = 3  # that weighed most
_MOST = 20_000  # rows that are folded again; by default there is a snapshot after as many
_INT = np.dtype("<i4")


async def explain_answer(served: ServedRanker, decision_id: str) -> api.ExplainAnswer:
    """Explain one list from its row and the state that it was drawn from, or the present one where that is gone."""
    state = await served.decision_state(decision_id)
    if state is None:
        raise NotFound(f"there is no decision {decision_id!r}", field="decision_id")
    decision = state.decision
    context = await read_context(served.store, decision.context, ranker=served.name, decision_id=decision_id)
    then = await state_at(served, decision.model_seq)
    fold = served.fold if then is None else then
    # What is not of the state: the policy that the list was drawn under.
    bound = bound_of(served.fold.policies.at(decision.model_seq + 1))
    return api.ExplainAnswer(
        decision_id,
        decision.explored,
        decision.model_seq,
        fold.applied,
        _reasons(fold, decision, bounded=bool(bound), then=then is not None),
        context.erased,
        "present" if then is None else "decision",
    )


async def state_at(served: ServedRanker, seq: int, *, most: int = _MOST) -> Fold | None:
    """What a ranker knew after row `seq`, folded again from the nearest snapshot: to look at, and not to change."""
    if served.fold.applied == seq:
        return served.fold
    async with served.looking_back:  # one at a time: it costs time and a second ranker's memory
        try:
            fold, _ = await newest_fold(served.store, served.name, through=seq)
            if not 0 <= seq - fold.applied <= most:
                return None
            await fold_through(fold, served.store, served.name, seq)
        except (StoreError, OtherHistory, ValueError):  # damaged, or of another code: `verify` says how
            return None
        return fold


def _reasons(fold: Fold, decision: Decision, *, bounded: bool, then: bool) -> list[api.ItemReason]:
    free, names = free_of(decision), fold.names(decision)
    numbers = np.frombuffer(decision.shown, _INT).astype(np.int64)
    pinned = {} if free is None else free.pinned
    try:
        features = features_of(fold.stored, decision)
        request = request_of(fold.ranker, fold.stored, decision)
    except ValueError:  # they were replaced long ago
        features = request = None
    places = _places(fold, None if free is None else free.among, request)
    weights = fold.ranker.weights_now()
    chances = None if decision.propensities is None else np.frombuffer(decision.propensities, "<f8").tolist()
    would = _shown_by(decision) == "baseline"
    chosen = [
        places.get(number) for position, number in enumerate(numbers.tolist()) if position not in pinned
    ]
    drawn = then and chosen != list(range(len(chosen)))
    found = []
    for position, (name, number) in enumerate(zip(names, numbers.tolist(), strict=True)):
        reason: Literal["pinned", "baseline", "ranker"] = (
            "pinned" if position in pinned else "baseline" if would else "ranker"
        )
        parts: list[api.FeaturePart] = []
        score = None
        if features is not None and weights is not None and number < len(features):
            score, parts = _score(features[number], weights, fold.stored.feature_names)
        chance = None if chances is None else chances[position]
        place = places.get(number)
        words = " ".join(
            _fixed(reason, bounded)
            or [
                *_standing(place, len(places), then),
                *_drawing(decision, chance, drawn),
                *_weighing(parts),
            ]
        )
        found.append(api.ItemReason(name, position, reason, chance, place, score, parts, words))
    return found


def _places(fold: Fold, among: NDArray[np.int64] | None, request: Any) -> dict[int, int]:
    """Of each candidate its place in the order that the ranker holds best, as far as it has one."""
    if not fold.has_items:
        order = [] if request is None else fold.ranker.current(request).tolist()
    else:
        order = fold.active[fold.ranker.current()].tolist()
    if among is not None:
        there = set(among.tolist())
        order = [number for number in order if number in there]
    return {number: place for place, number in enumerate(order)}


def _score(
    row: NDArray[np.float32], weights: NDArray[np.float64], names: list[str]
) -> tuple[float, list[api.FeaturePart]]:
    parts = feature_parts(row, weights, names)
    total = 0.0
    for one in parts:
        total += one.part
    most = sorted(parts, key=lambda one: -abs(one.part))[:_FEATURES]
    return total, [one for one in most if one.part != 0.0]


def _fixed(reason: str, bounded: bool) -> list[str]:
    if reason == "pinned" and bounded:
        return [
            "The request pinned it here, or the bound on displacements left it at its place in the baseline."
        ]
    if reason == "pinned":
        return ["The request pinned it here."]
    return ["The application's own list was shown."] if reason == "baseline" else []


def _standing(place: int | None, n_places: int, then: bool) -> list[str]:
    if place is None:
        return []
    where = f"in place {place + 1} of {n_places}"
    if then:
        return [f"The order that the ranker estimated to be best had it {where}."]
    now = f"The order that the ranker now estimates to be best has it {where}"
    return [f"{now}; its state when it drew the list is not kept."]


def _drawing(decision: Decision, chance: float | None, drawn: bool) -> list[str]:
    """How the list came about; `drawn`: it differs from the best order of its moment."""
    rail = rail_of(decision)
    if rail == "greedy":
        return ["The exploration cap let the best list of the moment be shown."]
    told = [] if chance is None else [f"It had a chance of {chance:.1%} of standing here."]
    if decision.explored:
        told.append("The list explored.")
    elif drawn and not rail:
        told.append("The ranker draws its lists, and this one differs from that order.")
    else:
        told.append("The list did not explore.")
    if rail == "moved":
        told.append("The bound on displacements moved items of the list.")
    if rail == "groups":
        told.append("The bound on displacements let the ranker order groups of neighbours of the baseline.")
    return told


def _weighing(parts: list[api.FeaturePart]) -> list[str]:
    if not parts:
        return []
    most = parts[0]
    called = f"Feature {most.feature}" if most.name is None else f"{most.name!r}"
    return [f"{called} weighs most: {most.value:.4g} times {most.weight:.4g} is {most.part:.4g}."]


# What happens to a ranker, row after row of its log, as events for others: what was learnt, and what was changed.


Event = dict[str, Any]
_ABOUT_LISTS = ("decision", "feedback", "expire")

_CHANGES: dict[str, Callable[[Any], Event]] = {
    "config": lambda body: {"algorithm": body.algorithm, "parameters": body.parameters},
    "reset": lambda body: {"algorithm": body.algorithm, "parameters": body.parameters},
    "items": lambda body: {"add": body.add, "retire": body.retire},
    "freeze": lambda body: {"frozen": body.frozen},
    "promote": lambda body: {"share": body.share},
    "rollback": lambda body: {"to_seq": body.to_seq},
    "policy": lambda body: {"policy": msgspec.to_builtins(body.policy)},
    "import": lambda body: {"source": body.source, "part": body.part, "last": body.last},
    "upgrade": lambda body: {"version": body.version},
}


async def events_of(store: Store, ranker: str, fold: Fold, rows: list[Row]) -> list[Event]:
    """The events of rows that follow each other, all of which are folded."""
    decisions = {_decision(row) for row in rows if row.kind in _ABOUT_LISTS}
    stories = await store.stories(ranker, sorted(decisions)) if decisions else {}
    frozen = await _frozen_before(store, ranker, rows[0].seq)
    events = []
    for row in rows:
        check_row(row)
        if row.kind in ("freeze", "reset"):
            frozen = _freezes(row)
        about: list[Event] = []
        if row.kind in _CHANGES:
            about = [_CHANGES[row.kind](records.read_body(row))]
        elif row.kind in _ABOUT_LISTS and not frozen:
            about = _learnt(fold, row, stories[_decision(row)])
        kind = "learnt" if row.kind in _ABOUT_LISTS else row.kind
        head = {"id": f"{ranker}/{row.seq}", "ranker": ranker, "seq": row.seq, "at": row.at, "kind": kind}
        events += [head | one for one in about]
    return events


def _decision(row: Row) -> str:
    return row.event_id if row.kind == "decision" else row.decision or ""


async def _frozen_before(store: Store, ranker: str, seq: int) -> bool:
    rows = [*await store.rows_of(ranker, "freeze"), *await store.rows_of(ranker, "reset")]
    before = [row for row in rows if row.seq < seq]
    return bool(before) and _freezes(max(before, key=lambda row: row.seq))


def _freezes(row: Row) -> bool:
    return row.kind == "freeze" and bool(records.read_body(row).frozen)


def _learnt(fold: Fold, row: Row, story: list[Row]) -> list[Event]:
    """What this row made the ranker learn: feedback, a deadline, or a list whose feedback had come before it."""
    state, learnt = learnt_rows(fold, story, through=row.seq)
    if state is None:
        return []
    chances = state.decision.propensities
    return [
        {
            "decision_id": _decision(row),
            "items": fold.names(state.decision),
            fold.ranker.feedback.kind: values.tolist(),
            "propensities": None if chances is None else np.frombuffer(chances, "<f8").tolist(),
            "explored": state.decision.explored,
        }
        for one, values in learnt
        if one.seq == row.seq or (row.kind == "decision" and one.seq < row.seq)
    ]
