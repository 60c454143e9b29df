"""Labels of events that shared code knows. Agents may use others; those are shown as they are."""

from __future__ import annotations

from typing import Final

# -- of prompts

COMMAND: Final = "command"  # a command of the agent, such as /compact
BASH: Final = "bash"  # a shell command that the person ran
MEMORY: Final = "memory"  # a note that the agent was told to keep
QUEUED: Final = "queued"  # typed while the agent was still working

# -- of answers and notices

API_ERROR: Final = "api_error"  # the service refused or failed to answer
API_REFUSAL: Final = "api_refusal"  # the model declined
ERROR: Final = "error"
BROKEN: Final = "broken"  # a record that nobody can read
INTERRUPTED: Final = "interrupted"  # the person stopped the work
COMPACT: Final = "compact"  # the conversation so far was replaced by a summary
CONTINUED: Final = "continued"  # the conversation goes on from an earlier one
AWAY_SUMMARY: Final = "away_summary"  # what happened while the person was away
CONTEXT: Final = "context"  # what the agent's client added to a prompt
NESTED_MEMORY: Final = "nested_memory"  # instructions from files
REMINDER: Final = "reminder"
TEAMMATE: Final = "teammate-message"
TASK: Final = "task-notification"  # a background task ended
BASH_OUTPUT: Final = "bash-output"  # of a command that the person ran
COMMAND_OUTPUT: Final = "command-output"
TOOL_RESULT: Final = "tool_result"  # a result that names no call
HOOK_BLOCKED: Final = "hook_blocking_error"
HOOK_FAILED: Final = "hook_non_blocking_error"

# -- of summaries

SUMMARY_TITLE: Final = "summary"
AI_TITLE: Final = "ai-title"  # made by a model
CUSTOM_TITLE: Final = "custom-title"  # given by the person

TITLES: Final = frozenset({SUMMARY_TITLE, AI_TITLE, CUSTOM_TITLE})
OUTPUTS: Final = frozenset({BASH_OUTPUT, COMMAND_OUTPUT, TOOL_RESULT})
ALARMS: Final = frozenset({API_ERROR, API_REFUSAL, BROKEN, ERROR, HOOK_BLOCKED, HOOK_FAILED})
