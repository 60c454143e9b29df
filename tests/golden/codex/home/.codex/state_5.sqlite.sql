CREATE TABLE threads (id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT NOT NULL, first_user_message TEXT NOT NULL DEFAULT '', name TEXT);
INSERT INTO threads VALUES ('019f7000-0000-7000-8000-000000000003', '/home/kim/.codex/sessions/x.jsonl', '/home/kim/kite', 'Build a bigger kite', 'Build a bigger kite', 'Bigger kite');
INSERT INTO threads VALUES ('019f7000-0000-7000-8000-000000000005', '/home/kim/.codex/archived_sessions/y.jsonl', '/home/kim/kite', 'Count the knots', 'Count the knots', NULL);
