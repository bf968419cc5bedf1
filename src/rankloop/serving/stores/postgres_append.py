"""How the PostgreSQL store appends a batch: one statement, which calls one function inside the database.

The rankers of a batch are locked one after the other. Under its lock the rows of each are numbered, stamped and linked;
then the rows of all of them are inserted at once. What every batch needs is written out in the function rather than
called: PostgreSQL parses and plans a function in the language SQL anew at each call, unless it can put it in line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rankloop.serving.log.digests import content
from rankloop.serving.log.records import NUMBER_OF_KIND, Entry, Row
from rankloop.serving.stores.contract import Appended

CALL = (
    "SELECT place, fresh, seq, at, link, before, kind, event, body, digest, decision FROM append($1, $2::text[], "
    "$3::int[], $4::text[], $5::text[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bigint[], $10::bytea[], "
    "$11::bigint[], $12, $13, $14, $15, $16)"
)

APPEND = """
CREATE OR REPLACE FUNCTION append(
    given_at bigint, names text[], kinds int[], events text[], decisions text[], digests bytea[], bodies bytea[],
    contents bytea[], drawn_seqs bigint[], drawn_links bytea[], known_through bigint[], wanted_epoch bigint,
    expected bigint, tolerance bigint, seen bigint, quiet boolean)
RETURNS TABLE (place int, fresh boolean, seq bigint, at bigint, kind int, event text, body bytea, digest bytea,
    decision text, link bytea, before bytea)
-- The plans are the same for all batches: they are made once for each connection.
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    n int := cardinality(names);
    first int := 1;
    final int;
    mine ranker%ROWTYPE;
    lag bigint;
    clock_at bigint;
    now_at bigint;
    next_seq bigint;
    last_link bytea;
    drawn_seq bigint;
    drawn_link bytea;
    old bigint[];
    any_old boolean := false;
    -- For each place the number of the ranker, and what the row gets where it is new.
    ids int[];
    seqs bigint[];
    ats bigint[];
    links bytea[];
    befores bytea[];
