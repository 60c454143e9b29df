-- G2: the list of composers of the window.
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'SYNTHETIC-SECRET-cursor');
INSERT INTO ItemTable VALUES ('composer.composerData', '{"allComposers": [{"type": "head", "composerId": "5a0ce000-0000-4000-8000-000000000002", "createdAt": 1734000000000}], "selectedComposerId": "5a0ce000-0000-4000-8000-000000000002"}');
