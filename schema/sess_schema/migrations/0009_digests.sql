-- What the views of `sess stats` need of each session, so that those over years read no single event.

-- What each session adds to a view. Made again by the writer now and then; not valid for sessions in
-- `undigested`, whose events are read instead.
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
INSERT INTO undigested (session_id) SELECT id FROM sessions;
