"""Users with a known truth."""

from rankloop.environments import users
from rankloop.environments.adversaries import adversary, forced_regret
from rankloop.environments.fixed_items import FixedItems
from rankloop.environments.indistinguishable import Indistinguishable
from rankloop.environments.named import named, names
from rankloop.environments.query_stream import QueryStream

__all__ = [
    "FixedItems",
    "Indistinguishable",
    "QueryStream",
    "adversary",
    "forced_regret",
    "named",
    "names",
    "users",
]
