-- The words of the full-text index, for near spellings. It holds no data of its own.
CREATE VIRTUAL TABLE event_words USING fts5vocab (event_index, row);
