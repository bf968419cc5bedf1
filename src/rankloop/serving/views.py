"""What the service tells about its rankers, lists and snapshots. Looks, and changes nothing."""

from __future__ import annotations

import msgspec
import numpy as np

from rankloop.serving.errors import NotFound
from rankloop.serving.log import records
from rankloop.serving.log.decision_state import Outcome, fate_of
from rankloop.serving.log.records import Row
from rankloop.serving.schemas import (
    DeadLettersAnswer,
    DecisionAnswer,
    RankerAnswer,
    SeriesAnswer,
    SnapshotAnswer,
    SnapshotsAnswer,
    StoryRow,
)
from rankloop.serving.served_ranker import Live


async def ranker_answer(live: Live, *, duplicate: bool = False) -> RankerAnswer:
    """One ranker as it stands."""
    fold = live.fold
    n = fold.ranker.n_positions
    decisions = fold.counts.decisions
    return RankerAnswer(
        name=live.name,
        algorithm=fold.config.algorithm,
        summary=fold.ranker.summary,
        rounds=fold.rounds,
        model_seq=fold.applied,
        state_hash=fold.state_hash(),
        current=fold.current(),
        last_seq=await live.store.last_seq(live.name),
        generation=fold.generation,
        frozen=fold.frozen,
        feedback=fold.ranker.feedback.kind,
        feedback_length=None if n is None else fold.ranker.feedback.length(n),
        max_grade=fold.ranker.max_grade,
        parameters=fold.config.parameters,
        policy=fold.config.policy,
        counts=msgspec.structs.asdict(fold.counts),
        parked=sum(map(len, fold.parked.values())),
        exploration_share=fold.counts.explored / decisions if decisions else None,
        last_at=fold.at,
        snapshot_seq=live.snapshot_seq,
        estimates=fold.estimates.report(),
        duplicate=duplicate,
    )


async def decision_answer(live: Live, decision_id: str) -> DecisionAnswer:
    """The whole story of one list."""
    fold = live.fold
    story = (await live.store.stories(live.name, [decision_id]))[decision_id]
    told: dict[int, Outcome] = {}
    fate = fate_of(
        story,
        through=1 << 60,
        policy=fold.config.policy,
        silence_counts=fold.silence_counts,
        told=told,
    )
    if fate is None:
        raise NotFound(f"there is no decision {decision_id!r}", field="decision_id")
    decision = records.read_decision(fate.row.body)
    chances = decision.propensities
    return DecisionAnswer(
        decision_id=decision_id,
        items=fold.names(decision),
        candidates=decision.candidates,
        propensities=None if chances is None else np.frombuffer(chances, "<f8").tolist(),
        explored=decision.explored,
        model_seq=decision.model_seq,
        seq=fate.row.seq,
        at=fate.row.at,
        deadline=decision.deadline,
        key=decision.key.hex(),
        generation=decision.generation,
        context=decision.context,
        activated=fate.activated,
        answered=fate.answer is not None,
        expired=fate.expired,
        rows=[_story_row(row, told.get(row.seq)) for row in story],
    )


def _story_row(row: Row, outcome: Outcome | None) -> StoryRow:
    values = None
    if row.kind == "feedback":
        values = np.frombuffer(records.read_body(row).values, "<f8").tolist()
    return StoryRow(row.seq, row.at, row.kind, row.event_id, values, outcome.status if outcome else None)


async def snapshots_answer(live: Live) -> SnapshotsAnswer:
    """All snapshots, oldest first."""
    found = await live.store.snapshots(live.name)
    return SnapshotsAnswer(
        [
            SnapshotAnswer(one.seq, one.at, one.epoch, one.state_hash, one.config_hash, one.code_hash)
            for one in found
        ]
    )


def series_answer(live: Live) -> SeriesAnswer:
    """The roll-ups."""
    series = live.fold.series
    return SeriesAnswer(live.name, series.width, series.columns(), series.delay_histogram())


def dead_letters_answer(live: Live) -> DeadLettersAnswer:
    """Feedback that came to nothing, newest first."""
    return DeadLettersAnswer(live.fold.counts.dead, list(reversed(live.fold.dead)))
