-- The index. Times are UTC milliseconds since 1970; a time before 2000 is none, because agents write a
-- missing one as zero. Rows of a record are never deleted because its file changed or vanished:
-- `retired` says in which generation of the source a row left it.
--
-- `sessiond salvage` reads the rows of `sources` and `chunks` by the order of their columns, without
-- the help of SQLite: new columns go to the end.
--
-- Few of these tables have foreign keys: SQLite cannot add one to an existing table without copying it,
-- and would look up the parent of every row that a load writes. A single writer fills the tables, and
-- `sess doctor` looks for dangling references.


-- == Files, and what was read of them

-- Files and databases, and how far each has been read.
CREATE TABLE sources (
    id            INTEGER PRIMARY KEY,
    agent         TEXT    NOT NULL,
    kind          TEXT    NOT NULL,             -- transcript, attachment, database
    path          TEXT    NOT NULL UNIQUE,
    state         TEXT    NOT NULL DEFAULT 'live', -- live, gone, parked, unreadable
    state_since   INTEGER NOT NULL,
    error         TEXT,
    failures      INTEGER NOT NULL DEFAULT 0,
    parked_by     TEXT,                         -- the version that could not read it
    generation    INTEGER NOT NULL DEFAULT 1,   -- grows each time the file is rewritten
    dev           INTEGER NOT NULL DEFAULT 0,
    inode         INTEGER NOT NULL DEFAULT 0,
    size          INTEGER NOT NULL DEFAULT 0,
    mtime_ns      INTEGER NOT NULL DEFAULT 0,
    ctime_ns      INTEGER NOT NULL DEFAULT 0,
    sidecar_ns    INTEGER NOT NULL DEFAULT 0,   -- mtime of the small file that tells about this one
    offset        INTEGER NOT NULL DEFAULT 0,   -- bytes read as whole records
    lines         INTEGER NOT NULL DEFAULT 0,   -- lines begun before offset
    blank_lines   INTEGER NOT NULL DEFAULT 0,
    head_hash     BLOB,                         -- of the first 4 KiB before offset
    tail_hash     BLOB,                         -- of the last 4 KiB before offset
    -- start of a line too long to parse that offset stands in
    oversize_from INTEGER,
    parser_state  TEXT,                         -- JSON the parser wants back with the next line
    read_at       INTEGER,
    part_of       INTEGER REFERENCES sources (id), -- the database or document that a conversation is in
    -- 0 tells the whole conversation; larger ones are shown only where nothing smaller has it
    fallback      INTEGER NOT NULL DEFAULT 0,
    -- of the reader that read it; with an older one it is read again once
    edition       INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sources_by_inode ON sources (inode);
CREATE INDEX sources_by_whole ON sources (part_of) WHERE part_of IS NOT NULL;
-- Whether an older program read any of them is asked at every start.
CREATE INDEX sources_by_edition ON sources (agent, edition) WHERE part_of IS NULL;

-- The bytes of each source, so that it can be written back whole.
CREATE TABLE chunks (
    id        INTEGER PRIMARY KEY,
    source_id INTEGER NOT NULL REFERENCES sources (id),
    retired   INTEGER NOT NULL DEFAULT 0,       -- 0 in the file now, -1 an unfinished last line
    offset    INTEGER NOT NULL,
    length    INTEGER NOT NULL,
    data      BLOB    NOT NULL                  -- zstd, with a checksum
) STRICT;
-- Unique: no part of a file is archived twice.
CREATE UNIQUE INDEX chunks_by_place ON chunks (source_id, retired, offset);
CREATE INDEX chunks_unfinished ON chunks (source_id) WHERE retired = -1;

-- The rows of a database as they were last read: what changed is found without reading values.
CREATE TABLE database_rows (
    source_id INTEGER NOT NULL REFERENCES sources (id), -- the database
    key       TEXT    NOT NULL,
    place     INTEGER NOT NULL,                 -- its rowid there, -1 where it is gone
    digest    INTEGER NOT NULL,                 -- of its value
    record_id INTEGER,                          -- NULL: it tells nothing
    alias     TEXT,                             -- the id that it gives itself, where it differs
    ts        INTEGER,                          -- its time, to find its place among the others
    PRIMARY KEY (source_id, key)
) STRICT, WITHOUT ROWID;

-- Unusual records, and why.
CREATE TABLE warnings (
    id        INTEGER PRIMARY KEY,
    source_id INTEGER NOT NULL REFERENCES sources (id),
    line      INTEGER NOT NULL,
    offset    INTEGER NOT NULL,
    retired   INTEGER NOT NULL DEFAULT 0,
    reason    TEXT    NOT NULL,
    preview   TEXT    NOT NULL,
    -- 1; in the last row that is kept of a reason, this one and all later ones of the same
    -- source
    times     INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX warnings_by_source ON warnings (source_id, offset);


-- == Sessions

-- One row per session, including subagents. `prompts` and `tool_calls` include events copied from
-- another session; `v_sessions` counts each event once.
CREATE TABLE sessions (
    id           INTEGER PRIMARY KEY,
    agent        TEXT    NOT NULL,
    native_id    TEXT    NOT NULL,
    -- tells equal native ids apart: parent session or folder
    home         TEXT    NOT NULL DEFAULT '',
    alias        TEXT,                          -- the id its records give, where it differs
    kind         TEXT    NOT NULL DEFAULT 'main', -- main, subagent, log
    parent_id    INTEGER REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    call_id      TEXT,                          -- the tool call that started a subagent
    link_rank    INTEGER NOT NULL DEFAULT 0,    -- how sure call_id is
    agent_type   TEXT,
    project      TEXT,                          -- first working directory
    title        TEXT,
    title_rank   INTEGER NOT NULL DEFAULT 0,
    first_prompt TEXT,                          -- the title where nothing better is known
    git_branch   TEXT,
    models       TEXT    NOT NULL DEFAULT '[]', -- JSON array in order of first use
    version      TEXT,
    started_at   INTEGER,                       -- earliest dated record
    ended_at     INTEGER,                       -- latest dated record
    records      INTEGER NOT NULL DEFAULT 0,    -- 0: only known from a link, not read yet
    events       INTEGER NOT NULL DEFAULT 0,    -- as shown: copies from another session included
    prompts      INTEGER NOT NULL DEFAULT 0,
    tool_calls   INTEGER NOT NULL DEFAULT 0,
    mode         TEXT,                          -- agent, ask, plan, ...
    project_rank INTEGER NOT NULL DEFAULT 0,    -- how sure the project is
    -- the command that resumes the session, as a JSON array; NULL: unknown
    resume       TEXT,
    -- first dated record in the file: of two sessions with the same record, the one opened first
    -- owns it
    opened_at    INTEGER,
    -- NULL: the agent recorded it; `folder`: decoded from the name of the folder that the file
    -- lies in; `name`: that name as it is, because it cannot be decoded with certainty; `files`:
    -- the directory that holds all files its calls touched
    project_from TEXT,
    UNIQUE (agent, native_id, home)
) STRICT;
CREATE INDEX sessions_by_end ON sessions (ended_at);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_by_alias ON sessions (alias) WHERE alias IS NOT NULL;

-- Which sessions the records of a source belong to.
CREATE TABLE session_sources (
    session_id INTEGER NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    source_id  INTEGER NOT NULL REFERENCES sources (id),
    PRIMARY KEY (session_id, source_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_sources_by_source ON session_sources (source_id);

-- What people said about sessions: a title of their own, labels, pins. No archive can give it back, so
-- it names sessions as their agents do, and `sessiond salvage` reads it from damaged files, too: from
-- rows or from the index over all columns, whichever is intact.
CREATE TABLE own_marks (
    id        INTEGER PRIMARY KEY,
    agent     TEXT    NOT NULL,
    native_id TEXT    NOT NULL,
    home      TEXT    NOT NULL,
    kind      TEXT    NOT NULL,                 -- title, label, pin
    value     TEXT    NOT NULL,                 -- the title or label
    at        INTEGER NOT NULL                  -- when it was made
) STRICT;
CREATE UNIQUE INDEX own_marks_by_session ON own_marks (agent, native_id, home, kind, value, at);

-- Titles that name the record they sum up, which may be of another session, read or not yet.
CREATE TABLE leaf_titles (
    leaf       TEXT    NOT NULL,                -- native id of that record
    session_id INTEGER NOT NULL,                -- the session whose file has the title
    position   INTEGER NOT NULL,                -- where in it
    title      TEXT    NOT NULL,
    PRIMARY KEY (leaf, session_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX leaf_titles_by_session ON leaf_titles (session_id);


-- == Records and events

-- One record as the agent wrote it.
CREATE TABLE records (
    id         INTEGER PRIMARY KEY,
    source_id  INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    offset     INTEGER NOT NULL,
    length     INTEGER NOT NULL,
    line       INTEGER NOT NULL,
    retired    INTEGER NOT NULL DEFAULT 0,
    kind       TEXT    NOT NULL,                -- the agent's word for it, or broken, oversize
    role       TEXT,
    native_id  TEXT,
    parent_id  TEXT,                            -- native id of the record it answers
    ts         INTEGER,
    ts_from    TEXT,                            -- NULL its own, else previous, mtime
    digest     INTEGER NOT NULL,                -- of what it says; of place and bytes without native id
    forked     INTEGER NOT NULL DEFAULT 0,      -- the agent itself calls it a copy
    copy_of    INTEGER,                         -- the record that owns the events
    -- 1: a later record of the same file replaced or withdrew this one
    superseded INTEGER NOT NULL DEFAULT 0,
    native_key INTEGER                          -- short key of native_id, NULL without one
) STRICT;
CREATE INDEX records_by_session ON records (session_id, source_id, offset);
CREATE INDEX records_by_owner ON records (copy_of) WHERE copy_of IS NOT NULL;
-- By short keys, because an index over random ids costs a page for each record.
CREATE INDEX records_by_native_key ON records (native_key) WHERE native_key IS NOT NULL;
CREATE INDEX records_by_digest ON records (digest) WHERE native_id IS NULL;
-- For copies with other ids: few records say the same at one time, and times come in order.
CREATE INDEX records_by_moment ON records (ts, digest & 65535) WHERE ts IS NOT NULL;

-- What a person would say happened.
CREATE TABLE events (
    id               INTEGER PRIMARY KEY,
    session_id       INTEGER NOT NULL,          -- the session it was first written in
    record_id        INTEGER NOT NULL,          -- the record it comes from
    block            INTEGER NOT NULL,          -- order inside the record
    result_record_id INTEGER,                   -- the record its result comes from
    retired          INTEGER NOT NULL DEFAULT 0,
    type             TEXT    NOT NULL,          -- user, assistant, thinking, tool_use, system, summary
    label            TEXT,                      -- finer kind: command, compact, hook_success, ...
    tool             TEXT,
    status           TEXT,                      -- ok, error, denied, pending
    ts               INTEGER,
    duration_ms      INTEGER,
    summary          TEXT,                      -- a tool's input in one line
    images           INTEGER NOT NULL DEFAULT 0,
    call_id          TEXT,
    pointer          TEXT,                      -- JSON pointer to the input inside the raw record
    result_pointer   TEXT,                      -- and to the result inside the result's record
    overflow         TEXT,                      -- path the full output was saved under
    chars            INTEGER NOT NULL DEFAULT 0, -- that the model wrote
    -- what a tool call does: shell, read, write, edit, search, fetch, agent, plan, question,
    -- mcp, other
    kind             TEXT,
    -- why a result is a separate event: `orphan` if its call is unknown, `answer` if the call is
    -- joined with a result in another session; NULL for everything else
    unjoined         TEXT,
    answered         INTEGER,                   -- when the result of a call arrived
    call_key         INTEGER                    -- short key of call_id, NULL without one
) STRICT;
CREATE INDEX events_by_record ON events (record_id);
CREATE INDEX events_by_session ON events (session_id, ts);
CREATE INDEX events_by_time ON events (ts);
CREATE INDEX events_by_call ON events (call_key) WHERE call_key IS NOT NULL;
CREATE INDEX events_by_result ON events (result_record_id) WHERE result_record_id IS NOT NULL;
CREATE INDEX events_by_overflow ON events (overflow) WHERE overflow IS NOT NULL;
-- Results that arrived in another quarter of an hour than their call.
CREATE INDEX events_by_answer ON events (session_id, answered)
WHERE answered IS NOT NULL AND answered / 900000 IS NOT ts / 900000;

-- Files that tool calls touched.
CREATE TABLE files (
    event_id INTEGER NOT NULL,
    path     TEXT    NOT NULL,
    action   TEXT    NOT NULL,                  -- read, write, edit
    PRIMARY KEY (event_id, path, action)
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_path ON files (path);

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

-- Commits that tool calls made.
CREATE TABLE commits (
    event_id INTEGER NOT NULL,
    sha      TEXT    NOT NULL,
    branch   TEXT,
    subject  TEXT    NOT NULL,
    PRIMARY KEY (event_id, sha)
) STRICT, WITHOUT ROWID;
CREATE INDEX commits_by_sha ON commits (sha);


-- == Full text

-- The full text of events.
CREATE TABLE event_texts (
    id     INTEGER PRIMARY KEY,                 -- events.id
    text   TEXT NOT NULL,                       -- what was said
    input  TEXT NOT NULL,                       -- of a tool call
    output TEXT NOT NULL,                       -- of a tool call
    -- for full-text search only: a word for failed calls, and words next to other scripts
    marks  TEXT NOT NULL
) STRICT;

-- Full-text index of `event_texts`: `WHERE event_index MATCH 'word'`; rowid is `events.id`.
CREATE VIRTUAL TABLE event_index USING fts5 (
    text, input, output, marks,
    content = 'event_texts', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2"
);
-- A larger hash table loads half as fast again; it lives only as long as a transaction.
INSERT INTO event_index (event_index, rank) VALUES ('hashsize', 33554432);
-- Taking every word of a changed text out of the pages at once reads 20 to 80 MB of a large index.
-- A marker does; `sess forget`, which must leave nothing behind, turns this on.
INSERT INTO event_index (event_index, rank) VALUES ('secure-delete', 0);
-- Sixteen pieces become one, so that each word is written again rarely; in steps, and in one go only
-- where these cannot keep up. A search reads a few pieces more.
INSERT INTO event_index (event_index, rank) VALUES ('automerge', 16);
INSERT INTO event_index (event_index, rank) VALUES ('crisismerge', 64);

-- The words of the full-text index, for near spellings. It holds no data of its own.
CREATE VIRTUAL TABLE event_words USING fts5vocab (event_index, row);

-- A time for each 512 numbers of events that none of them is later than: the newest matches of a
-- common word are found without sorting all of them.
CREATE TABLE event_blocks (
    block  INTEGER PRIMARY KEY,                 -- events.id / 512
    newest INTEGER NOT NULL
) STRICT;
CREATE TRIGGER events_redated AFTER UPDATE OF ts ON events WHEN new.ts IS NOT NULL BEGIN
    INSERT INTO event_blocks (block, newest) VALUES (new.id >> 9, new.ts)
    ON CONFLICT (block) DO UPDATE SET newest = max(newest, excluded.newest);
END;


-- == Tokens and cost

-- One row per model response, whatever number of lines and files repeat it.
CREATE TABLE usage (
    id                    INTEGER PRIMARY KEY,
    session_id            INTEGER NOT NULL,
    record_id             INTEGER NOT NULL,     -- the line whose counts won
    response_uid          INTEGER NOT NULL UNIQUE, -- begins with the short key of the message
    message_id            TEXT,
    request_id            TEXT,
    model                 TEXT,
    ts                    INTEGER,
    stop_reason           TEXT,
    input_tokens          INTEGER NOT NULL,
    output_tokens         INTEGER NOT NULL,
    cache_write_tokens    INTEGER NOT NULL,     -- both lifetimes
    cache_write_1h_tokens INTEGER NOT NULL,
    cache_read_tokens     INTEGER NOT NULL,
    web_searches          INTEGER NOT NULL,
    service_tier          TEXT,
    speed                 TEXT,
    -- only if the agent recorded it; `v_usage` has the cost of every response
    cost_usd              REAL,
    geo                   TEXT,                 -- where it was computed
    sidechain             INTEGER NOT NULL DEFAULT 0, -- a subagent's
    counted               INTEGER NOT NULL DEFAULT 1, -- 0: another row tells the same
    cost_nano             INTEGER,              -- nano-dollars; NULL unknown
    cost_source           TEXT    NOT NULL DEFAULT 'unknown', -- recorded, computed, unknown
    saved_nano            INTEGER,              -- by the cache; NULL unknown
    chars                 INTEGER NOT NULL DEFAULT 0, -- logged of the response
    -- size of the model's context window in tokens, if the agent recorded it
    context_window        INTEGER,
    -- tokens that the model reasoned with; part of output_tokens
    reasoning_tokens      INTEGER NOT NULL DEFAULT 0,
    -- rank of the record that reports it: of a session's rows only those with the lowest one
    -- count
    fallback              INTEGER NOT NULL DEFAULT 0,
    -- responses whose tokens it has: some agents record only the sum of several, each of which has a
    -- row
    sum_of                INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX usage_by_session ON usage (session_id, ts);
CREATE INDEX usage_by_record ON usage (record_id);
CREATE INDEX usage_by_time ON usage (ts);
CREATE INDEX usage_fallback ON usage (session_id) WHERE fallback > 0;


-- == Sums, so that statistics over years read no single event

-- Responses summed per quarter of an hour, session and model.
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
    reasoning_tokens      INTEGER NOT NULL DEFAULT 0, -- part of output_tokens
    PRIMARY KEY (quarter, session_id, model)
) STRICT, WITHOUT ROWID;

-- Prompts and calls summed per quarter of an hour, session and tool.
CREATE TABLE event_sums (
    quarter    INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    tool       TEXT    NOT NULL,                -- '' for prompts
    prompts    INTEGER NOT NULL,
    calls      INTEGER NOT NULL,
    errors     INTEGER NOT NULL,
    denied     INTEGER NOT NULL DEFAULT 0,      -- denied calls
    PRIMARY KEY (quarter, session_id, tool)
) STRICT, WITHOUT ROWID;

-- When a session was active, per quarter of an hour.
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

-- Of new rows the writer itself notes which sums they make stale (`sums.py`): a trigger on each was a
-- quarter of the time of a first load. An event can also count in another quarter: the one in which
-- its result arrived, and the one of a notice in the two seconds before a prompt.
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
CREATE TRIGGER events_removed AFTER DELETE ON events BEGIN
    INSERT INTO stale_sums VALUES (old.session_id, iif(old.ts >= 0, old.ts / 900000, -1))
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
-- What a subagent is asked is not a person's prompt.
CREATE TRIGGER sessions_kind_changed AFTER UPDATE OF kind ON sessions WHEN old.kind <> new.kind BEGIN
    INSERT INTO stale_sums (session_id, quarter)
    SELECT session_id, quarter FROM spans WHERE session_id = new.id
    ON CONFLICT DO NOTHING;
END;

-- What each session adds to a view of `sess stats`. Made again by the writer now and then; not valid
-- for sessions in `undigested`, whose events are read instead.
CREATE TABLE digests (
    part       TEXT    NOT NULL,                -- calls, failures, turns, ...
    session_id INTEGER NOT NULL,
    data       TEXT    NOT NULL,                -- JSON
    PRIMARY KEY (part, session_id)
) STRICT, WITHOUT ROWID;

-- Sessions that changed since their digests were made.
CREATE TABLE undigested (
    session_id INTEGER PRIMARY KEY
) STRICT;


-- == The index as a whole

-- Values about the index as a whole that the writer needs.
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The schema versions that were applied, and when.
CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;


-- == Views for people: `sess sql`, Datasette, notebooks

-- They leave out rows that are no longer in their file, copies of records and repeated reports of a
-- response, so they add up to the numbers of `sess stats`. An event belongs to the session it was
-- first written in, not to forks of that session. `ts` is milliseconds since 1970, for comparing and
-- sorting by an index; `time` is the same as text in UTC.
-- LEFT JOIN and subqueries, because SQLite skips them if a query does not use their columns.
-- No index on tool or status: over 113,000 events a query on either takes 15 ms without one and 4 to
-- 14 ms with one, and writing events would take 10% longer.

-- One row per session, including subagents and logs, and subagents of which only responses are known:
-- their parent's transcript repeats those.
CREATE VIEW v_sessions AS
SELECT
    s.native_id AS session,                     -- ID given by the agent
    s.agent,
    s.kind,                                     -- main, subagent, log
    p.native_id AS parent,                      -- the session that started a subagent
    coalesce(                                   -- a person's, else the agent's
        (SELECT m.value FROM own_marks m WHERE m.agent = s.agent AND m.native_id = s.native_id
            AND m.home = s.home AND m.kind = 'title'),
        s.title, s.first_prompt
    ) AS title,
    (SELECT json_group_array(m.value) FROM own_marks m WHERE m.agent = s.agent
        AND m.native_id = s.native_id AND m.home = s.home AND m.kind = 'label') AS labels, -- a JSON array
    EXISTS (SELECT 1 FROM own_marks m WHERE m.agent = s.agent AND m.native_id = s.native_id
        AND m.home = s.home AND m.kind = 'pin') AS pinned,
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
WHERE s.records > 0 OR EXISTS (SELECT 1 FROM usage u WHERE u.session_id = s.id AND u.counted);

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
    u.output_tokens,                            -- with reasoning
    u.reasoning_tokens,                         -- part of output_tokens
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
