"""Twenty rounds of each ranker, as text: what it showed, what it heard, and where that left it.

A transcript changes only when a ranker tells another story, which is a change that people who stored tickets or
seeds will notice. If it is meant, write the transcripts anew, look at the difference and commit it:

    RANKLOOP_WRITE_GOLDEN=1 python -m pytest tests/golden
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Ranker, Ranking
from tests import examples

FOLDER = Path(__file__).parent
CLASSES: dict[str, type[Ranker]] = {name: getattr(rankers, name) for name in rankers.__all__}
ROUNDS = 20


def heard(ranker: Ranker, t: int, shown: Ranking) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Feedback without chance: every item takes every grade in turn, neighbours out of step."""
    top = shown.items[: ranker.feedback.length(len(shown.items))]
    return ((3 * top + t) // 2 % ((ranker.max_grade or 1) + 1)).astype(np.float64)


def numbers(values: object) -> str:
    return " ".join(str(value) for value in np.ravel(values).tolist())


def same(told: str, written: str) -> bool:
    """Word by word; numbers up to what the solvers of two machines may differ by."""
    pairs = list(zip(told.split(), written.split(), strict=False))
    return len(told.split()) == len(written.split()) and all(
        one == other or ("." in other and abs(float(one) - float(other)) <= 1e-9 * (1 + abs(float(other))))
        for one, other in pairs
    )


def transcript(played: Iterator[Ranker]) -> str:
    lines = []
    for number, ranker in enumerate(played):
        lines.append(f"== example {number}")
        rng, users = np.random.default_rng(2015), np.random.default_rng(2016)
        for t in range(1, ROUNDS + 1):
            request = ranker.example_context(users)
            shown = ranker.rank(request, rng=rng)
            feedback = heard(ranker, t, shown)
            ranker.learn(shown, feedback)
            memo = "".join(f" memo {numbers(part)}" for part in shown.memo)
            chances = "" if shown.propensities is None else f" chances {numbers(shown.propensities)}"
            mark = "*" if shown.explored else " "
            lines.append(f"{t:3}{mark} {numbers(shown.items)} | {numbers(feedback)}{chances}{memo}".rstrip())
        lines += [f"{name}: {numbers(value)}" for name, value in ranker.state_arrays().items()]
        lines.append(f"current: {numbers(ranker.current(request))}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", CLASSES)
def test_the_story_is_the_one_on_paper(name: str) -> None:
    told = transcript(examples.of_ranker(name))
    path = FOLDER / f"{name}.txt"
    if os.environ.get("RANKLOOP_WRITE_GOLDEN"):
        path.write_text(told)
    assert path.exists(), f"{path.name} is missing; this module says how to write it"
    written = path.read_text()
    assert told == written if CLASSES[name].portable else same(told, written)


def test_there_is_no_transcript_without_a_ranker() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CLASSES)


def test_a_transcript_has_every_round_of_every_example() -> None:
    for name in CLASSES:
        lines = (FOLDER / f"{name}.txt").read_text().splitlines()
        n_examples = len(examples.RANKERS[name])
        assert sum(line.startswith("==") for line in lines) == n_examples
        assert sum(" | " in line or line.endswith(" |") for line in lines) == ROUNDS * n_examples
