-- The index. Times are UTC milliseconds since 1970. Rows of a record are never deleted because
-- its file changed or vanished: `retired` says in which generation of the source a row left it.

CREATE TABLE sources (
    id            INTEGER PRIMARY KEY,
    agent         TEXT    NOT NULL,
    kind          TEXT    NOT NULL,             -- transcript, attachment
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
    oversize_from INTEGER,                      -- start of a line too long to parse that offset stands in
    parser_state  TEXT,                         -- JSON the parser wants back with the next line
    read_at       INTEGER
) STRICT;
CREATE INDEX sources_by_inode ON sources (inode);

-- The bytes of each source, so that it can be written back whole.
CREATE TABLE chunks (
    id        INTEGER PRIMARY KEY,
    source_id INTEGER NOT NULL REFERENCES sources (id),
    retired   INTEGER NOT NULL DEFAULT 0,       -- 0 in the file now, -1 an unfinished last line
    offset    INTEGER NOT NULL,
    length    INTEGER NOT NULL,
    data      BLOB    NOT NULL                  -- zstd
) STRICT;
CREATE INDEX chunks_by_place ON chunks (source_id, retired, offset);
CREATE INDEX chunks_unfinished ON chunks (source_id) WHERE retired = -1;

CREATE TABLE sessions (
    id          INTEGER PRIMARY KEY,
    agent       TEXT    NOT NULL,
    native_id   TEXT    NOT NULL,
    home        TEXT    NOT NULL DEFAULT '',    -- tells equal native ids apart: parent session or folder
    alias       TEXT,                           -- the id its records give, where it differs
    kind        TEXT    NOT NULL DEFAULT 'main', -- main, subagent, log
    parent_id   INTEGER REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    call_id     TEXT,                           -- the tool call that started a subagent
    link_rank   INTEGER NOT NULL DEFAULT 0,     -- how sure call_id is
    agent_type  TEXT,
    project     TEXT,                           -- first working directory
    title       TEXT,
    title_rank  INTEGER NOT NULL DEFAULT 0,
    first_prompt TEXT,                          -- the title where nothing better is known
    git_branch  TEXT,
    models      TEXT    NOT NULL DEFAULT '[]',  -- JSON array in order of first use
    version     TEXT,
    started_at  INTEGER,                        -- first and last dated record, in file order
    ended_at    INTEGER,
    turns       INTEGER NOT NULL DEFAULT 0,     -- 0: only known from a link, not read yet
    events      INTEGER NOT NULL DEFAULT 0,     -- as shown: copies from another session included
    prompts     INTEGER NOT NULL DEFAULT 0,
    tool_calls  INTEGER NOT NULL DEFAULT 0,
    UNIQUE (agent, native_id, home)
) STRICT;
CREATE INDEX sessions_by_end ON sessions (ended_at);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_by_alias ON sessions (alias) WHERE alias IS NOT NULL;

