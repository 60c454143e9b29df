"""Traces: whose child a span is, when it was, which ID it has, and where it is sent."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import closing, contextmanager

import pytest

from sess_cli.export import otel
from sess_cli.export.files import Failures
from sess_cli.export.receiver import HEADERS, Receiver
from sess_cli.export.story import Story
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"
KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
def busy(world):
    """A call that fails, one that starts a subagent, and one that never ends."""
    t = world.transcript()
    t.append(
        t.prompt("go"),
        t.call("c1", command=f"echo {KEY}"),
        t.result("c1", "FAILED", is_error=True),
        t.call("c2", "Task", prompt="dig", description="Dig"),
        t.result("c2", "dug"),
        t.answer("done"),
        t.call("c3", command="sleep 9"),
    )
    agent = world.transcript("agent-7")
    agent.path = t.path.with_suffix("") / "subagents" / "agent-7.jsonl"
    agent.path.parent.mkdir(parents=True)
    agent.append(agent.prompt("dig", sessionId=MAIN, isSidechain=True))
    agent.append(agent.answer("dug", sessionId=MAIN, isSidechain=True))
    agent.path.with_suffix(".meta.json").write_text(json.dumps({"toolUseId": "c2"}))
    world.ingest()
    return world


def facts(span):
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def spans_in(lines):
    requests = [json.loads(line) for line in lines]
    resources = [resource for request in requests for resource in request["resourceSpans"]]
    return [span for one in resources for scope in one["scopeSpans"] for span in scope["spans"]]


def exported(world, *options):
    done = world.run("sess", "export", "otel", *options, "-o", "-", "--no-sync", check=0)
    return spans_in(done.stdout.splitlines())


@contextmanager
def receiver(*answers):
    """A real server: it answers each request in turn, the last answer ever after."""
    met = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            met.append((self.path, dict(self.headers), body))
            status, headers, answer = answers[min(len(met), len(answers)) - 1]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST  # noqa: N815 - a redirect would be followed by GET

        def log_message(self, *_):
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", met
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


Answer = tuple[int, dict[str, str], bytes]
TAKEN: Answer = (200, {}, b"{}")


def test_a_session_is_a_trace_of_agents_responses_and_calls(busy):
    spans = exported(busy, MAIN)
    names = {span["spanId"]: span["name"] for span in spans}
    assert len(names) == len(spans)
    assert len({span["traceId"] for span in spans}) == 1
    tree = sorted(
        (span["name"].split()[0], names.get(span.get("parentSpanId"), "")) for span in spans
    )
    agent = "invoke_agent claude"
    assert tree == sorted(
        [("invoke_agent", ""), ("invoke_agent", "execute_tool Task")]
        + [("chat", agent)] * 5
        + [("execute_tool", agent)] * 3
    )
    (failed,) = [span for span in spans if span.get("status")]
    assert facts(failed)["error.type"] == "error"
    assert facts(failed)["gen_ai.tool.call.result"] == "FAILED"
    chats = [facts(span) for span in spans if span["name"].startswith("chat")]
    (first,) = [one for one in chats if "go" in one.get("gen_ai.input.messages", "")]
    assert json.loads(first["gen_ai.output.messages"])[0]["parts"][0]["name"] == "Bash"
    assert first["gen_ai.provider.name"] == "anthropic"
    assert {facts(span)["gen_ai.conversation.id"] for span in spans} == {MAIN, "agent-7"}


def test_no_span_ends_before_it_starts(world):
    """Times that run backwards, and a record that has none."""
    t = world.transcript()
    t.append(
        t.prompt("go", timestamp="2026-03-01T12:00:00Z"),
        t.call("c1", command="make") | {"timestamp": "2026-03-01T11:00:00Z"},
        t.result("c1", "ok", timestamp="2026-03-01T10:00:00Z"),
        t.answer("done", timestamp=None),
    )
    world.ingest()
    spans = exported(world, MAIN)
    assert len(spans) == 4
    for span in spans:
        assert 0 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])


def test_ids_stay_when_a_session_grows_and_a_fork_makes_none_twice(busy):
    """What is sent again is the same span, and what a fork copied is not another one."""
    before = {(span["traceId"], span["spanId"]) for span in exported(busy, MAIN)}
    t = busy.transcript()
    fork = busy.transcript("22222222-2222-4222-8222-222222222222")
    fork.path.write_bytes(t.path.read_bytes().replace(MAIN.encode(), fork.session.encode()))
    fork.append(fork.prompt("on my own"), fork.answer("yes"))
    t.append(t.prompt("more"), t.answer("there"))
    busy.ingest()
    after = [(span["traceId"], span["spanId"]) for span in exported(busy, MAIN)]
    assert len(after) == len(set(after)) == len(before) + 1
    assert before < set(after)
    alone = exported(busy, fork.session)
    assert sorted(span["name"].split()[0] for span in alone) == ["chat", "invoke_agent"]
    assert not {(span["traceId"], span["spanId"]) for span in alone} & set(after)


def test_a_subagent_alone_has_the_spans_that_it_has_in_its_session(busy):
    within = {(span["traceId"], span["spanId"]) for span in exported(busy, MAIN)}
    alone = exported(busy, f"{MAIN}/agent-7")
    assert len(alone) == 2
    assert {(span["traceId"], span["spanId"]) for span in alone} < within


def test_traces_are_sent_masked_to_the_address_and_nowhere_else(busy):
    """Not through a proxy either, and with the headers of OpenTelemetry's variable."""
    with receiver(TAKEN) as (away, astray), receiver(TAKEN) as (site, met):
        busy.env |= {
            "http_proxy": away,
            HEADERS: "Authorization=Basic%20abc, x-team=one",
        }
        options = ("--endpoint", f"{site}/otel/", "--no-sync")
        done = busy.run("sess", "export", "otel", MAIN, *options, check=0)
    assert astray == []
    ((path, headers, body),) = met
    assert path == "/otel/v1/traces"
    assert (headers["Authorization"], headers["X-Team"]) == ("Basic abc", "one")
    assert headers["Content-Type"] == "application/json"
    assert KEY.encode() not in body
    assert len(spans_in([body])) == len(exported(busy, MAIN))
    assert "sending to 127.0.0.1\n" in done.stderr
    assert f"sent 10 spans to {site}/otel/v1/traces\n" in done.stderr


