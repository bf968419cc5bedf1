"""What folding a row may need beside the row itself, and what stops a fold."""

from __future__ import annotations

from typing import Any

from rankloop.serving.log.decision_state import DecisionState
from rankloop.serving.log.digests import BadRow
from rankloop.serving.log.records import Row


class RelatedRows:
    """What the rows to be folded are about: decisions, and feedback that came before its decision."""

    def __init__(self) -> None:
        self.states: dict[str, DecisionState] = {}
        self.early: dict[str, list[Row]] = {}
        self.parts: dict[int, list[Row]] = {}  # by the last row of an import: the rows of its earlier parts
        self.contents: dict[int, Any] = {}  # by row: what its body was written from, where that is at hand
        self.learning: dict[int, Any] = {}  # likewise: `imports.Learning`, where it was done beforehand


class OtherHistory(BadRow):
    """A row does not follow the one that was folded before it: the log has another history than this state."""

    def __init__(self, seq: int) -> None:
        super().__init__(seq, "does not follow the row before it")
