-- What a line costs the disk.

-- Pieces of the full text fit into one page each.
INSERT INTO event_index (event_index, rank) SELECT 'pgsz', page_size - 44 FROM pragma_page_size
WHERE page_size < 4096;
-- Sixteen pieces become one, not eight, so that each word is written again less often; in steps, and
-- in one go only where these cannot keep up.
INSERT INTO event_index (event_index, rank) VALUES ('automerge', 16);
INSERT INTO event_index (event_index, rank) VALUES ('crisismerge', 64);
