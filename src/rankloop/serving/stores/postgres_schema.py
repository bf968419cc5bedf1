"""Tables and functions of the PostgreSQL store. What must happen together is one function, and so one transaction."""

from __future__ import annotations

FORMAT = 4  # 2: rows are linked, snapshots are sealed; 3: rankers come and go; 4: rows may be in segments
CHANNEL = "rankloop"
THERE = "place IN ('here', 'leaving')"  # of rankers that can be read in this database

TABLES = """
CREATE TABLE IF NOT EXISTS format (version int NOT NULL);
CREATE TABLE IF NOT EXISTS meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS ranker (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, last_seq bigint NOT NULL DEFAULT 0,
    last_at bigint NOT NULL DEFAULT 0, link bytea NOT NULL DEFAULT '');
-- How far this log's clock is ahead of the database's, which was set back: the time of a log never falls.
ALTER TABLE ranker ADD COLUMN IF NOT EXISTS ahead bigint NOT NULL DEFAULT 0;
-- Earlier versions moved rankers between databases. Where a ranker is: here; leaving for another database; arriving
-- from one, not used yet; gone to one. And the store in which its log began, where that is another one.
ALTER TABLE ranker ADD COLUMN IF NOT EXISTS place text NOT NULL DEFAULT 'here';
ALTER TABLE ranker ADD COLUMN IF NOT EXISTS origin text;
-- The last row that changed the ranker itself: a list that was drawn before it is refused after it.
ALTER TABLE ranker ADD COLUMN IF NOT EXISTS changed bigint NOT NULL DEFAULT 0;
-- How far the clock of all logs is behind the database's, which was set forward, and how often it was set.
CREATE TABLE IF NOT EXISTS log_clock (
    one int PRIMARY KEY CHECK (one = 1), behind bigint NOT NULL, jumps bigint NOT NULL);
INSERT INTO log_clock VALUES (1, 0, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS log (
    ranker int NOT NULL, seq bigint NOT NULL, at bigint NOT NULL, kind int NOT NULL, event text NOT NULL,
    decision text, digest bytea NOT NULL, body bytea NOT NULL, link bytea NOT NULL,
    PRIMARY KEY (ranker, seq));
CREATE UNIQUE INDEX IF NOT EXISTS log_event ON log (ranker, kind, event);
CREATE INDEX IF NOT EXISTS log_decision ON log (ranker, decision) WHERE decision IS NOT NULL;
CREATE TABLE IF NOT EXISTS snapshot (
    ranker int NOT NULL, seq bigint NOT NULL, at bigint NOT NULL, epoch bigint NOT NULL, code text NOT NULL,
    config text NOT NULL, hash text NOT NULL, state bytea NOT NULL, link bytea NOT NULL, seal bytea NOT NULL,
    PRIMARY KEY (ranker, seq));
CREATE TABLE IF NOT EXISTS api_key (
    id text PRIMARY KEY, role text NOT NULL, digest bytea NOT NULL, at bigint NOT NULL, note text NOT NULL);
-- Who looks after a ranker, until when, and under which epoch it writes; after it has let go: the last row that it had
-- seen, and when the next list is due. Older stores have one lease for all rankers, and a table of replicas: unused.
CREATE TABLE IF NOT EXISTS ranker_lease (
    ranker int PRIMARY KEY, holder text NOT NULL, epoch bigint NOT NULL, until double precision NOT NULL,
    looked bigint NOT NULL DEFAULT 0, wake double precision);
CREATE SEQUENCE IF NOT EXISTS lease_epoch;
-- Closed history: the manifest as JSON, and the links of rows that are only in a segment, while the next row is here.
ALTER TABLE ranker ADD COLUMN IF NOT EXISTS closed_through bigint NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS segment (
    ranker int NOT NULL, last bigint NOT NULL, entry text NOT NULL, PRIMARY KEY (ranker, last));
CREATE TABLE IF NOT EXISTS gap (
    ranker int NOT NULL, seq bigint NOT NULL, link bytea NOT NULL, PRIMARY KEY (ranker, seq));
-- Keys of data subjects; of one that was destroyed only its name in the log is left.
CREATE TABLE IF NOT EXISTS subject_key (
    id text PRIMARY KEY, subject text, key bytea, at bigint NOT NULL, erased bigint);
CREATE INDEX IF NOT EXISTS subject_of_key ON subject_key (subject);
"""

