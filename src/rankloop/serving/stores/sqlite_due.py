"""The search for lists that nobody answered in time, as SQLite does it: by index, without reading what was shown."""

from __future__ import annotations

from typing import Any

from rankloop.serving.stores.due import Due, OpenList

# 1, 2, 3: topics of decisions, feedback, expiries; 4, 5: the ids of the ranker's rows; 6: the last that was searched;
# 7: lists from before this time; 8: milliseconds in which an answer is in time; 9: how many rows.
DUE = """
SELECT id - ?4, topic = ?1, at, event,
    CASE WHEN topic = ?1 AND at < ?7 THEN EXISTS (
        SELECT 1 FROM log WHERE decision = one.event AND id > one.id AND id <= ?5
        AND (topic = ?2 AND at <= one.at + ?8 OR topic = ?3)) END,
    CASE WHEN topic = ?1 AND at < ?7 THEN EXISTS (
        SELECT 1 FROM log WHERE decision = one.event AND id BETWEEN ?4 AND ?5 AND topic = ?2) END
FROM log AS one WHERE id > ?6 AND id <= ?5 ORDER BY id LIMIT ?9
"""


def read_due(rows: list[Any], *, after: int, before: int) -> Due:
    """What the query found."""
    found: list[OpenList] = []
    through = after
    for seq, is_list, at, decision, settled, touched in rows:
        if is_list and at >= before:
            return Due(found, through, at)
        if is_list and not settled:
            found.append(OpenList(seq, decision, bool(touched)))
        through = seq
    return Due(found, through)
