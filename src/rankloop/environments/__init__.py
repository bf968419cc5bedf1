"""Simulated users with known preferences."""

from rankloop.environments import users
from rankloop.environments.adversaries import Indistinguishable, adversary, forced_regret
from rankloop.environments.click_fraud import Attacked, Promoted
from rankloop.environments.click_users import ClickUsers
from rankloop.environments.click_worlds import (
    ClickMatrix,
    Corrupted,
    Drifting,
    LowerBound,
    Periodic,
    PositionBased,
)
from rankloop.environments.clicked_queries import ClickedQueries
from rankloop.environments.fixed_items import FixedItems
from rankloop.environments.named import named, names
from rankloop.environments.query_stream import QueryStream

__all__ = [
    "Attacked",
    "ClickMatrix",
    "ClickUsers",
    "ClickedQueries",
    "Corrupted",
    "Drifting",
    "FixedItems",
    "Indistinguishable",
    "LowerBound",
    "Periodic",
    "PositionBased",
    "Promoted",
    "QueryStream",
    "adversary",
    "forced_regret",
    "named",
    "names",
    "users",
]
