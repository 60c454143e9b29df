-- Kinds and edits of tool calls, replaced records, permanent event keys, and views.

-- 1: a later record of the same file replaced or withdrew this one.
ALTER TABLE turns ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;

-- What a tool call does: shell, read, write, edit, search, fetch, agent, plan, question, mcp, other.
ALTER TABLE events ADD COLUMN kind TEXT;
-- Why a result is a separate event: `orphan` if its call is unknown, `answer` if the call is joined
-- with a result in another session. NULL for everything else.
ALTER TABLE events ADD COLUMN unjoined TEXT;

UPDATE events SET unjoined = label, label = NULL
WHERE type = 'tool_use' AND label IN ('orphan', 'answer');

-- The command that resumes the session, as a JSON array. NULL: unknown.
ALTER TABLE sessions ADD COLUMN resume TEXT;
UPDATE sessions SET resume = json_array('claude', '--resume', native_id)
WHERE agent = 'claude' AND kind = 'main' AND turns > 0;
UPDATE sessions SET resume = json_array('cursor-agent', '--resume', native_id)
WHERE agent = 'cursor' AND id IN
    (SELECT m.session_id FROM session_sources m JOIN sources r ON r.id = m.source_id
     WHERE r.path LIKE '%store.db#%');

-- Size of the model's context window in tokens, if the agent recorded it.
ALTER TABLE usage ADD COLUMN context_window INTEGER;
-- A response has the time of the line it is counted by, also where a fork had been read first.
UPDATE usage SET ts = (SELECT t.ts FROM turns t WHERE t.id = usage.turn_id)
WHERE EXISTS (SELECT 1 FROM turns t WHERE t.id = usage.turn_id AND t.ts IS NOT usage.ts);

-- Changes to files, in one form for all agents.
CREATE TABLE edits (
    event_id INTEGER NOT NULL,
    number   INTEGER NOT NULL,                  -- 0, 1, 2 ... within the call
    path     TEXT    NOT NULL,
    added    INTEGER NOT NULL,                  -- lines, as shown in diffs
    removed  INTEGER NOT NULL,
    data     BLOB    NOT NULL,                  -- zstd of JSON: old and new, or patch, or hunks
    PRIMARY KEY (event_id, number)
) STRICT;
CREATE INDEX edits_by_path ON edits (path);

-- Until now events were cited by number: these numbers are never used again.
INSERT INTO facts (name, value) SELECT 'last_cited_number', coalesce(max(id), 0) FROM events;
-- Calls written before have no kind and no edits yet; the writer adds them from the archive.
INSERT INTO facts (name, value)
SELECT 'calls_to_describe', max(id) FROM events WHERE type = 'tool_use' HAVING max(id) IS NOT NULL;

-- A time for each 512 numbers of events that none of them is later than: the newest matches of a
-- common word are found without sorting all of them.
CREATE TABLE event_blocks (
    block  INTEGER PRIMARY KEY,                 -- events.id / 512
    newest INTEGER NOT NULL
) STRICT;
INSERT INTO event_blocks (block, newest)
SELECT id >> 9, max(ts) FROM events WHERE ts IS NOT NULL GROUP BY 1;
CREATE TRIGGER events_redated AFTER UPDATE OF ts ON events WHEN new.ts IS NOT NULL BEGIN
    INSERT INTO event_blocks (block, newest) VALUES (new.id >> 9, new.ts)
    ON CONFLICT (block) DO UPDATE SET newest = max(newest, excluded.newest);
END;

-- The definitions of docs/numbers.md: a session starts with its earliest record and is active until a
-- result arrives, and a denied call is not a failed one. 0006_house.py recomputes all sums.

-- First dated record in the file: of two sessions with the same record, the one opened first
-- owns it.
ALTER TABLE sessions ADD COLUMN opened_at INTEGER;
UPDATE sessions SET opened_at = started_at;
UPDATE sessions SET started_at = coalesce((
    SELECT min(t.ts) FROM turns t
    WHERE t.session_id = sessions.id AND t.retired = 0 AND t.ts_from IS NULL
), started_at);
UPDATE sessions SET prompts = 0 WHERE kind = 'subagent';
UPDATE sessions SET tool_calls = (
    SELECT count(DISTINCT e.id) FROM turns t JOIN events e ON e.turn_id = coalesce(t.copy_of, t.id)
    WHERE t.session_id = sessions.id AND t.retired = 0 AND e.retired = 0
        AND e.type = 'tool_use' AND e.unjoined IS NULL
)
WHERE id IN (
    SELECT t.session_id FROM events e JOIN turns t ON t.id = e.turn_id OR t.copy_of = e.turn_id
    WHERE e.unjoined IS NOT NULL
);
-- sessions.started_at: earliest dated record
-- sessions.ended_at: latest dated record

