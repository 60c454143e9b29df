-- What each response cost, and which rows stand for responses of their own.

ALTER TABLE usage ADD COLUMN geo TEXT;                                   -- where it was computed
ALTER TABLE usage ADD COLUMN sidechain INTEGER NOT NULL DEFAULT 0;       -- a subagent's
ALTER TABLE usage ADD COLUMN counted INTEGER NOT NULL DEFAULT 1;         -- 0: another row tells the same
ALTER TABLE usage ADD COLUMN cost_nano INTEGER;                          -- nano-dollars; NULL unknown
ALTER TABLE usage ADD COLUMN cost_source TEXT NOT NULL DEFAULT 'unknown'; -- recorded, computed, unknown
CREATE INDEX usage_by_message ON usage (message_id) WHERE message_id IS NOT NULL;

-- Small things that the writer must know about the index as a whole.
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

UPDATE usage SET sidechain = 1
WHERE session_id IN (SELECT id FROM sessions WHERE kind = 'subagent');
