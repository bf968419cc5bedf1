"""What a ranker knew at an earlier row of its log: folded again from the nearest snapshot before it."""

from __future__ import annotations

from rankloop.serving.log.fold import Fold, OtherHistory
from rankloop.serving.log.reader import fold_through
from rankloop.serving.log.snapshots import newest_fold
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import StoreError

_MOST = 20_000  # rows that are folded again; by default there is a snapshot after as many


async def state_at(served: ServedRanker, seq: int, *, most: int = _MOST) -> Fold | None:
    """The state of a ranker after row `seq`, to look at and not to change."""
    if served.fold.applied == seq:
        return served.fold
    async with served.looking_back:  # one at a time: it costs time and a second ranker's memory
        try:
            fold, _ = await newest_fold(served.store, served.name, through=seq)
            if not 0 <= seq - fold.applied <= most:
                return None
            await fold_through(fold, served.store, served.name, seq)
        except (StoreError, OtherHistory, ValueError):  # damaged, or of another code: `verify` says how
            return None
        return fold