ALTER TABLE events ADD COLUMN answered INTEGER; -- when the result of a call arrived
UPDATE events SET answered = (SELECT t.ts FROM turns t WHERE t.id = events.result_turn_id)
WHERE result_turn_id IS NOT NULL;
-- Results that arrived in another quarter of an hour than their call.
CREATE INDEX events_by_answer ON events (session_id, answered)
WHERE answered IS NOT NULL AND answered / 900000 IS NOT ts / 900000;

ALTER TABLE event_sums ADD COLUMN denied INTEGER NOT NULL DEFAULT 0; -- denied calls

DROP TRIGGER events_changed;
CREATE TRIGGER events_changed
AFTER UPDATE OF session_id, retired, type, unjoined, tool, status, ts, chars, answered ON events BEGIN
    INSERT INTO stale_sums (session_id, quarter) VALUES
        (old.session_id, iif(old.ts >= 0, old.ts / 900000, -1)),
        (new.session_id, iif(new.ts >= 0, new.ts / 900000, -1)),
        (old.session_id, iif(old.ts >= 2000, (old.ts - 2000) / 900000, -1)),
        (new.session_id, iif(new.ts >= 2000, (new.ts - 2000) / 900000, -1)),
        (old.session_id, iif(old.answered >= 0, old.answered / 900000, -1)),
        (new.session_id, iif(new.answered >= 0, new.answered / 900000, -1)),
        (old.session_id, iif(old.answered >= 2000, (old.answered - 2000) / 900000, -1)),
        (new.session_id, iif(new.answered >= 2000, (new.answered - 2000) / 900000, -1))
    ON CONFLICT DO NOTHING;
END;
-- An event can also count in another quarter: the one in which its result arrived, and the one of a
-- notice in the two seconds before a prompt.
CREATE TRIGGER events_added_beside AFTER INSERT ON events
WHEN new.ts % 900000 < 2000 OR new.answered % 900000 < 2000
    OR (new.answered IS NOT NULL AND new.answered / 900000 IS NOT new.ts / 900000)
BEGIN
    INSERT INTO stale_sums (session_id, quarter) VALUES
        (new.session_id, iif(new.ts >= 2000, (new.ts - 2000) / 900000, -1)),
        (new.session_id, iif(new.answered >= 0, new.answered / 900000, -1)),
        (new.session_id, iif(new.answered >= 2000, (new.answered - 2000) / 900000, -1))
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER events_removed_beside AFTER DELETE ON events
WHEN old.ts % 900000 < 2000 OR old.answered % 900000 < 2000
    OR (old.answered IS NOT NULL AND old.answered / 900000 IS NOT old.ts / 900000)
BEGIN
    INSERT INTO stale_sums (session_id, quarter) VALUES
        (old.session_id, iif(old.ts >= 2000, (old.ts - 2000) / 900000, -1)),
        (old.session_id, iif(old.answered >= 0, old.answered / 900000, -1)),
        (old.session_id, iif(old.answered >= 2000, (old.answered - 2000) / 900000, -1))
    ON CONFLICT DO NOTHING;
END;
-- What a subagent is asked is not a person's prompt.
CREATE TRIGGER sessions_kind_changed AFTER UPDATE OF kind ON sessions WHEN old.kind <> new.kind BEGIN
    INSERT INTO stale_sums (session_id, quarter)
    SELECT session_id, quarter FROM spans WHERE session_id = new.id
    ON CONFLICT DO NOTHING;
END;

