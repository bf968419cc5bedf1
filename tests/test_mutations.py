"""The list of planted faults is up to date: each can be planted, and its judges are there."""

from __future__ import annotations

from tests.mutations import MUTATIONS, ROOT


def test_every_fault_can_be_planted_and_has_judges() -> None:
    for mutation in MUTATIONS:
        assert mutation.place(ROOT).is_file()
        assert mutation.after != mutation.before, mutation.name
        assert mutation.judges
        for judge in mutation.judges:
            file, _, test = judge.partition("::")
            assert f"def {test.partition('[')[0]}" in (ROOT / file).read_text(), judge
