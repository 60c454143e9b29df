"""One Claude Code transcript, record by record, in the shapes that the program writes."""

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import orjson
from outputs import numbered
from textpool import Project
from toolcalls import Call, call

Record = dict[str, Any]

MODELS = ("claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001")
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"
    " a file edit, the new_string was NOT written to the file). STOP what you are doing and wait"
    " for the user to tell you how to proceed."
)
OVERFLOW = 50_000
ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Transcript:
    """The lines of one file of about `budget` bytes. `start` is in milliseconds."""

    def __init__(
        self,
        project: Project,
        start: int,
        budget: int,
        *,
        session: str = "",
        agent: str = "",
        version: str = "",
    ) -> None:
        self.p, self.rng, self.clock = project, project.rng, start
        self.budget = budget
        self.session = session or self.uuid()
        self.agent = agent
        self.version = version or self.rng.choice(("2.0.76", "2.1.34", "2.1.88", "2.1.114"))
        self.branch = self.rng.choice(("main", "main", f"feat/{project.noun.one()}"))
        self.model = self.rng.choices(MODELS, (6, 3, 1))[0]
        self.parent: str | None = None
        self.lines: list[bytes] = []
        self.size = 0
        self.events = 0
        self.overflow: dict[str, str] = {}

    def uuid(self) -> str:
        h = f"{self.rng.getrandbits(128):032x}"
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"

    def id(self, prefix: str) -> str:
        return prefix + "".join(self.rng.choices(ALPHABET, k=22))

    def noise(self, size: int) -> str:
        return b64encode(self.rng.randbytes(size)).decode()

    def stamp(self) -> str:
        seconds, ms = divmod(self.clock, 1000)
        return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{ms:03}Z"

    def prose(self, median: float, sigma: float) -> str:
        size = min(9000, self.budget / 15, self.rng.lognormvariate(median, sigma))
        if self.p.terse:
            size *= 0.75
        return self.p.prose(int(size) + 1)

    def put(self, record: Record) -> None:
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self.lines.append(line)
        self.size += len(line)

    def chain(self, kind: str, fields: Record, *, parent: str | None = None) -> str:
        """Write a record that is a link of the parent chain; returns its uuid."""
        self.clock += int(self.rng.expovariate(1 / 2500)) + 15
        uuid = self.uuid()
        record = {
            "parentUuid": parent or self.parent,
            "isSidechain": bool(self.agent),
            "userType": "external",
            "cwd": self.p.cwd,
            "sessionId": self.session,
            "version": self.version,
            "gitBranch": self.branch,
            "type": kind,
            **fields,
            "uuid": uuid,
            "timestamp": self.stamp(),
        }
        if self.agent:
            record["agentId"] = self.agent
        self.put(record)
        self.parent = uuid
        return uuid

    def side(self, kind: str, fields: Record) -> None:
        self.put({"type": kind, **fields, "sessionId": self.session})

    # People

    def prompt(self, text: str | None = None) -> None:
        rng = self.rng
        if not self.agent and rng.random() < 0.4:
            snapshot = {"messageId": self.uuid(), "trackedFileBackups": {}}
            snapshot["timestamp"] = self.stamp()
            self.put(
                {
                    "type": "file-history-snapshot",
                    "messageId": snapshot["messageId"],
                    "snapshot": snapshot,
                    "isSnapshotUpdate": False,
                }
            )
        if text is None:
            text = self.prose(5.0, 1.0)
        if rng.random() < 0.06 and self.budget > 50_000:
            count = 6 if self.p.terse else 40
            text += "\n\n```\n" + "\n".join(self.p.file(self.p.path())[:count]) + "\n```"
        content: str | list[Record] = text
        if not self.p.terse and rng.random() < 0.06 and self.budget > 200_000:
            media = {"type": "base64", "media_type": "image/png"}
            media["data"] = self.noise(rng.randint(8_000, 60_000))
            content = [{"type": "text", "text": text}, {"type": "image", "source": media}]
        self.events += 1
        fields: Record = {"message": {"role": "user", "content": content}}
        if not self.agent:
            fields["permissionMode"] = "default"
        self.chain("user", fields)
        if not self.agent and rng.random() < 0.2:
            self.attachment()

    def attachment(self) -> None:
        rng, p = self.rng, self.p
        kind = rng.randrange(4)
        if kind == 0:
            self.events += 1
            body = {"type": "queued_command", "prompt": p.prose(80), "commandMode": "prompt"}
        elif kind == 1:
            body = {"type": "todo_reminder", "content": [], "itemCount": 0}
        elif kind == 2:
            body = {"type": "hook_success", "hookName": "PostToolUse:Edit", "stdout": p.phrase()}
            body |= {"hookEvent": "PostToolUse", "exitCode": 0, "stderr": ""}
        else:
            path = p.path()
            snippet = numbered(p.file(path)[:20], 1)
            body = {"type": "edited_text_file", "filename": path, "snippet": snippet}
        self.chain("attachment", {"attachment": body})

    def queue(self) -> None:
        text = self.p.prose(60)
        for operation in ("enqueue", "dequeue"):
            entry: Record = {"operation": operation, "timestamp": self.stamp()}
            if operation == "enqueue":
                entry["content"] = text
            self.side("queue-operation", entry)

    # The model

    def usage(self, output: int) -> Record:
        rng = self.rng
        written, cached = rng.randrange(200, 9000), rng.randrange(12_000, 150_000)
        counts = {
            "input_tokens": rng.randrange(1, 12),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": cached,
        }
        if not self.p.terse:
            counts["cache_creation"] = {
                "ephemeral_5m_input_tokens": written,
                "ephemeral_1h_input_tokens": 0,
            }
        return counts | {"output_tokens": output, "service_tier": "standard"}

    def respond(self, blocks: list[Record], stop: str) -> list[str]:
        """One response, written as one line per block under one message id."""
        rng = self.rng
        message, request = self.id("msg_01"), self.id("req_011C")
        usage = self.usage(rng.randrange(40, 1800))
        # Older versions wrote the count so far on all but the last line.
        streaming = rng.random() < 0.3
        uuids = []
        for n, block in enumerate(blocks):
            last = n == len(blocks) - 1
            seen = usage if last or not streaming else {**usage, "output_tokens": 1 + n * 3}
            body = {
                "model": self.model,
                "id": message,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": stop if last else None,
                "stop_sequence": None,
                "usage": seen,
            }
            uuids.append(self.chain("assistant", {"message": body, "requestId": request}))
            self.events += 1
        return uuids

    def thinking(self) -> Record:
        text = self.prose(6.0, 0.9)
        signature = self.noise(60 if self.p.terse else 200 + len(text) // 2)
        return {"type": "thinking", "thinking": text, "signature": signature}

    def text(self, median: float = 5.0) -> Record:
        return {"type": "text", "text": self.prose(median, 0.8)}

    def step(self) -> None:
        """Think, say, call one to four tools at once, and get their results."""
        rng, room = self.rng, self.budget - self.size
        blocks = [self.thinking()] if rng.random() < 0.3 else []
        if rng.random() < 0.45:
            blocks.append(self.text())
        calls = [call(self.p, room) for _ in range(rng.choices((1, 2, 3, 4), (80, 12, 5, 3))[0])]
        self.use(blocks, calls)

    def use(self, blocks: list[Record], calls: list[Call]) -> None:
        rng = self.rng
        ids = [self.id("toolu_01") for _ in calls]
        for ident, made in zip(ids, calls, strict=True):
            blocks.append({"type": "tool_use", "id": ident, "name": made.name, "input": made.input})
        uuids = self.respond(blocks, "tool_use")[-len(calls) :]
        for ident, uuid, made in zip(ids, uuids, calls, strict=True):
            if not self.p.terse and made.name == "Bash" and rng.random() < 0.3:
                self.progress(ident, uuid)
            self.result(ident, uuid, made)

    def progress(self, ident: str, uuid: str) -> None:
        for n in range(self.rng.randint(1, 3)):
            data = {"type": "bash_progress", "output": self.p.phrase(), "elapsedTimeSeconds": n + 2}
            fields = {"data": data, "toolUseID": f"bash-progress-{n}", "parentToolUseID": ident}
            self.chain("progress", fields, parent=uuid)

    def result(self, ident: str, uuid: str, made: Call) -> None:
        rng = self.rng
        block: Record = {"tool_use_id": ident, "type": "tool_result", "content": made.output}
        fields: Record = {"message": {"role": "user", "content": [block]}}
        luck = rng.random()
        if luck < 0.015 and made.name != "Task":
            block |= {"content": REFUSED, "is_error": True}
            fields |= {"toolUseResult": "User rejected tool use", "toolDenialKind": "user-rejected"}
        elif luck < 0.08 and isinstance(made.output, str) and made.name != "Task":
            text = f"Exit code {rng.choice((1, 1, 2, 127))}\n{made.output[:4000]}"
            block |= {"content": text, "is_error": True}
            fields["toolUseResult"] = f"Error: {text}"
        elif made.name == "Bash" and len(made.output) > OVERFLOW and self.spills(made):
            self.spill(ident, made, block)
            fields["toolUseResult"] = made.result
        elif not self.p.terse or made.name == "Task":
            fields["toolUseResult"] = made.result
        if not self.p.terse:
            fields["sourceToolAssistantUUID"] = uuid
        self.chain("user", fields, parent=uuid)

    def spills(self, made: Call) -> bool:
        """Not always: versions differ, and huge lines are what a reader must survive."""
        return self.rng.random() < (0.6 if len(made.output) < 900_000 else 0.3)

    def spill(self, ident: str, made: Call, block: Record) -> None:
        name = f"{ident[-9:].lower()}.txt"
        self.overflow[name] = made.output
        path = f"{self.p.cwd}/{self.session}/tool-results/{name}"
        preview = made.output[:2000]
        block["content"] = (
            f"<persisted-output>\nOutput too large ({len(made.output) // 1000}KB). Full output"
            f" saved to: {path}\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>"
        )
        made.result = {
            "stdout": preview,
            "stderr": "",
            "interrupted": False,
            "persistedOutputPath": path,
            "persistedOutputSize": len(made.output),
        }

    # The program

    def system(self, subtype: str, fields: Record) -> None:
        self.events += 1
        self.chain("system", {"subtype": subtype, "isMeta": False, **fields})

    def finish_turn(self) -> None:
        rng = self.rng
        self.respond([self.text(6.0)], "end_turn")
        if self.agent:
            return
        self.system("turn_duration", {"durationMs": rng.randrange(2_000, 400_000)})
        if rng.random() < 0.1:
            self.queue()
        if rng.random() < 0.05:
            error = {"status": 529, "error": {"type": "overloaded_error"}}
            self.system("api_error", {"error": error, "retryInMs": 541, "retryAttempt": 1})
        if rng.random() < 0.3:
            self.side("ai-title", {"aiTitle": self.p.phrase()})
        if rng.random() < 0.2:
            self.side("last-prompt", {"lastPrompt": self.p.prose(60)})
        self.clock += int(rng.expovariate(1 / 240_000))

    def compact(self) -> None:
        last, self.parent = self.parent, None
        meta = {"trigger": "auto", "preTokens": 155_000 + self.rng.randrange(9000)}
        fields = {"content": "Conversation compacted", "compactMetadata": meta}
        self.system("compact_boundary", {**fields, "logicalParentUuid": last})
        text = (
            "This session is being continued from a previous conversation that ran out of context."
        )
        size = 1500 if self.p.terse else 6000
        body = {"role": "user", "content": f"{text} {self.p.prose(size)}"}
        self.events += 1
        self.chain("user", {"message": body, "isCompactSummary": True})
