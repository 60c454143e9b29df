-- Where a session's project comes from, reasoning tokens, and warnings that repeat.

-- NULL: the agent recorded it. `folder`: decoded from the name of the folder that the file lies in.
-- `name`: that name as it is, because it cannot be decoded with certainty.
ALTER TABLE sessions ADD COLUMN project_from TEXT;

-- Tokens that the model reasoned with; part of output_tokens.
ALTER TABLE usage ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;

-- How often the same reason was given for this source; only the first ones have rows of their own.
ALTER TABLE warnings ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
