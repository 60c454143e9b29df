-- G3: the list of composers of the window.
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'SYNTHETIC-SECRET-cursor');
INSERT INTO ItemTable VALUES ('composer.composerData', '{"allComposers": [{"type": "head", "composerId": "5a0ce000-0000-4000-8000-000000000003", "createdAt": 1752000000000}], "selectedComposerIds": ["5a0ce000-0000-4000-8000-000000000003"]}');
INSERT INTO ItemTable VALUES ('aiService.generations', '[{"unixMs": 1752000000000, "generationUUID": "gen-4", "type": "composer", "textDescription": "why does the kiln stop?"}]');
