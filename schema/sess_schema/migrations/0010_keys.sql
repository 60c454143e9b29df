-- Short keys for random ids: an index over the ids themselves costs a page for each record.

-- Of `native_id`, NULL without one.
ALTER TABLE turns ADD COLUMN native_key INTEGER;
-- Of `call_id`, NULL without one.
ALTER TABLE events ADD COLUMN call_key INTEGER;
DROP INDEX turns_by_native_id;
DROP INDEX turns_by_digest;
DROP INDEX events_by_call;
-- `response_uid` begins with the key of the message.
DROP INDEX usage_by_message;
-- Whether an older program read any of them is asked at every start.
CREATE INDEX sources_by_edition ON sources (agent, edition) WHERE part_of IS NULL;
