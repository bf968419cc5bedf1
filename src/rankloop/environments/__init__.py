"""Users with a known truth."""

from rankloop.environments import users
from rankloop.environments.adversaries import adversary, forced_regret
from rankloop.environments.fixed_items import FixedItems
from rankloop.environments.named import named, names

__all__ = ["FixedItems", "adversary", "forced_regret", "named", "names", "users"]
