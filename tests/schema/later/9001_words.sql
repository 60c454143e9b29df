-- A migration like those to come: a table and a column, filled by the code beside it.

CREATE TABLE words (
    event_id INTEGER PRIMARY KEY,
    count    INTEGER NOT NULL
) STRICT;
ALTER TABLE sessions ADD COLUMN words INTEGER NOT NULL DEFAULT 0;