def test_secrets_are_sent_only_if_somebody_says_so(busy):
    with receiver(TAKEN) as (site, met):
        options = ("--endpoint", site, "--no-sync", "--no-redact")
        done = busy.run("sess", "export", "otel", MAIN, *options, check=2)
        assert "--endpoint with --no-redact uploads secrets" in done.stderr
        assert met == []
        busy.run("sess", "export", "otel", MAIN, *options, "--yes", check=0)
    assert KEY.encode() in met[0][2]


def test_a_receiver_that_is_busy_is_asked_again():
    busy = (503, {"Retry-After": "7"}, b"")
    pauses: list[float] = []
    with receiver(busy, (429, {}, b""), TAKEN) as (site, met):
        to = Receiver(site, pauses.append)
        to.send(b"one", 3)
    assert [body for *_, body in met] == [b"one"] * 3
    assert pauses[0] == 7
    assert 0.5 <= pauses[1] <= 1
    assert to.sent == 3


@pytest.mark.parametrize("status", [302, 307, 308, 400, 401, 413, 500])
def test_a_refusal_is_final_and_no_redirect_is_followed(status):
    pauses: list[float] = []
    with receiver(TAKEN) as (away, astray):
        answer = (status, {"Location": f"{away}/v1/traces"}, b"")
        with receiver(answer) as (site, met), pytest.raises(SessError, match=f"answered {status}"):
            Receiver(site, pauses.append).send(b"one", 1)
    assert (len(met), astray, pauses) == (1, [], [])


def test_a_receiver_that_is_not_there_is_asked_a_few_times():
    with receiver(TAKEN) as (site, _):
        pass
    pauses: list[float] = []
    with pytest.raises(SessError, match="cannot send to") as failed:
        Receiver(site, pauses.append).send(b"one", 1)
    assert len(pauses) == 5
    assert failed.value.code == 69


def test_what_a_receiver_refuses_of_a_request_is_told(busy):
    partly = b'{"partialSuccess": {"rejectedSpans": "4", "errorMessage": "too old"}}'
    with receiver((200, {}, partly)) as (site, _):
        options = ("--endpoint", site, "--no-sync")
        done = busy.run("sess", "export", "otel", MAIN, *options, check=5)
    assert "sent 6 spans" in done.stderr
    assert "it refused 4 spans: too old\n" in done.stderr


@pytest.mark.parametrize(
    "address", ["localhost:4318", "file:///etc/passwd", "http://", "http://u:p@h"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(SessError) as refused:
        Receiver(address)
    assert "u:p" not in refused.value.message


def test_a_long_session_is_sent_in_several_requests(busy, monkeypatch):
    whole = exported(busy, MAIN, "--no-redact")
    monkeypatch.setattr(otel, "_BATCH", 2000)
    with closing(open_reader(busy.state / "index.db")) as db, receiver(TAKEN) as (site, met):
        to = Receiver(site)
        otel.send([Story(db, sessions.resolve(db, MAIN))], to, Failures())
    assert len(met) > 3
    assert spans_in([body for *_, body in met]) == whole
    assert to.sent == len(whole)
