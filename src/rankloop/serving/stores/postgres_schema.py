"""Tables and functions of the PostgreSQL store. What must happen together is one function, and so one transaction."""

from __future__ import annotations

VERSION = 1
CHANNEL = "rankloop"

SCHEMA = """
CREATE TABLE IF NOT EXISTS format (version int NOT NULL);
CREATE TABLE IF NOT EXISTS ranker (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, last_seq bigint NOT NULL DEFAULT 0,
    last_at bigint NOT NULL DEFAULT 0);
-- How far this log's clock is ahead of the database's, which was set back: the time of a log never falls.
ALTER TABLE ranker ADD COLUMN IF NOT EXISTS ahead bigint NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS log (
    ranker int NOT NULL, seq bigint NOT NULL, at bigint NOT NULL, kind int NOT NULL, event text NOT NULL,
    decision text, digest bytea NOT NULL, body bytea NOT NULL, PRIMARY KEY (ranker, seq));
CREATE UNIQUE INDEX IF NOT EXISTS log_event ON log (ranker, kind, event);
CREATE INDEX IF NOT EXISTS log_decision ON log (ranker, decision) WHERE decision IS NOT NULL;
CREATE TABLE IF NOT EXISTS snapshot (
    ranker int NOT NULL, seq bigint NOT NULL, at bigint NOT NULL, epoch bigint NOT NULL, code text NOT NULL,
    config text NOT NULL, hash text NOT NULL, state bytea NOT NULL, PRIMARY KEY (ranker, seq));
CREATE TABLE IF NOT EXISTS api_key (
    id text PRIMARY KEY, role text NOT NULL, digest bytea NOT NULL, at bigint NOT NULL, note text NOT NULL);
CREATE TABLE IF NOT EXISTS lease (
    one int PRIMARY KEY CHECK (one = 1), holder text NOT NULL, epoch bigint NOT NULL,
    until double precision NOT NULL);

CREATE OR REPLACE FUNCTION check_epoch(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE found bigint;
BEGIN
    -- Shared with other writers of this epoch; who takes over waits until they are done.
    SELECT epoch INTO found FROM lease FOR SHARE;
    IF found IS DISTINCT FROM wanted THEN
        RAISE EXCEPTION 'epoch % is over, % has taken over', wanted, found;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION clock(given_at bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(given_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

CREATE OR REPLACE FUNCTION log_time(given_at bigint, last_at bigint, ahead bigint) RETURNS bigint
LANGUAGE sql AS $$ SELECT greatest(last_at, clock(given_at) + ahead) $$;

CREATE OR REPLACE FUNCTION keep_clock(of_ranker int, new_seq bigint, new_at bigint, given_at bigint)
RETURNS void LANGUAGE sql AS $$
    -- A new lead is kept where the clock stood still since the row before; otherwise the lead is the same as before.
    UPDATE ranker SET last_seq = new_seq, last_at = new_at,
        ahead = CASE WHEN clock(given_at) + ahead < new_at THEN new_at - clock(given_at) ELSE ahead END
        WHERE id = of_ranker
$$;

CREATE OR REPLACE FUNCTION append(
    given_at bigint, names text[], kinds int[], events text[], decisions text[], digests bytea[], bodies bytea[],
    wanted_epoch bigint)
RETURNS TABLE (place int, fresh boolean, seq bigint, at bigint, kind int, event text, body bytea, digest bytea,
    decision text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    mine ranker%ROWTYPE;
    named text := NULL;
    next_seq bigint;
    now_at bigint;
    there log%ROWTYPE;
BEGIN
    IF wanted_epoch IS NOT NULL THEN
        PERFORM check_epoch(wanted_epoch);
    END IF;
    FOR i IN 1 .. cardinality(names) LOOP
        IF named IS DISTINCT FROM names[i] THEN
            IF named IS NOT NULL THEN
                PERFORM keep_clock(mine.id, next_seq, now_at, given_at);
            END IF;
            named := names[i];
            IF kinds[i] = 0 THEN
                INSERT INTO ranker (name) VALUES (named) ON CONFLICT (name) DO NOTHING;
            END IF;
            -- From here to the commit nobody else numbers rows of this ranker.
            SELECT * INTO STRICT mine FROM ranker WHERE name = named FOR UPDATE;
            next_seq := mine.last_seq;
            now_at := log_time(given_at, mine.last_at, mine.ahead);
        END IF;
        SELECT * INTO there FROM log
            WHERE ranker = mine.id AND kind = kinds[i] AND event = events[i];
        place := i;
        IF FOUND THEN
            fresh := false;
        ELSE
            next_seq := next_seq + 1;
            INSERT INTO log (ranker, seq, at, kind, event, decision, digest, body)
                VALUES (mine.id, next_seq, now_at, kinds[i], events[i], decisions[i], digests[i], bodies[i])
                RETURNING * INTO there;
            fresh := true;
        END IF;
        seq := there.seq; at := there.at; kind := there.kind; event := there.event; body := there.body;
        digest := there.digest; decision := there.decision;
        RETURN NEXT;
    END LOOP;
    IF named IS NOT NULL THEN
        PERFORM keep_clock(mine.id, next_seq, now_at, given_at);
        PERFORM pg_notify('rankloop_' || current_schema(), '');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION write_snapshot(
    of_ranker int, s_seq bigint, s_at bigint, s_epoch bigint, s_code text, s_config text, s_hash text, s_state bytea,
    keep int)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_epoch(s_epoch);
    INSERT INTO snapshot VALUES (of_ranker, s_seq, s_at, s_epoch, s_code, s_config, s_hash, s_state)
        ON CONFLICT (ranker, seq) DO UPDATE SET at = s_at, epoch = s_epoch, code = s_code, config = s_config,
        hash = s_hash, state = s_state;
    DELETE FROM snapshot WHERE ranker = of_ranker AND seq NOT IN
        (SELECT s.seq FROM snapshot s WHERE s.ranker = of_ranker ORDER BY s.seq DESC LIMIT keep);
END $$;

CREATE OR REPLACE FUNCTION take_lease(wanted text, seconds double precision, given_now double precision)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    held lease%ROWTYPE;
    moment double precision := coalesce(given_now, extract(epoch FROM clock_timestamp()));
BEGIN
    INSERT INTO lease VALUES (1, '', 0, 0) ON CONFLICT (one) DO NOTHING;
    SELECT * INTO held FROM lease FOR UPDATE;
    IF held.holder <> wanted THEN
        -- No lease reaches so far: one that does was taken before the clock was set back.
        IF moment < held.until AND held.until - moment <= 2 * seconds THEN
            RETURN NULL;
        END IF;
        held.epoch := held.epoch + 1;
    END IF;
    UPDATE lease SET holder = wanted, epoch = held.epoch, until = moment + seconds;
    RETURN held.epoch;
END $$;
"""
