-- Kinds and edits of tool calls, records that a later one replaces, and lasting names of events.

-- The turn, in the same file, that replaced this one or took it back; 0 for none.
ALTER TABLE turns ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;

-- What a tool call does: shell, read, write, edit, search, fetch, agent, plan, question, mcp, other.
ALTER TABLE events ADD COLUMN kind TEXT;
-- A result that is an event of its own: `orphan` where its call is not known, `answer` where the
-- call is joined with the result of another session. NULL for everything else.
ALTER TABLE events ADD COLUMN unjoined TEXT;

UPDATE events SET unjoined = label, label = NULL
WHERE type = 'tool_use' AND label IN ('orphan', 'answer');

-- What calls changed in files, in one form for all agents.
CREATE TABLE edits (
    event_id INTEGER NOT NULL,
    number   INTEGER NOT NULL,                  -- 0, 1, 2 ... inside the call
    path     TEXT    NOT NULL,
    added    INTEGER NOT NULL,                  -- lines, as pages draw the diff
    removed  INTEGER NOT NULL,
    data     BLOB    NOT NULL,                  -- zstd of JSON: old and new, or patch, or hunks
    PRIMARY KEY (event_id, number)
) STRICT;
CREATE INDEX edits_by_path ON edits (path);

DROP TRIGGER events_changed;
CREATE TRIGGER events_changed
AFTER UPDATE OF session_id, retired, type, unjoined, tool, status, ts, chars ON events BEGIN
    INSERT INTO stale_sums (session_id, quarter) VALUES
        (old.session_id, iif(old.ts >= 0, old.ts / 900000, -1)),
        (new.session_id, iif(new.ts >= 0, new.ts / 900000, -1))
    ON CONFLICT DO NOTHING;
END;

-- Events were cited by their numbers until now: those numbers are never given out again.
INSERT INTO facts (name, value) SELECT 'last_cited_number', coalesce(max(id), 0) FROM events;
-- Calls written before this have no kind and no edits yet; the writer adds them from the archive.
INSERT INTO facts (name, value)
SELECT 'calls_to_describe', max(id) FROM events WHERE type = 'tool_use' HAVING max(id) IS NOT NULL;
