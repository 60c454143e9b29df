"""One home for each form that Cursor's databases ever had; each returns its conversation's id."""

from __future__ import annotations

from tests.cursor_databases import (
    ASSISTANT,
    CREATED,
    TOOL,
    USER,
    composer,
    encoded,
    global_database,
    header_entry,
    make_global,
    put_composer,
    put_conversation,
    put_header,
    put_item,
    small_talk,
    tool,
    workspace_database,
)


def generation1(home):
    """Up to 0.3x: tabs of a chat in the workspace's ItemTable."""
    turns = [
        {"type": "user", "id": "g1-1", "text": "g1 question", "rawText": "g1 question"},
        {"type": "ai", "id": "g1-2", "modelType": "gpt-4", "rawText": "g1 answer"},
    ]
    tab = {"tabId": "g1-tab", "chatTitle": "G1", "lastSendTime": CREATED, "bubbles": turns}
    db = make_global(workspace_database(home), tables=("ItemTable",), journal="delete")
    put_item(db, "workbench.panel.aichat.view.aichat.chatdata", {"tabs": [tab]})
    put_item(db, "aiService.prompts", [{"text": "g1 question", "commandType": 1}])
    db.close()
    return "g1-tab"


def generation2(home):
    """0.40 to 0.46: the messages are inside the conversation, tool calls in a string beside."""
    call = tool("g2-3", "read_file", params={"target_file": "a.py"}, result={"contents": "g2 file"})
    talk = [
        {"type": USER, "bubbleId": "g2-1", "text": "g2 question", "context": {}},
        {"type": ASSISTANT, "bubbleId": "g2-2", "text": "g2 answer"},
        {"type": ASSISTANT, "bubbleId": "g2-3", "text": "", "capabilityType": TOOL},
    ]
    calls = {"bubbleDataMap": encoded({"g2-3": call["toolFormerData"]})}
    value = {
        "composerId": "g2-composer",
        "name": "G2",
        "createdAt": CREATED,
        "lastUpdatedAt": CREATED + 5000,
        "conversation": talk,
        "capabilities": [{"type": TOOL, "data": calls}],
    }
    db = make_global(global_database(home))
    put_composer(db, value)
    db.close()
    _list_in_workspace(home, value)
    return "g2-composer"


def generation3(home):
    """0.47 to 2.x: headers in the conversation, a row for each bubble."""
    talk = small_talk("g3")
    value = composer("g3-composer", talk, name="G3", _v=10)
    db = make_global(global_database(home))
    put_conversation(db, value, talk)
    db.close()
    _list_in_workspace(home, value)
    return "g3-composer"


def generation4(home):
    """3.x: a list in the global ItemTable gives the project."""
    talk = small_talk("g4")
    value = composer("g4-composer", talk, name="G4")
    db = make_global(global_database(home))
    put_conversation(db, value, talk)
    put_item(db, "composer.composerHeaders", {"allComposers": [header_entry(value)]})
    db.close()
    selected = {"selectedComposerIds": ["g4-composer"]}
    db = make_global(workspace_database(home), journal="delete")
    put_item(db, "composer.composerData", selected)
    db.close()
    return "g4-composer"


def generation5(home):
    """From 3.12: that list is a table, and the old list no longer changes."""
    talk = small_talk("g5")
    where = header_entry(composer("g5-composer"))["workspaceIdentifier"]
    value = composer("g5-composer", talk, name="G5", workspaceIdentifier=where)
    db = make_global(global_database(home), headers=True)
    put_conversation(db, value, talk)
    put_header(db, value)
    put_item(db, "composer.composerHeaders.tableGateEnabled", "true")
    stale = header_entry(value) | {"name": "STALE"}
    put_item(db, "composer.composerHeaders", {"allComposers": [stale]})
    db.close()
    return "g5-composer"


def generation2w(home):
    """About 0.42: the messages are in the window's own list of conversations."""
    talk = [
        {"type": USER, "bubbleId": "g2w-1", "text": "g2w question", "richText": "", "context": {}},
        {
            "type": ASSISTANT,
            "bubbleId": "g2w-2",
            "text": "g2w answer",
            "timingInfo": {"clientStartTime": 123.4, "clientRpcSendTime": CREATED + 1000,
                           "clientSettleTime": CREATED + 3000, "clientEndTime": CREATED + 3000},
        },
    ]  # fmt: skip
    value = {
        "type": "head",
        "composerId": "g2w-composer",
        "name": "G2w",
        "createdAt": CREATED,
        "lastUpdatedAt": CREATED + 5000,
        "unifiedMode": "chat",
        "conversation": talk,
        "usageData": {"claude-3.5-sonnet": {"amount": 1, "costInCents": 0}},
    }
    db = make_global(workspace_database(home), journal="delete")
    put_item(db, "composer.composerData", {"allComposers": [value], "selectedComposerId": "x"})
    put_item(db, "cursorAuth/accessToken", "secret")
    db.close()
    return "g2w-composer"


GENERATIONS = (generation1, generation2, generation3, generation4, generation5, generation2w)


def _list_in_workspace(home, value):
    head = {"type": "head", "composerId": value["composerId"], "name": value["name"],
            "createdAt": value["createdAt"], "unifiedMode": "agent"}  # fmt: skip
    db = make_global(workspace_database(home), journal="delete")
    put_item(db, "composer.composerData", {"allComposers": [head], "selectedComposerIds": []})
    db.close()
