CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable VALUES ('codeium.apiKey', 'SYNTHETIC-SECRET-key');
INSERT INTO ItemTable VALUES ('workbench.panel.aichat.view.aichat.chatdata', '{"tabs":[{"tabId":"3d500000-0000-4000-8000-000000000003","chatTitle":"","bubbles":[{"type":1,"text":"Rake the sand"},{"type":2,"text":"Raked."}]}]}');