# From format 1, whose rows had no digests. The old functions go: code that knows only them must not write here.
FORWARD = """
DROP FUNCTION IF EXISTS append(bigint, text[], int[], text[], text[], bytea[], bytea[], bigint);
DROP FUNCTION IF EXISTS write_snapshot(int, bigint, bigint, bigint, text, text, text, bytea, int);
ALTER TABLE ranker ADD COLUMN link bytea NOT NULL DEFAULT '';
ALTER TABLE log ADD COLUMN link bytea NOT NULL DEFAULT '';
ALTER TABLE log ALTER COLUMN link DROP DEFAULT;
ALTER TABLE snapshot ADD COLUMN link bytea NOT NULL DEFAULT '', ADD COLUMN seal bytea NOT NULL DEFAULT '';
"""

# From format 2, which knows of no segments. The old function goes: it would take an ID in a segment for a new one.
TO_SEGMENTS = """
DROP FUNCTION IF EXISTS append(bigint, text[], int[], text[], text[], bytea[], bytea[], bytea[], bigint[], bytea[],
    bigint, bigint, bigint, bigint);
"""

# What belongs to no ranker: how many there are of each.
ODDITIES = (
    ("rows of no ranker", "SELECT count(*) FROM log WHERE ranker NOT IN (SELECT id FROM ranker)"),
    ("snapshots of no ranker", "SELECT count(*) FROM snapshot WHERE ranker NOT IN (SELECT id FROM ranker)"),
)