BEGIN
    SELECT behind INTO lag FROM log_clock;
    IF expected IS NOT NULL AND abs(clock_of_database() - lag - expected) > tolerance THEN
        PERFORM check_clock(expected, tolerance, seen);
        SELECT behind INTO lag FROM log_clock;
    END IF;
    WHILE first <= n LOOP
        final := first;
        WHILE final < n AND names[final + 1] = names[first] LOOP
            final := final + 1;
        END LOOP;
        IF kinds[first] = 0 THEN
            INSERT INTO ranker (name, link) SELECT names[first], beginning(value || '/' || names[first])
                FROM meta WHERE name = 'timeline' ON CONFLICT (name) DO NOTHING;
        END IF;
        -- From here to the commit nobody else numbers rows of this ranker.
        SELECT * INTO STRICT mine FROM ranker WHERE name = names[first] FOR UPDATE;
        IF mine.place <> 'here' THEN
            PERFORM check_place(mine.name, mine.place);
        END IF;
        IF wanted_epoch IS NOT NULL THEN
            PERFORM check_epoch(mine.id, wanted_epoch);
        END IF;
        IF mine.closed_through <> known_through[first] THEN
            RAISE EXCEPTION 'segments: rows up to % were moved', mine.closed_through;
        END IF;
        clock_at := coalesce(given_at, clock_of_database() - lag);
        now_at := greatest(mine.last_at, clock_at + mine.ahead);
        next_seq := mine.last_seq;
        last_link := mine.link;
        drawn_seq := NULL;
        -- A subquery for each row, so that it is the index that is asked, whatever the planner thinks of the tables.
        old := ARRAY(SELECT (SELECT log.seq FROM log
                WHERE log.ranker = mine.id AND log.kind = kinds[i] AND log.event = events[i])
            FROM generate_series(first, final) AS i);
        FOR i IN first .. final LOOP
            -- Most decisions of a batch were drawn from one state: look it up once.
            IF drawn_seqs[i] IS NOT NULL
                AND (drawn_seqs[i] IS DISTINCT FROM drawn_seq OR drawn_links[i] IS DISTINCT FROM drawn_link) THEN
                PERFORM check_history(mine.id, drawn_seqs[i], drawn_links[i]);
                drawn_seq := drawn_seqs[i];
                drawn_link := drawn_links[i];
            END IF;
            ids[i] := mine.id;
            IF old[i - first + 1] IS NULL THEN
                IF kinds[i] = 1 AND drawn_seqs[i] < mine.changed THEN
                    RAISE EXCEPTION 'stale: ranker % was changed by row %', mine.name, mine.changed;
                END IF;
                next_seq := next_seq + 1;
                -- Whatever is not about lists (`records.ABOUT_LISTS`) changes the ranker.
                IF kinds[i] NOT IN (1, 2, 3, 4, 9, 10) THEN
                    mine.changed := next_seq;
                END IF;
                seqs[i] := next_seq;
                ats[i] := now_at;
                befores[i] := last_link;
                last_link := next_link(last_link, next_seq, now_at, contents[i]);
                links[i] := last_link;
            ELSE
                any_old := true;
                seqs[i] := NULL;
                ats[i] := NULL;
                befores[i] := NULL;
                links[i] := NULL;
            END IF;
        END LOOP;
        IF next_seq > mine.last_seq THEN
            -- A new lead is kept where the clock stood still since the row before; otherwise it is the same as before.
            UPDATE ranker SET last_seq = next_seq, last_at = now_at, link = last_link, changed = mine.changed,
                ahead = CASE WHEN clock_at + ahead < now_at THEN now_at - clock_at ELSE ahead END
                WHERE id = mine.id;
            -- Followers of a log are told its name. A hint: they look at all logs once a second.
            IF NOT quiet THEN
                PERFORM pg_notify('rankloop_' || current_schema(), mine.name);
            END IF;
        END IF;
        first := final + 1;
    END LOOP;
    INSERT INTO log (ranker, seq, at, kind, event, decision, digest, body, link)
        SELECT one.* FROM unnest(ids, seqs, ats, kinds, events, decisions, digests, bodies, links)
            AS one (ranker, seq, at, kind, event, decision, digest, body, link)
        WHERE one.seq IS NOT NULL;
    -- Of rows that were written just now the sender has the rest.
    RETURN QUERY SELECT one.place::int, true, one.seq, one.at, NULL::int, NULL::text, NULL::bytea, NULL::bytea,
            NULL::text, one.link, one.before
        FROM unnest(seqs, ats, links, befores) WITH ORDINALITY AS one (seq, at, link, before, place)
        WHERE one.seq IS NOT NULL;
    IF any_old THEN
        RETURN QUERY SELECT one.place::int, false, log.seq, log.at, log.kind, log.event, log.body, log.digest,
                log.decision, log.link, coalesce(
                    (SELECT older.link FROM log AS older WHERE older.ranker = log.ranker AND older.seq = log.seq - 1),
                    (SELECT gap.link FROM gap WHERE gap.ranker = log.ranker AND gap.seq = log.seq - 1))
            FROM unnest(ids, kinds, events, seqs) WITH ORDINALITY AS one (ranker, kind, event, new_seq, place),
            LATERAL (SELECT * FROM log WHERE log.ranker = one.ranker AND log.kind = one.kind AND log.event = one.event
                OFFSET 0) AS log
            WHERE one.new_seq IS NULL;
    END IF;
END $$;
"""


class Batch:
    """Entries as the function takes them: each once, and those of one ranker together.

    entries: what to append.
    through: for each, the last row of its ranker that is known to be in a segment.
    """

    def __init__(self, entries: list[Entry], through: list[int]) -> None:
        self._entries = entries
        firsts: dict[tuple[str, str, str], int] = {}
        # One that comes twice in a batch is found by its second coming, as it would be by a later batch.
        self._firsts = [
            firsts.setdefault((one.ranker, one.kind, one.event_id), i) for i, one in enumerate(entries)
        ]
        # In one order everywhere, so that two batches never wait for each other's locks.
        self._order = sorted(firsts.values(), key=lambda i: entries[i].ranker)
        ordered = [entries[i] for i in self._order]
        drawn = [one.drawn_from or (None, None) for one in ordered]
        self.columns: tuple[list[Any], ...] = (
            [one.ranker for one in ordered],
            [NUMBER_OF_KIND[one.kind] for one in ordered],
            [one.event_id for one in ordered],
            [one.decision for one in ordered],
            [one.digest for one in ordered],
            [one.body for one in ordered],
            [content(one) for one in ordered],
            [seq for seq, _ in drawn],
            [link for _, link in drawn],
            [through[i] for i in self._order],
        )

    def appended(self, told: Iterable[Any], read: Callable[[Any, str], Row]) -> list[Appended]:
        """What became of each entry; `read` makes a row of one that was there already, from what was told of it."""
        made: dict[int, Appended] = {}
        for row in told:
            place, fresh, seq, at, link, before, *_ = row
            i = self._order[place - 1]
            one = self._entries[i]
            if fresh:
                whole = Row(seq, at, one.kind, one.event_id, one.body, one.digest, one.decision, link, before)
            else:
                whole = read(row, one.ranker)
            made[i] = Appended(whole, fresh)
        return [
            made[first] if first == i else Appended(made[first].row, False)
            for i, first in enumerate(self._firsts)
        ]
