-- Sums per quarter of an hour and session, so that statistics over years read no single event.

ALTER TABLE events ADD COLUMN chars INTEGER NOT NULL DEFAULT 0; -- that the model wrote
ALTER TABLE usage ADD COLUMN saved_nano INTEGER;                -- by the cache; NULL unknown
ALTER TABLE usage ADD COLUMN chars INTEGER NOT NULL DEFAULT 0;  -- logged of the response

UPDATE events SET chars = (SELECT length(x.text) + length(x.input) FROM event_texts x
                           WHERE x.id = events.id)
WHERE type IN ('assistant', 'thinking', 'tool_use');

-- At least what its last line says; the others are not known by their response.
UPDATE usage SET chars = coalesce((SELECT sum(e.chars) FROM events e
                                   WHERE e.turn_id = usage.turn_id), 0)
WHERE stop_reason IS NULL AND output_tokens <= 8;

DROP INDEX usage_by_session;
CREATE INDEX usage_by_session ON usage (session_id, ts);

CREATE TABLE usage_sums (
    quarter               INTEGER NOT NULL,     -- of an hour since 1970, -1 for what has no date
    session_id            INTEGER NOT NULL,
    model                 TEXT    NOT NULL,
    input_tokens          INTEGER NOT NULL,
    output_tokens         INTEGER NOT NULL,
    cache_write_tokens    INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,
    cache_read_tokens     INTEGER NOT NULL,
    cost_nano             INTEGER NOT NULL,
    unpriced              INTEGER NOT NULL,
    requests              INTEGER NOT NULL,
    saved_nano            INTEGER NOT NULL,
    placeholders          INTEGER NOT NULL,     -- responses whose final count was never logged
    placeholder_chars     INTEGER NOT NULL,
    PRIMARY KEY (quarter, session_id, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_sums (
    quarter    INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    tool       TEXT    NOT NULL,                -- '' for prompts
    prompts    INTEGER NOT NULL,
    calls      INTEGER NOT NULL,
    errors     INTEGER NOT NULL,
    PRIMARY KEY (quarter, session_id, tool)
) STRICT, WITHOUT ROWID;

CREATE TABLE spans (
    quarter    INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    first_ts   INTEGER,
    last_ts    INTEGER,
    active_ms  INTEGER NOT NULL,                -- between its events, each gap cut at five minutes
    user_ms    INTEGER NOT NULL,                -- of that, before prompts
    prompted   INTEGER NOT NULL,                -- whether it begins with one
    chars      INTEGER NOT NULL,
    PRIMARY KEY (quarter, session_id)
) STRICT, WITHOUT ROWID;

-- What has to be summed again before the transaction ends.
CREATE TABLE stale_sums (
    session_id INTEGER NOT NULL,
    quarter    INTEGER NOT NULL,
    PRIMARY KEY (session_id, quarter)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER events_added AFTER INSERT ON events BEGIN
    INSERT INTO stale_sums VALUES (new.session_id, iif(new.ts >= 0, new.ts / 900000, -1))
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER events_changed
AFTER UPDATE OF session_id, retired, type, label, tool, status, ts, chars ON events BEGIN
    INSERT INTO stale_sums VALUES
        (old.session_id, iif(old.ts >= 0, old.ts / 900000, -1)),
        (new.session_id, iif(new.ts >= 0, new.ts / 900000, -1))
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER events_removed AFTER DELETE ON events BEGIN
    INSERT INTO stale_sums VALUES (old.session_id, iif(old.ts >= 0, old.ts / 900000, -1))
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER usage_added AFTER INSERT ON usage BEGIN
    INSERT INTO stale_sums VALUES (new.session_id, iif(new.ts >= 0, new.ts / 900000, -1))
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER usage_changed AFTER UPDATE ON usage BEGIN
    INSERT INTO stale_sums VALUES
        (old.session_id, iif(old.ts >= 0, old.ts / 900000, -1)),
        (new.session_id, iif(new.ts >= 0, new.ts / 900000, -1))
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER usage_removed AFTER DELETE ON usage BEGIN
    INSERT INTO stale_sums VALUES (old.session_id, iif(old.ts >= 0, old.ts / 900000, -1))
    ON CONFLICT DO NOTHING;
END;

INSERT INTO stale_sums
SELECT session_id, iif(ts >= 0, ts / 900000, -1) FROM events
UNION SELECT session_id, iif(ts >= 0, ts / 900000, -1) FROM usage;
