"""Which ranker to take: an answer to what is known, by what was measured."""

from __future__ import annotations

from rankloop.advice.choose import Advice, advise
from rankloop.advice.measured import World
from rankloop.advice.question import Question

__all__ = ["Advice", "Question", "World", "advise"]
