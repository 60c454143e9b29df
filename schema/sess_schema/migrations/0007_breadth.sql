-- Where a session's project comes from, reasoning tokens, and warnings that repeat.

-- NULL: the agent recorded it. `folder`: decoded from the name of the folder that the file lies in.
-- `name`: that name as it is, because it cannot be decoded with certainty. `files`: the directory that
-- holds all files its calls touched.
ALTER TABLE sessions ADD COLUMN project_from TEXT;
UPDATE sessions SET project_from = 'files'
WHERE project IS NOT NULL AND project_rank = 0 AND id IN (
    SELECT m.session_id FROM session_sources m JOIN sources r ON r.id = m.source_id
    WHERE r.part_of IS NOT NULL
);

-- Tokens that the model reasoned with; part of output_tokens.
ALTER TABLE usage ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;
-- Rank of the record that reports it. Of a session's rows only those with the lowest one count.
ALTER TABLE usage ADD COLUMN fallback INTEGER NOT NULL DEFAULT 0;
CREATE INDEX usage_fallback ON usage (session_id) WHERE fallback > 0;
-- Part of output_tokens.
ALTER TABLE usage_sums ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;

-- 1; in the last row that is kept of a reason, this one and all later ones of the same source.
ALTER TABLE warnings ADD COLUMN times INTEGER NOT NULL DEFAULT 1;

-- Model responses, each once, with tokens and cost.
DROP VIEW v_usage;
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

-- A time before 2000 is no time: agents write a missing one as zero.
UPDATE turns SET ts = NULL WHERE ts < 946684800000;
UPDATE events SET ts = NULL WHERE ts < 946684800000;
UPDATE events SET answered = NULL WHERE answered < 946684800000;
UPDATE usage SET ts = NULL WHERE ts < 946684800000;
UPDATE sessions SET (opened_at, started_at, ended_at) = (
    SELECT min(t.ts), min(t.ts), max(t.ts) FROM turns t
    WHERE t.session_id = sessions.id AND t.retired = 0 AND t.ts_from IS NULL
)
WHERE opened_at < 946684800000 OR started_at < 946684800000 OR ended_at < 946684800000;

-- Edition of the reader that read it. Older ones are read again once.
ALTER TABLE sources ADD COLUMN edition INTEGER NOT NULL DEFAULT 0;

-- Pieces archived until now have no checksum; the writer adds them.
INSERT INTO facts (name, value)
SELECT 'chunks_without_checksum', max(id) FROM chunks HAVING max(id) IS NOT NULL;

-- No part of a file is archived twice. Two writers at a time, possible until now, archived parts twice:
-- equal ones are dropped, others kept as if they were of an earlier content.
DELETE FROM chunks WHERE EXISTS (
    SELECT 1 FROM chunks o WHERE o.source_id = chunks.source_id AND o.retired = chunks.retired
        AND o.offset = chunks.offset AND o.id < chunks.id AND o.data = chunks.data
);
UPDATE chunks SET retired = 1000000000 + id WHERE EXISTS (
    SELECT 1 FROM chunks o WHERE o.source_id = chunks.source_id AND o.retired = chunks.retired
        AND o.offset = chunks.offset AND o.id < chunks.id
);
DROP INDEX chunks_by_place;
CREATE UNIQUE INDEX chunks_by_place ON chunks (source_id, retired, offset);

-- The writer itself notes which sums new rows make stale (`sums.py`): a trigger on each was a quarter
-- of the time of a first load.
DROP TRIGGER events_added;
DROP TRIGGER events_added_beside;
DROP TRIGGER usage_added;