-- Descriptions for docs/schema.md that earlier migrations lack.
-- sources: Files and databases, and how far each has been read.
-- sessions: One row per session, including subagents. `prompts` and `tool_calls` include events copied
--   from another session; `v_sessions` counts each event once.
-- sources.kind: transcript, attachment, database
-- session_sources: Which sessions the records of a source belong to.
-- events.turn_id: the record it comes from
-- events.result_turn_id: the record its result comes from
-- events.session_id: the session it was first written in
-- event_texts: The full text of events.
-- event_texts.text: what was said
-- event_texts.input: of a tool call
-- event_texts.output: of a tool call
-- event_texts.marks: for full-text search only: a word for failed calls, and words next to other scripts
-- event_index: Full-text index of `event_texts`: `WHERE event_index MATCH 'word'`; rowid is `events.id`.
-- files: Files that tool calls touched.
-- commits: Commits that tool calls made.
-- usage.cost_usd: only if the agent recorded it; `v_usage` has the cost of every response
-- warnings: Unusual records, and why.
-- usage_sums: Responses summed per quarter of an hour, session and model.
-- event_sums: Prompts and calls summed per quarter of an hour, session and tool.
-- spans: When a session was active, per quarter of an hour.
-- facts: Values about the index as a whole that the writer needs.
-- migrations: The schema versions that were applied, and when.

-- Few of these tables have foreign keys: SQLite cannot add one to an existing table without copying it,
-- and would look up the parent of every row that a load writes. A single writer fills the tables, and
-- `sess doctor` looks for dangling references.

-- Views for people: `sess sql`, Datasette, notebooks. They leave out rows that are no longer in their
-- file, copies of records and repeated reports of a response, so they add up to the numbers of
-- `sess stats`. An event belongs to the session it was first written in, not to forks of that session.
-- `ts` is milliseconds since 1970, for comparing and sorting by an index; `time` is the same as text
-- in UTC.
-- LEFT JOIN and subqueries, because SQLite skips them if a query does not use their columns.
-- No index on tool or status: over 113,000 events a query on either takes 15 ms without one and 4 to
-- 14 ms with one, and writing events would take 10% longer.

-- One row per session, including subagents and logs.
CREATE VIEW v_sessions AS
SELECT
    s.native_id AS session,                     -- ID given by the agent
    s.agent,
    s.kind,                                     -- main, subagent, log
    p.native_id AS parent,                      -- the session that started a subagent
    coalesce(s.title, s.first_prompt) AS title,
    s.project,                                  -- first working directory
    s.git_branch AS branch,
    s.mode,                                     -- agent, ask, plan, ...
    s.agent_type,                               -- type of subagent
    s.models,                                   -- JSON array in order of first use
    s.version,                                  -- of the agent
    strftime('%Y-%m-%dT%H:%M:%fZ', s.started_at / 1000.0, 'unixepoch') AS started,
    strftime('%Y-%m-%dT%H:%M:%fZ', s.ended_at / 1000.0, 'unixepoch') AS ended,
    s.started_at AS started_ts,
    s.ended_at AS ended_ts,
    coalesce(d.prompts, 0) AS prompts,
    coalesce(d.tool_calls, 0) AS tool_calls,
    coalesce(d.tool_errors, 0) AS tool_errors,  -- failed, without denied ones
    coalesce(d.tool_denied, 0) AS tool_denied,  -- denied by a person or a rule
    coalesce(c.requests, 0) AS requests,        -- model responses
    coalesce(c.tokens, 0) AS tokens,            -- input, output, cache write and cache read
    coalesce(c.cost_usd, 0.0) AS cost_usd       -- of responses with a known price
FROM sessions s
LEFT JOIN sessions p ON p.id = s.parent_id
LEFT JOIN (
    SELECT session_id, sum(prompts) AS prompts, sum(calls) AS tool_calls,
        sum(errors) AS tool_errors, sum(denied) AS tool_denied
    FROM event_sums GROUP BY session_id
) d ON d.session_id = s.id
LEFT JOIN (
    SELECT session_id, sum(requests) AS requests, sum(cost_nano) / 1e9 AS cost_usd,
        sum(input_tokens + output_tokens + cache_write_tokens + cache_read_tokens) AS tokens
    FROM usage_sums GROUP BY session_id
) c ON c.session_id = s.id
WHERE s.turns > 0;

