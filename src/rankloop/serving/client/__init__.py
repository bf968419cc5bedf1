"""The HTTP client of the ranking service, for threads and for asyncio. It needs httpx and msgspec, and nothing else.

`calls` builds requests and says how answers are read, without input or output; `client` sends, and tries again.
"""

from rankloop.extras import require

require("httpx", "msgspec", extra="client", for_="rankloop.serving.client")

from rankloop.serving.api import (  # noqa: E402, after the sentence
    DecisionAnswer,
    EventAnswer,
    EventsAnswer,
    ExplainAnswer,
    FeaturePart,
    ImportAnswer,
    ItemFeatures,
    ItemReason,
    Policy,
    RankAnswer,
    RankerAnswer,
    SeriesAnswer,
    SnapshotAnswer,
    StoryRow,
)
from rankloop.serving.client.calls import (  # noqa: E402
    Feedback,
    RankloopError,
    ShownList,
    Unreachable,
    Wanted,
)
from rankloop.serving.client.client import AsyncClient, Client  # noqa: E402
from rankloop.serving.verdict_answers import (  # noqa: E402
    ComparisonAnswer,
    Interval,
    Lift,
    PairAnswer,
    TrialAnswer,
)

__all__ = [
    "AsyncClient",
    "Client",
    "ComparisonAnswer",
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
    "PairAnswer",
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
