"""The HTTP client of the ranking service, for threads and for asyncio. It needs httpx and nothing else.

`calls` builds requests, `answers` reads what comes back, `retrying` decides what follows a failure; none of them does
input or output. `sync_client` and `async_client` send.
"""

from rankloop.extras import require
from rankloop.serving.client.answers import (
    EventAnswer,
    EventsAnswer,
    Interval,
    Lift,
    RankAnswer,
    RankerAnswer,
    SeriesAnswer,
    SnapshotAnswer,
    TrialAnswer,
)
from rankloop.serving.client.batches import Wanted
from rankloop.serving.client.calls import Feedback
from rankloop.serving.client.catalogue import ItemFeatures
from rankloop.serving.client.decision_answer import DecisionAnswer, StoryRow
from rankloop.serving.client.errors import RankloopError, Unreachable
from rankloop.serving.client.explaining import ExplainAnswer, FeaturePart, ItemReason
from rankloop.serving.client.importing import ImportAnswer, ShownList
from rankloop.serving.client.policy import Policy

require("httpx", extra="client", for_="rankloop.serving.client")

from rankloop.serving.client.async_client import AsyncClient  # noqa: E402, after the sentence
from rankloop.serving.client.sync_client import Client  # noqa: E402, after the sentence

__all__ = [
    "AsyncClient",
    "Client",
    "DecisionAnswer",
    "EventAnswer",
    "EventsAnswer",
    "ExplainAnswer",
    "FeaturePart",
    "Feedback",
    "ImportAnswer",
    "Interval",
    "ItemFeatures",
    "ItemReason",
    "Lift",
    "Policy",
    "RankAnswer",
    "RankerAnswer",
    "RankloopError",
    "SeriesAnswer",
    "ShownList",
    "SnapshotAnswer",
    "StoryRow",
    "TrialAnswer",
    "Unreachable",
    "Wanted",
]
