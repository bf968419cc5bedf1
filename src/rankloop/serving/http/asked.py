"""What a request asks for beside its body, and what its caller may do."""

from __future__ import annotations

from rankloop.serving.permissions import Permission


class Asked(dict[str, str]):
    """The names in the path and query of a request; `caller`: what its caller may do."""

    __slots__ = ("caller",)

    def __init__(self, names: dict[str, str], caller: Permission) -> None:
        dict.__init__(self, names)
        self.caller = caller
