"""What notices are called, by label; what is not here is of a kind that nobody has described."""

from __future__ import annotations

from sess_schema import labels

NAMES = {
    "agent-name": "Agent named",
    labels.API_ERROR: "API error",
    labels.API_REFUSAL: "Refused",
    "attachment": "Attachment",
    labels.AWAY_SUMMARY: "While away",
    labels.BASH_OUTPUT: "Output",
    labels.BROKEN: "Damaged record",
    "caveat": "Caveat",
    labels.COMMAND_OUTPUT: "Output",
    labels.COMPACT: "Conversation compacted",
    labels.CONTEXT: "Context",
    labels.CONTINUED: "Continued from an earlier conversation",
    "coordinator": "Coordinator",
    "date_change": "Date changed",
    "command-contents": "Command",
    "deferred_tools_delta": "Tools changed",
    "edited_text_file": "File changed externally",
    labels.ERROR: "Error",
    "fallback": "Model changed",
    "file": "File",
    "history": "Prompt history",
    "hook-feedback": "Hook",
    "hook_additional_context": "Hook",
    labels.HOOK_BLOCKED: "Hook blocked",
    labels.HOOK_FAILED: "Hook failed",
    "hook_success": "Hook",
    "ide": "Editor",
    labels.INTERRUPTED: "Interrupted",
    "meta": "Instructions",
    labels.NESTED_MEMORY: "Memory",
    "notice": "Notice",
    labels.OVERSIZE: "Record too long to show",
    "pr-link": "Pull request",
    labels.QUEUED: "Queued",
    labels.REMINDER: "Reminder",
    "result": "Result",
    "skill_listing": "Skills",
    "stop_hook_summary": "Hooks",
    labels.TASK: "Background task",
    "task_reminder": "Reminder",
    labels.TEAMMATE: "Teammate",
    "todo_reminder": "Reminder",
    labels.TOOL_RESULT: "Result without a call",
    "turn_duration": "Turn",
}
_KNOWN = NAMES.keys() | labels.STATE | labels.LASTING | labels.TITLES | labels.OUTPUTS


def is_known(label: str | None) -> bool:
    return label is None or label in _KNOWN