FUNCTIONS = """
CREATE OR REPLACE FUNCTION check_epoch(of_ranker int, wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE present bigint;
BEGIN
    -- Shared with other writers of this epoch; who takes over waits until they are done.
    SELECT epoch INTO present FROM ranker_lease WHERE ranker = of_ranker FOR SHARE;
    IF present IS DISTINCT FROM wanted THEN
        RAISE EXCEPTION 'epoch % is over, % has taken over', wanted, present;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION clock_of_database() RETURNS bigint LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

CREATE OR REPLACE FUNCTION clock(given_at bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(given_at, clock_of_database() - (SELECT behind FROM log_clock))
$$;

-- A replica says what time it must be by its own steady clock, if nobody has set the database's since it saw the last
-- jump. Where that is far off, the clock of the logs goes on evenly from there.
CREATE OR REPLACE FUNCTION check_clock(expected bigint, tolerance bigint, seen bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    apart bigint;
BEGIN
    IF expected IS NULL OR abs(clock(NULL) - expected) <= tolerance THEN
        RETURN;
    END IF;
    PERFORM 1 FROM log_clock FOR UPDATE;
    apart := clock(NULL) - expected;
    IF abs(apart) > tolerance THEN
        UPDATE log_clock SET jumps = jumps + 1,
            behind = CASE WHEN abs(behind + apart) <= tolerance THEN 0 ELSE behind + apart END
            WHERE jumps = seen;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION look_at_clock(expected bigint, tolerance bigint, seen bigint)
RETURNS TABLE (now_at bigint, behind bigint, jumps bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_clock(expected, tolerance, seen);
    RETURN QUERY SELECT clock(NULL), log_clock.behind, log_clock.jumps FROM log_clock;
END $$;

CREATE OR REPLACE FUNCTION log_time(given_at bigint, last_at bigint, ahead bigint) RETURNS bigint
LANGUAGE sql AS $$ SELECT greatest(last_at, clock(given_at) + ahead) $$;

CREATE OR REPLACE FUNCTION check_history(of_ranker int, wanted_seq bigint, wanted_link bytea)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE found bytea;
BEGIN
    SELECT link INTO found FROM log WHERE ranker = of_ranker AND seq = wanted_seq;
    IF found IS DISTINCT FROM wanted_link THEN
        RAISE EXCEPTION 'history: the log has no such row %', wanted_seq;
    END IF;
END $$;

-- A ranker that has gone, or is half way to another database, is not written to.
CREATE OR REPLACE FUNCTION check_place(named text, place text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF place = 'leaving' THEN
        RAISE EXCEPTION 'moved: ranker % is half way to another database: complete that with the version that began it',
            named;
    ELSIF place <> 'here' THEN
        RAISE EXCEPTION 'moved: there is no ranker % in this database', named;
    END IF;
END $$;

-- The same digests as in rankloop.serving.log.digests.
CREATE OR REPLACE FUNCTION beginning(told text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT substring(sha256(convert_to(told, 'UTF8')) FOR 16)
$$;

CREATE OR REPLACE FUNCTION next_link(old bytea, new_seq bigint, new_at bigint, told bytea)
RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT substring(sha256(old || int8send(new_seq) || int8send(new_at) || told) FOR 16)
$$;

CREATE OR REPLACE FUNCTION write_snapshot(
    of_ranker int, s_seq bigint, s_at bigint, s_epoch bigint, s_code text, s_config text, s_hash text, s_state bytea,
    s_link bytea, s_seal bytea, keep int)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_epoch(of_ranker, s_epoch);
    PERFORM check_place(name, place) FROM ranker WHERE id = of_ranker FOR SHARE;
    PERFORM check_history(of_ranker, s_seq, s_link);
    INSERT INTO snapshot VALUES (of_ranker, s_seq, s_at, s_epoch, s_code, s_config, s_hash, s_state, s_link, s_seal)
        ON CONFLICT (ranker, seq) DO UPDATE SET at = s_at, epoch = s_epoch, code = s_code, config = s_config,
        hash = s_hash, state = s_state, link = s_link, seal = s_seal;
    DELETE FROM snapshot WHERE ranker = of_ranker AND seq NOT IN
        (SELECT s.seq FROM snapshot s WHERE s.ranker = of_ranker ORDER BY s.seq DESC LIMIT keep);
END $$;

CREATE OR REPLACE FUNCTION take_leases(
    wanted text, names text[], seconds double precision, given_now double precision, at_once boolean)
RETURNS TABLE (name text, epoch bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment double precision := coalesce(given_now, extract(epoch FROM clock_timestamp()));
BEGIN
    UPDATE ranker_lease SET until = moment + seconds
        FROM ranker WHERE id = ranker AND name = ANY(names) AND holder = wanted;
    -- No lease reaches beyond two: one that does was taken before the clock was set back.
    INSERT INTO ranker_lease AS mine (ranker, holder, epoch, until)
        SELECT id, wanted, nextval('lease_epoch'), moment + seconds
            FROM (SELECT id FROM ranker LEFT JOIN ranker_lease ON ranker = id
                WHERE name = ANY(names) AND place IN ('here', 'leaving') AND holder IS DISTINCT FROM wanted
                AND (at_once OR until IS NULL OR until <= moment OR until > moment + 2 * seconds)
                ORDER BY id) AS free
        ON CONFLICT (ranker) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, until = excluded.until
            WHERE at_once OR mine.until <= moment OR mine.until > moment + 2 * seconds;
    RETURN QUERY SELECT ranker.name, ranker_lease.epoch FROM ranker JOIN ranker_lease ON ranker = id
        WHERE ranker.name = ANY(names) AND holder = wanted;
END $$;

CREATE OR REPLACE FUNCTION add_segment(
    of_ranker int, first_seq bigint, end_seq bigint, wanted_link bytea, told text, gap_seqs bigint[], gap_links bytea[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE mine ranker%ROWTYPE;
BEGIN
    SELECT * INTO STRICT mine FROM ranker WHERE id = of_ranker FOR UPDATE;
    PERFORM check_place(mine.name, mine.place);
    IF mine.closed_through + 1 <> first_seq OR mine.last_seq <= end_seq THEN
        RAISE EXCEPTION 'history: row % was moved to a segment already, or is the newest', first_seq;
    END IF;
    PERFORM check_history(of_ranker, end_seq, wanted_link);
    INSERT INTO segment VALUES (of_ranker, end_seq, told);
    INSERT INTO gap SELECT of_ranker, one.seq, one.link FROM unnest(gap_seqs, gap_links) AS one (seq, link)
        ON CONFLICT DO NOTHING;
    UPDATE ranker SET closed_through = end_seq WHERE id = of_ranker;
END $$;

-- Deletes a part of the rows that are in segments; whether there may be more.
CREATE OR REPLACE FUNCTION clear_rows(of_ranker int, through bigint, kinds int[], kept bigint[], most int)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE first_seq bigint;
BEGIN
    SELECT seq INTO first_seq FROM log WHERE ranker = of_ranker AND seq <= through AND kind = ANY(kinds)
        AND seq <> ALL(kept) ORDER BY seq LIMIT 1;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM log WHERE ranker = of_ranker AND seq >= first_seq AND seq < first_seq + most AND seq <= through
        AND kind = ANY(kinds) AND seq <> ALL(kept);
    RETURN true;
END $$;
"""
