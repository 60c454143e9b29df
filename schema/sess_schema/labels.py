"""Event labels known to shared code. Agents may use others, which are shown as they are."""

from __future__ import annotations

from typing import Final

# -- of prompts

COMMAND: Final = "command"  # an agent command such as /compact
BASH: Final = "bash"  # a shell command run by the user
MEMORY: Final = "memory"  # a note for the agent to remember
QUEUED: Final = "queued"  # typed while the agent was still working

# -- of answers and notices

API_ERROR: Final = "api_error"  # the service refused or failed to answer
API_REFUSAL: Final = "api_refusal"  # the model declined
ERROR: Final = "error"
BROKEN: Final = "broken"  # an unreadable record
OVERSIZE: Final = "oversize"  # a record too long to read
INTERRUPTED: Final = "interrupted"  # stopped by the user
COMPACT: Final = "compact"  # the conversation so far was replaced by a summary
CONTINUED: Final = "continued"  # continues an earlier conversation
AWAY_SUMMARY: Final = "away_summary"  # what happened while the user was away
CONTEXT: Final = "context"  # added to a prompt by the agent's client
NESTED_MEMORY: Final = "nested_memory"  # instructions from files
REMINDER: Final = "reminder"
TEAMMATE: Final = "teammate-message"
TASK: Final = "task-notification"  # a background task ended
BASH_OUTPUT: Final = "bash-output"  # of a shell command run by the user
COMMAND_OUTPUT: Final = "command-output"
TOOL_RESULT: Final = "tool_result"  # a result that names no call
HOOK_BLOCKED: Final = "hook_blocking_error"
HOOK_FAILED: Final = "hook_non_blocking_error"

# -- of notices that say what holds from then on; the last one counts

MODE: Final = "mode_change"  # that the agent works in
ENVIRONMENT: Final = "environment"  # where commands run, if not on this machine
PLAN: Final = "plan"
TODO: Final = "todo"  # the whole list
GOAL: Final = "goal"
PROFILE: Final = "agent_change"  # as whom the agent works
SYSTEM_PROMPT: Final = "system_prompt"

ARTIFACT: Final = "artifact"  # something the agent has made
OVERRIDE: Final = "session_tool_override"  # of a tool's settings, for this session
OPERATIONS: Final = frozenset({"generation_operation", "provider_tool_operation"})

# -- of summaries

SUMMARY_TITLE: Final = "summary"
AI_TITLE: Final = "ai-title"  # made by a model
CUSTOM_TITLE: Final = "custom-title"  # given by the user

# Messages that answers refer to, though no person typed them.
MESSAGES: Final = frozenset({TEAMMATE})
STATE: Final = frozenset({MODE, ENVIRONMENT, PLAN, TODO, GOAL, PROFILE, SYSTEM_PROMPT})
# Records about the session itself: they outlive the messages around them.
LASTING: Final = frozenset({MODE, PROFILE, ARTIFACT, OVERRIDE, CUSTOM_TITLE}) | OPERATIONS
TITLES: Final = frozenset({SUMMARY_TITLE, AI_TITLE, CUSTOM_TITLE})
OUTPUTS: Final = frozenset({BASH_OUTPUT, COMMAND_OUTPUT, TOOL_RESULT})
# Stand in for records whose content cannot be shown.
UNREADABLE: Final = frozenset({BROKEN, OVERSIZE})
ALARMS: Final = frozenset({API_ERROR, API_REFUSAL, ERROR, HOOK_BLOCKED, HOOK_FAILED}) | UNREADABLE
