"""A GPU of Python: the generated loop over the CPU's kernels, one run after the other."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from rankloop.simulation import cuda

PIECE = 37  # rounds of a launch


class Device:
    """What `cuda.Device` is for the rest."""

    def play(self, program: cuda.Program, batch: cuda.Batch, show: Callable[[int], None]) -> None:
        thread = SimpleNamespace(grid=lambda axes: self.run, local=SimpleNamespace(array=np.empty))
        loop = program.function(thread)
        loop.__globals__["next_word"] = cuda.next_word.plain  # type: ignore[attr-defined]
        left = batch.runs[0].rounds
        while left:
            piece = min(PIECE, left)
            for self.run in range(len(batch.runs)):
                loop(piece, *batch.arrays)
            left -= piece
            show(piece * len(batch.runs))
