"""What a key permits: a role, the rankers that it is for, and how much its holder may ask for.

It is kept as one text, which begins with the role: `writer`, or `admin acme.* rankers=20 rate=100`.
"""

from __future__ import annotations

import msgspec

from rankloop.base import one_of
from rankloop.serving.errors import Busy, Forbidden

ROLES = ("reader", "writer", "admin")  # each may do what those before it may


class Permission(msgspec.Struct, frozen=True):
    """A role; names of rankers, or beginnings of names that end in `*`, none for all; quotas, 0 for none."""

    role: str
    rankers: tuple[str, ...] = ()
    most_rankers: int = 0
    rate: float = 0.0  # requests a second, instead of the service's own limit

    def covers(self, ranker: str) -> bool:
        """Whether it is for this ranker.

        >>> mine = Permission("writer", ("acme.*", "news"))
        >>> mine.covers("acme.home"), mine.covers("news"), mine.covers("newsletter"), mine.covers("acme")
        (True, True, False, False)
        """
        return not self.rankers or any(
            ranker == one or (one.endswith("*") and ranker.startswith(one[:-1])) for one in self.rankers
        )

    def check(self, role: str, ranker: str | None) -> None:
        """`Forbidden` unless it allows what needs this role, about this ranker, or about all where that is None."""
        if ROLES.index(self.role) < ROLES.index(role):
            raise Forbidden(f"this needs the role {role}, the key has {self.role}")
        if ranker is not None and not self.covers(ranker):
            raise Forbidden(f"this key is for {', '.join(self.rankers)} only")

    def check_new(self, ranker: str, there: list[str]) -> None:
        """`Forbidden` or `Busy` unless its holder may create a ranker of this name, beside those that are there."""
        self.check("admin", ranker)
        mine = sum(map(self.covers, there))
        if self.most_rankers and ranker not in there and mine >= self.most_rankers:
            raise Busy(f"limit reached: {self.most_rankers:,} rankers with this key")


EVERYTHING = Permission("admin")


def write(permission: Permission) -> str:
    """As it is kept.

    >>> write(Permission("admin", ("acme.*",), most_rankers=20, rate=100.0))
    'admin acme.* rankers=20 rate=100'
    """
    parts = [permission.role]
    if permission.rankers:
        parts.append(",".join(permission.rankers))
    if permission.most_rankers:
        parts.append(f"rankers={permission.most_rankers}")
    if permission.rate:
        parts.append(f"rate={permission.rate:g}")
    return " ".join(parts)


def read(text: str) -> Permission:
    """What `write` wrote; a key that this code cannot read permits nothing.

    >>> read("admin acme.*,news rankers=20")
    Permission(role='admin', rankers=('acme.*', 'news'), most_rankers=20, rate=0.0)
    >>> read("superuser").covers("news")
    False
    """
    role, *rest = text.split(" ")
    rankers: tuple[str, ...] = ()
    given: dict[str, str] = {}
    for part in rest:
        name, equals, value = part.partition("=")
        if equals:
            given[name] = value
        else:
            rankers = tuple(part.split(","))
    try:
        one_of("role", role, ROLES)
        most, rate = int(given.pop("rankers", 0)), float(given.pop("rate", 0.0))
        if given:
            raise ValueError(f"unknown: {', '.join(given)}")
    except ValueError:
        return Permission("reader", ("",))
    return Permission(role, rankers, most, rate)


def permission(role: str, rankers: list[str], most_rankers: int, rate: float) -> Permission:
    """The permission of a new key; ValueError where something about it cannot be meant."""
    one_of("role", role, ROLES)
    for name in rankers:
        if not name or set(name) & set(" ,=") or "*" in name[:-1]:
            raise ValueError(
                f"rankers must be names, or beginnings of names with a * at the end, got {name!r}"
            )
    if most_rankers < 0:
        raise ValueError(f"most_rankers must be 0 or more, got {most_rankers}")
    if not 0 <= rate < 1e9:
        raise ValueError(f"rate must be 0 or more, got {rate}")
    return Permission(role, tuple(rankers), most_rankers, rate)
