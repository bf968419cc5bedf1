"""Compare rankers by the clicks on one list that is made from the lists of all of them.

Two rankers: interleaving. More: multileaving. Each method makes a list from the rankings and says what a click at each
of its positions is worth to each ranker.
"""

from rankloop.feedback.interleaving.multileaving import Distribution, Multileaved, Multileaving
from rankloop.feedback.interleaving.optimised import Optimised, Plan
from rankloop.feedback.interleaving.probabilistic import Probabilistic
from rankloop.feedback.interleaving.team_draft import TeamDraft

__all__ = ["Distribution", "Multileaved", "Multileaving", "Optimised", "Plan", "Probabilistic", "TeamDraft"]
