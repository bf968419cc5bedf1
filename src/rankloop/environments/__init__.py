"""Simulated users with known preferences."""

from rankloop.environments import users
from rankloop.environments.adversaries import adversary, forced_regret
from rankloop.environments.click_fraud import Attacked, Promoted
from rankloop.environments.click_matrix import ClickMatrix
from rankloop.environments.click_users import ClickUsers
from rankloop.environments.clicked_queries import ClickedQueries
from rankloop.environments.corrupted import Corrupted
from rankloop.environments.drifting import Drifting
from rankloop.environments.fixed_items import FixedItems
from rankloop.environments.indistinguishable import Indistinguishable
from rankloop.environments.lower_bound import LowerBound
from rankloop.environments.named import named, names
from rankloop.environments.periodic import Periodic
from rankloop.environments.position_based import PositionBased
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
