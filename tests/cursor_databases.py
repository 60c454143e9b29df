"""Small databases as Cursor writes them, with all the boilerplate of their values.

Only the standard library, so that the writer of `cursor_writer.py` needs nothing of ours.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path

TABLE = "CREATE TABLE {} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
HEADERS_TABLE = (
    "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, workspaceId TEXT,"
    " createdAt INTEGER, lastUpdatedAt INTEGER, isArchived INTEGER, isSubagent INTEGER,"
    " recency INTEGER, checkpointAt INTEGER, value TEXT)"
)
CREATED = 1_770_000_000_000  # 2026-02-02T02:40:00Z
USER, ASSISTANT = 1, 2
ASK, AGENT = 1, 2
TOOL, THINKING = 15, 30

# Members that every bubble has.
_EMPTY_LISTS = (
    "approximateLintErrors", "lints", "codebaseContextChunks", "commits", "pullRequests",
    "attachedCodeChunks", "assistantSuggestedDiffs", "gitDiffs", "interpreterResults", "images",
    "attachedFolders", "attachedFoldersNew", "userResponsesToSuggestedCodeBlocks",
    "suggestedCodeBlocks", "diffsForCompressingFiles", "relevantFiles", "toolResults", "notepads",
    "capabilities", "multiFileLinterErrors", "diffHistories", "recentLocationsHistory",
    "recentlyViewedFiles", "fileDiffTrajectories", "docsReferences", "webReferences",
    "aiWebSearchResults", "attachedFoldersListDirResults", "humanChanges", "summarizedComposers",
    "cursorRules", "contextPieces", "editTrailContexts", "allThinkingBlocks",
    "diffsSinceLastApply", "deletedFiles", "attachedFileCodeChunksMetadataOnly", "consoleLogs",
    "uiElementPicked", "knowledgeItems", "documentationSelections", "externalLinks",
    "projectLayouts", "capabilityContexts", "todos", "mcpDescriptors", "workspaceUris",
)  # fmt: skip
_SUPPORTED_TOOLS = (41, 7, 38, 8, 9, 11, 12, 15, 18, 19, 25, 27, 43, 46, 47, 29, 30, 32, 34, 35, 39,
                    40, 42, 44, 45)  # fmt: skip
_CONTEXT_LISTS = (
    "composers", "selectedCommits", "selectedPullRequests", "selectedImages", "folderSelections",
    "fileSelections", "selections", "terminalSelections", "selectedDocs", "externalLinks",
    "cursorRules", "cursorCommands", "uiElementSelections", "consoleLogs", "mentions",
)  # fmt: skip
_COMPOSER_FLAGS = (
    "isReadingLongFile", "hasChangedContext", "isFileListExpanded", "browserChipManuallyDisabled",
    "browserChipManuallyEnabled", "hasUnreadMessages", "gitHubPromptDismissed", "isDraft",
    "isCreatingWorktree", "isApplyingWorktree", "isUndoingWorktree", "applied",
    "pendingCreateWorktree", "isBestOfNSubcomposer", "isBestOfNParent", "bestOfNJudgeWinner",
    "isSpec", "isSpecSubagentDone", "isArchived", "isEphemeral",
)  # fmt: skip


def user_directory(home):
    """Cursor's data directory in a home."""
    mac = sys.platform == "darwin"
    return Path(home, *(("Library", "Application Support") if mac else (".config",)), "Cursor/User")


def global_database(home):
    return user_directory(home) / "globalStorage" / "state.vscdb"


def workspace_database(home, name="a1b2c3d4", folder="/code/demo"):
    """The path of a workspace's database; its workspace.json names the folder."""
    place = user_directory(home) / "workspaceStorage" / name
    place.mkdir(parents=True, exist_ok=True)
    if folder is not None:
        (place / "workspace.json").write_text(json.dumps({"folder": f"file://{folder}"}))
    return place / "state.vscdb"


