-- Tables and functions of the PostgreSQL store; `postgres.prepare` runs them.
CREATE TABLE IF NOT EXISTS meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS ranker (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, last_seq bigint NOT NULL DEFAULT 0,
    last_at bigint NOT NULL DEFAULT 0, link bytea NOT NULL DEFAULT '');
-- How far this log's clock is ahead of the database's, which was set back: the time of a log never falls.
ALTER TABLE ranker ADD COLUMN IF NOT EXISTS ahead bigint NOT NULL DEFAULT 0;
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

-- Functions: what must happen together is one of them, and so one transaction. They are made anew at every start.

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
    PERFORM 1 FROM ranker WHERE id = of_ranker FOR SHARE;
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
                WHERE name = ANY(names) AND holder IS DISTINCT FROM wanted
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

-- A batch is appended by one statement, which calls this. The rankers of a batch are locked one after the other. Under
-- its lock the rows of each are numbered, stamped and linked; then the rows of all of them are inserted at once. What
-- every batch needs is written out rather than called: PostgreSQL parses and plans a function in the language SQL anew
-- at each call, unless it can put it in line.
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
                IF kinds[i] NOT IN (1, 2, 3, 4, 9, 10, 15) THEN
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