-- Titles that name the record they sum up, which may be of another session, read or not yet.
CREATE TABLE leaf_titles (
    leaf       TEXT    NOT NULL,                -- native id of that record
    session_id INTEGER NOT NULL,                -- the session whose file has the title
    position   INTEGER NOT NULL,                -- where in it
    title      TEXT    NOT NULL,
    PRIMARY KEY (leaf, session_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX leaf_titles_by_session ON leaf_titles (session_id);

CREATE TABLE session_sources (
    session_id INTEGER NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    source_id  INTEGER NOT NULL REFERENCES sources (id),
    PRIMARY KEY (session_id, source_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_sources_by_source ON session_sources (source_id);

-- One record as the agent wrote it.
CREATE TABLE turns (
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
    copy_of    INTEGER                          -- the turn that owns the events
) STRICT;
CREATE INDEX turns_by_session ON turns (session_id, source_id, offset);
CREATE INDEX turns_by_native_id ON turns (native_id) WHERE native_id IS NOT NULL;
CREATE INDEX turns_by_digest ON turns (digest);
CREATE INDEX turns_by_owner ON turns (copy_of) WHERE copy_of IS NOT NULL;

-- What a person would say happened.
CREATE TABLE events (
    id             INTEGER PRIMARY KEY,
    session_id     INTEGER NOT NULL,
    turn_id        INTEGER NOT NULL,
    block          INTEGER NOT NULL,            -- order inside the turn
    result_turn_id INTEGER,
    retired        INTEGER NOT NULL DEFAULT 0,
    type           TEXT    NOT NULL,            -- user, assistant, thinking, tool_use, system, summary
    label          TEXT,                        -- finer kind: command, compact, hook_success, ...
    tool           TEXT,
    status         TEXT,                        -- ok, error, denied, pending
    ts             INTEGER,
    duration_ms    INTEGER,
    summary        TEXT,                        -- a tool's input in one line
    images         INTEGER NOT NULL DEFAULT 0,
    call_id        TEXT,
    pointer        TEXT,                        -- JSON pointer to the input inside the raw record
    result_pointer TEXT,                        -- and to the result inside the result's record
    overflow       TEXT                         -- path the full output was saved under
) STRICT;
CREATE INDEX events_by_turn ON events (turn_id);
CREATE INDEX events_by_session ON events (session_id, ts);
CREATE INDEX events_by_time ON events (ts);
CREATE INDEX events_by_call ON events (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX events_by_result ON events (result_turn_id) WHERE result_turn_id IS NOT NULL;
CREATE INDEX events_by_overflow ON events (overflow) WHERE overflow IS NOT NULL;

CREATE TABLE event_texts (
    id     INTEGER PRIMARY KEY,                 -- events.id
    text   TEXT NOT NULL,
    input  TEXT NOT NULL,
    output TEXT NOT NULL,
    marks  TEXT NOT NULL                        -- is_error for a failed call
) STRICT;

CREATE VIRTUAL TABLE event_index USING fts5 (
    text, input, output, marks,
    content = 'event_texts', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2"
);
-- A larger hash table loads half as fast again; it lives only as long as a transaction.
INSERT INTO event_index (event_index, rank) VALUES ('hashsize', 33554432);
-- `sess forget` must leave nothing behind in the index pages.
INSERT INTO event_index (event_index, rank) VALUES ('secure-delete', 1);

CREATE TABLE files (
    event_id INTEGER NOT NULL,
    path     TEXT    NOT NULL,
    action   TEXT    NOT NULL,                  -- read, write, edit
    PRIMARY KEY (event_id, path, action)
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_path ON files (path);

CREATE TABLE commits (
    event_id INTEGER NOT NULL,
    sha      TEXT    NOT NULL,
    branch   TEXT,
    subject  TEXT    NOT NULL,
    PRIMARY KEY (event_id, sha)
) STRICT, WITHOUT ROWID;
CREATE INDEX commits_by_sha ON commits (sha);

-- One row per model response, whatever number of lines and files repeat it.
CREATE TABLE usage (
    id                    INTEGER PRIMARY KEY,
    session_id            INTEGER NOT NULL,
    turn_id               INTEGER NOT NULL,     -- the line whose counts won
    response_uid          INTEGER NOT NULL UNIQUE,
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
    cost_usd              REAL                  -- only where the agent recorded it
) STRICT;
CREATE INDEX usage_by_session ON usage (session_id);
CREATE INDEX usage_by_turn ON usage (turn_id);
CREATE INDEX usage_by_time ON usage (ts);

CREATE TABLE warnings (
    id        INTEGER PRIMARY KEY,
    source_id INTEGER NOT NULL REFERENCES sources (id),
    line      INTEGER NOT NULL,
    offset    INTEGER NOT NULL,
    retired   INTEGER NOT NULL DEFAULT 0,
    reason    TEXT    NOT NULL,
    preview   TEXT    NOT NULL
) STRICT;
CREATE INDEX warnings_by_source ON warnings (source_id, offset);
