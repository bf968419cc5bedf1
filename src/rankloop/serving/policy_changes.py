"""Changes of a ranker's policy while it runs. Each is a row of its log, and counts for lists from there on."""

from __future__ import annotations

import msgspec

from rankloop.serving.admission import check_policy, digest_of, refuse
from rankloop.serving.api import EventAnswer, PolicyRequest
from rankloop.serving.clock import new_id
from rankloop.serving.engine import Engine
from rankloop.serving.errors import Conflict, RequestError
from rankloop.serving.log import records
from rankloop.serving.log.guard_rails import check_rails
from rankloop.serving.log.records import Entry, check_answers
from rankloop.serving.outcomes import event_answer


async def change_policy(engine: Engine, name: str, request: PolicyRequest) -> EventAnswer:
    """Change the policy of a ranker; the same event ID again changes nothing."""
    served = await engine.find_to_write(name)
    fold = served.fold
    wanted = records.given(request)
    wanted.pop("event_id", None)
    if not wanted:
        raise RequestError("name something of the policy that is to change", field="policy")
    for seq, event_id, policy in fold.policies.changes:
        if event_id == request.event_id:
            if any(getattr(policy, field) != value for field, value in wanted.items()):
                raise Conflict(f"event {event_id!r} changed something else (row {seq})", field="event_id")
            return EventAnswer("duplicate", seq, duplicate=True)
    config = msgspec.structs.replace(
        fold.config, policy=msgspec.structs.replace(fold.config.policy, **wanted)
    )
    check_policy(config)
    refuse(lambda: check_answers(config.policy, fold.ranker), field="answers")
    refuse(lambda: check_rails(config.policy, fold.ranker, has_items=fold.has_items), field="displacement")
    body = records.encode(records.PolicyChange(request.event_id or new_id(), config.policy))
    number = str(len(fold.policies.changes) + 1)
    return event_answer(await engine.write(Entry(name, "policy", number, body, digest_of(body))))
