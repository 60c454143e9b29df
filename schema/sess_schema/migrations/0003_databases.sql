-- Databases of other programs: a source for the file, and one for each conversation inside it.

ALTER TABLE sources ADD COLUMN part_of INTEGER REFERENCES sources (id);
-- 0 tells the whole conversation; larger ones are shown only where nothing smaller has it.
ALTER TABLE sources ADD COLUMN fallback INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sources_by_whole ON sources (part_of) WHERE part_of IS NOT NULL;

ALTER TABLE sessions ADD COLUMN mode TEXT;                                  -- agent, ask, plan, ...
ALTER TABLE sessions ADD COLUMN project_rank INTEGER NOT NULL DEFAULT 0;    -- how sure the project is

-- The rows of a database as they were last read: what changed is found without reading values.
CREATE TABLE database_rows (
    source_id INTEGER NOT NULL REFERENCES sources (id), -- the database
    key       TEXT    NOT NULL,
    place     INTEGER NOT NULL,                 -- its rowid there, -1 where it is gone
    digest    INTEGER NOT NULL,                 -- of its value
    turn_id   INTEGER,                          -- NULL: it tells nothing
    alias     TEXT,                             -- the id that it gives itself, where it differs
    ts        INTEGER,                          -- its time, to find its place among the others
    PRIMARY KEY (source_id, key)
) STRICT, WITHOUT ROWID;

-- Merging less often loads two gigabytes a tenth faster; a search reads a few segments more.
INSERT INTO event_index (event_index, rank) VALUES ('automerge', 8);
-- Taking every word of a changed text out of the pages at once reads 20 to 80 MB of a large index.
-- A marker does; whoever must leave nothing behind turns this on for it.
INSERT INTO event_index (event_index, rank) VALUES ('secure-delete', 0);