-- One row per event: a prompt, an answer, a thought, a tool call with its result, a notice.
CREATE VIEW v_events AS
SELECT
    e.id AS event_id,
    s.native_id AS session,
    s.agent,
    s.project,
    s.kind AS session_kind,                     -- main, subagent, log
    strftime('%Y-%m-%dT%H:%M:%fZ', e.ts / 1000.0, 'unixepoch') AS time,
    e.ts,
    e.type,                                     -- user, assistant, thinking, tool_use, system, summary
    e.label,                                    -- subtype: command, compact, hook_success, ...
    e.tool,                                     -- name given by the agent
    e.kind,                                     -- shell, read, write, edit, search, fetch, ...
    e.status,                                   -- of a tool call: ok, error, denied, pending
    e.unjoined,                                 -- a result without its call: orphan, answer
    e.duration_ms,
    e.summary,                                  -- tool input in one line
    e.images,
    (SELECT x.text FROM event_texts x WHERE x.id = e.id) AS text,
    (SELECT x.input FROM event_texts x WHERE x.id = e.id) AS input,
    (SELECT x.output FROM event_texts x WHERE x.id = e.id) AS output
FROM events e
LEFT JOIN sessions s ON s.id = e.session_id
WHERE e.retired = 0;

-- Tool calls, each with its result.
CREATE VIEW v_calls AS
SELECT
    e.id AS event_id,
    s.native_id AS session,
    s.agent,
    s.project,
    s.kind AS session_kind,                     -- main, subagent, log
    strftime('%Y-%m-%dT%H:%M:%fZ', e.ts / 1000.0, 'unixepoch') AS time,
    e.ts,
    e.tool,                                     -- name given by the agent
    e.kind,                                     -- shell, read, write, edit, search, fetch, ...
    e.status,                                   -- ok, error, denied, pending
    e.duration_ms,
    e.summary,                                  -- the input in one line
    (SELECT x.input FROM event_texts x WHERE x.id = e.id) AS input,
    (SELECT x.output FROM event_texts x WHERE x.id = e.id) AS output
FROM events e
LEFT JOIN sessions s ON s.id = e.session_id
WHERE e.type = 'tool_use' AND e.unjoined IS NULL AND e.retired = 0;

-- Model responses, each once, with tokens and cost.
CREATE VIEW v_usage AS
SELECT
    s.native_id AS session,
    s.agent,
    s.project,
    s.kind AS session_kind,                     -- main, subagent, log
    strftime('%Y-%m-%dT%H:%M:%fZ', u.ts / 1000.0, 'unixepoch') AS time,
    u.ts,
    coalesce(u.model, 'unknown') AS model,
    u.input_tokens,                             -- without cached tokens
    u.output_tokens,
    u.cache_write_tokens,
    u.cache_read_tokens,
    u.input_tokens + u.output_tokens + u.cache_write_tokens + u.cache_read_tokens AS tokens,
    u.cost_nano / 1e9 AS cost_usd,              -- NULL: the price is unknown
    u.saved_nano / 1e9 AS saved_usd,            -- by the cache
    u.cost_source,                              -- recorded, computed, unknown
    u.stop_reason,
    u.message_id,
    u.request_id
FROM usage u
LEFT JOIN sessions s ON s.id = u.session_id
WHERE u.counted;

-- Files that tool calls touched.
CREATE VIEW v_files AS
SELECT
    f.path,
    f.action,                                   -- read, write, edit
    e.id AS event_id,
    s.native_id AS session,
    s.agent,
    s.project,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.ts / 1000.0, 'unixepoch') AS time,
    e.ts,
    e.tool,                                     -- name given by the agent
    e.status                                    -- ok, error, denied, pending
FROM files f
JOIN events e ON e.id = f.event_id
LEFT JOIN sessions s ON s.id = e.session_id
WHERE e.retired = 0;

-- Lines that tool calls changed in files.
CREATE VIEW v_edits AS
SELECT
    d.path,
    d.added,
    d.removed,
    e.id AS event_id,
    d.number,                                   -- 0, 1, 2 ... within the call
    s.native_id AS session,
    s.agent,
    s.project,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.ts / 1000.0, 'unixepoch') AS time,
    e.ts,
    e.tool,                                     -- name given by the agent
    e.status                                    -- ok, error, denied, pending
FROM edits d
JOIN events e ON e.id = d.event_id
LEFT JOIN sessions s ON s.id = e.session_id
WHERE e.retired = 0;

-- Commits that tool calls made.
CREATE VIEW v_commits AS
SELECT
    c.sha,
    c.branch,
    c.subject,
    e.id AS event_id,
    s.native_id AS session,
    s.agent,
    s.project,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.ts / 1000.0, 'unixepoch') AS time,
    e.ts
FROM commits c
JOIN events e ON e.id = c.event_id
LEFT JOIN sessions s ON s.id = e.session_id
WHERE e.retired = 0;
