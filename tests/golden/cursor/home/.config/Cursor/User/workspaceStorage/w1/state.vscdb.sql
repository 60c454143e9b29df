-- G1: a chat; and the window's own list of prompts, of which the chat has one.
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'SYNTHETIC-SECRET-cursor');
INSERT INTO ItemTable VALUES ('workbench.panel.aichat.view.aichat.chatdata', '{"tabs": [{"tabId": "g1-tab", "chatTitle": "The round bowl", "lastSendTime": 1710000000000, "bubbles": [{"type": "user", "id": "1", "text": "is the bowl round?", "rawText": "is the bowl round?"}, {"type": "ai", "id": "2", "modelType": "gpt-4", "rawText": "Yes, it is."}]}]}');
INSERT INTO ItemTable VALUES ('aiService.generations', '[{"unixMs": 1709999940000, "generationUUID": "gen-1", "type": "chat", "textDescription": "how deep is the bowl?"}, {"unixMs": 1710000000000, "generationUUID": "gen-2", "type": "chat", "textDescription": "is the bowl round?"}]');
INSERT INTO ItemTable VALUES ('aiService.prompts', '[{"text": "is the bowl round?", "commandType": 1}, {"text": "how deep is the bowl?", "commandType": 1}]');
