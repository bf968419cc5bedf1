"""Witnesses of ranking games are checked, term by term."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from rankloop.games import classify, ranking_game
from tests.games.verdicts import changed, refused


def test_terms_are_checked() -> None:
    game = ranking_game(measure="average_precision", n_items=5, k=4)
    verdict = classify(game)
    assert verdict.class_ == "hard"
    terms = verdict.witness.terms
    bent = dataclasses.replace(
        terms, by_sizes={**terms.by_sizes, (0, 1): terms.by_sizes[0, 1] + Fraction(1, 10**6)}
    )
    refused(game, changed(verdict, terms=bent), "do not give the swap")
    refused(game, changed(verdict, unseen=(1, 0, 9)), "none of the terms")
    refused(game, changed(verdict, unseen=(4, 0, 0)), "can be seen by the neighbours")
    refused(game, changed(verdict, blocks=(1, 1, 1, 2)), "between the blocks")