def make_global(path, *, tables=("ItemTable", "cursorDiskKV"), headers=False, journal="wal"):
    """A new database, open; each statement on it is its own transaction."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {journal}")
    for table in tables:
        db.execute(TABLE.format(table))
    if headers:
        db.execute(HEADERS_TABLE)
    return db


def encoded(value):
    """A value as Cursor stores it: JSON in a string; strings, bytes and NULL as they are."""
    if value is None or isinstance(value, str | bytes):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def put(db, key, value, table="cursorDiskKV"):
    """Insert, which replaces a row of the same key and gives it a new rowid."""
    db.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, encoded(value)))


def put_item(db, key, value):
    put(db, key, value, "ItemTable")


def put_bubble(db, composer_id, value):
    put(db, f"bubbleId:{composer_id}:{value['bubbleId']}", value)


def put_composer(db, value):
    put(db, f"composerData:{value['composerId']}", value)


def put_header(db, value, *, workspace="a1b2c3d4"):
    """A row of the header table of Cursor 3.12 and later."""
    head = header_entry(value, workspace)
    db.execute(
        "INSERT OR REPLACE INTO composerHeaders VALUES (?, ?, ?, ?, 0, ?, ?, NULL, ?)",
        (
            value["composerId"],
            workspace,
            value["createdAt"],
            value["lastUpdatedAt"],
            int("subagentInfo" in value),
            value["lastUpdatedAt"],
            encoded(head),
        ),
    )


def iso(milliseconds):
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def lexical(text):
    """The rich text of the input box, a document in a string."""
    leaf = {"detail": 0, "format": 0, "mode": "normal", "style": "", "text": text, "type": "text",
            "version": 1}  # fmt: skip
    shape = {"direction": "ltr", "format": "", "indent": 0, "version": 1}
    paragraph = {"children": [leaf] if text else [], **shape, "type": "paragraph"}
    return encoded({"root": {"children": [paragraph], **shape, "type": "root"}})


def bubble(bubble_id, kind=ASSISTANT, text="", *, at=CREATED, **more):
    """One message with everything that Cursor puts around it."""
    return {
        "_v": 3,
        "type": kind,
        **{name: [] for name in _EMPTY_LISTS},
        "bubbleId": bubble_id,
        "isAgentic": True,
        "existedSubsequentTerminalCommand": False,
        "existedPreviousTerminalCommand": False,
        "requestId": "",
        "attachedHumanChanges": False,
        "supportedTools": list(_SUPPORTED_TOOLS),
        "tokenCount": {"inputTokens": 0, "outputTokens": 0},
        "isRefunded": False,
        "useWeb": False,
        "unifiedMode": AGENT,
        "conversationState": "~",
        "createdAt": iso(at),
        "text": text,
        **more,
    }


def prompt(bubble_id, text, *, at=CREATED, **more):
    """A message of the user."""
    details = {"richText": lexical(text), "requestId": f"request-{bubble_id}",
               "modelInfo": {"modelName": "default"}, "isPlanExecution": False}  # fmt: skip
    return bubble(bubble_id, USER, text, at=at, **(details | more))


def thought(bubble_id, text, *, at=CREATED, **more):
    details = {"capabilityType": THINKING, "thinking": {"text": text, "signature": "c2lnbmVk"},
               "thinkingStyle": 2, "thinkingDurationMs": 1200}  # fmt: skip
    return bubble(bubble_id, at=at, **(details | more))


def tool(
    bubble_id,
    name="run_terminal_command_v2",
    *,
    status="completed",
    params=None,
    result=None,
    error=None,
    at=CREATED,
    **more,
):
    """A tool call; its arguments and result are JSON inside strings."""
    former = {
        "tool": {"run_terminal_command_v2": 15, "read_file_v2": 40}.get(name, 38),
        "toolIndex": 0,
        "modelCallId": "",
        "toolCallId": f"call_{bubble_id}\nfc_{bubble_id}",
        "status": status,
        "name": name,
        "params": encoded(params or {}),
        "rawArgs": encoded(params or {}),
        "additionalData": {"status": status, "startedAtMs": at},
        "toolCallBinary": "UHJvdG9idWYgYmluYXJ5IGR1cGxpY2F0ZQ==",
    }
    if result is not None:
        former["result"] = encoded(result)
    if error is not None:
        former["error"] = encoded(
            {"clientVisibleErrorMessage": error, "modelVisibleErrorMessage": error}
        )
    if status == "completed":
        former["userDecision"] = "accepted"
    return bubble(bubble_id, at=at, capabilityType=TOOL, toolFormerData=former, **more)


def terminal(bubble_id, command, output=None, *, status="completed", error=None, **more):
    """A command in the terminal."""
    params = {"command": command, "workingDirectory": "/code/demo", "requireUserApproval": False}
    result = None if output is None else {"output": output, "exitCode": 0, "rejected": False}
    return tool(bubble_id, params=params, result=result, status=status, error=error, **more)


def reading(bubble_id, path, contents, **more):
    """A file that the agent read."""
    return tool(
        bubble_id,
        "read_file_v2",
        params={"targetFile": path, "effectiveUri": f"file://{path}", "charsLimit": 100_000},
        result={"contents": contents, "totalLinesInFile": contents.count("\n") + 1},
        **more,
    )


def picture(size=1000, seed=0):
    """A screenshot as Cursor keeps it: bytes as numbers by their places, or base64."""
    data = bytes((seed + n * 7) & 0xFF for n in range(size))
    return {"uuid": f"image-{seed}", "dimension": {"width": 800, "height": 600},
            "data": {str(n): byte for n, byte in enumerate(data)}}  # fmt: skip


def composer(composer_id, bubbles=(), *, name="A conversation", at=CREATED, **more):
    """A conversation that lists only the order of its bubbles."""
    heads = [{"bubbleId": one["bubbleId"], "type": one["type"]} for one in bubbles]
    return {
        "_v": 16,
        "composerId": composer_id,
        "richText": lexical(""),
        "hasLoaded": True,
        "text": "",
        "fullConversationHeadersOnly": heads,
        "conversationMap": {},
        "status": "completed",
        "context": {**{part: [] for part in _CONTEXT_LISTS}, "ideEditorsState": True},
        "gitGraphFileSuggestions": [],
        "generatingBubbleIds": [],
        "codeBlockData": {},
        "originalFileStates": {},
        "newlyCreatedFiles": [],
        "newlyCreatedFolders": [],
        "createdAt": at,
        "lastUpdatedAt": at + 1000 * len(heads),
        "activeTabsShouldBeReactive": True,
        "capabilities": [{"type": number, "data": {}} for number in (30, 15, 22, 18, 19, 33, 32)],
        "name": name,
        "subtitle": "Edited parser.py",
        "unifiedMode": "agent",
        "forceMode": "edit",
        "isAgentic": True,
        "agentBackend": "cursor-agent",
        "modelConfig": {"modelName": "composer-2.5", "maxMode": False},
        "usageData": {},
        "contextUsagePercent": 7.76,
        "contextTokensUsed": 21121,
        "contextTokenLimit": 272000,
        "totalLinesAdded": 3,
        "totalLinesRemoved": 1,
        "subComposerIds": [],
        "subagentComposerIds": [],
        "capabilityContexts": [],
        "todos": [],
        **dict.fromkeys(_COMPOSER_FLAGS, False),
        **more,
    }


def header_entry(value, workspace="a1b2c3d4", folder="/code/demo"):
    """A conversation as the lists of Cursor 3 name it."""
    entry = {
        "type": "head",
        "composerId": value["composerId"],
        "name": value.get("name"),
        "createdAt": value["createdAt"],
        "lastUpdatedAt": value["lastUpdatedAt"],
        "unifiedMode": "agent",
        "isArchived": False,
        "isDraft": False,
        "workspaceIdentifier": {
            "id": workspace,
            "uri": {"$mid": 1, "fsPath": folder, "path": folder, "scheme": "file"},
        },
    }
    if "subagentInfo" in value:
        entry["subagentInfo"] = value["subagentInfo"]
    return entry


def small_talk(prefix, at=CREATED):
    """A prompt, a thought, a call that works, one that fails, an answer."""
    return [
        prompt(f"{prefix}-1", f"{prefix} please fix the parser", at=at),
        thought(f"{prefix}-2", f"{prefix} where is it", at=at + 1000),
        terminal(f"{prefix}-3", "make test", f"{prefix} 3 passed", at=at + 2000),
        terminal(f"{prefix}-4", "make lint", status="error", error=f"{prefix} broke", at=at + 3000),
        bubble(f"{prefix}-5", text=f"{prefix} it is fixed", at=at + 4000),
    ]


def put_conversation(db, value, bubbles):
    for one in bubbles:
        put_bubble(db, value["composerId"], one)
    put_composer(db, value)
