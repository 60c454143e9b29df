"""Tokens and cost of every response, once and exactly, through real transcripts."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from sess_schema.connection import open_reader, open_writer
from sess_schema.queries import sessions
from sess_schema.queries.stats import Stats
from sessiond.prices import Pricer, exact_nano, reprice

SONNET = "claude-sonnet-4-5-20250929"
A, B, C = (f"{letter * 8}-1111-4111-8111-111111111111" for letter in "abc")


def line(transcript, message_id="msg_1", out=100, *, request="req_1", model=SONNET, **more):
    """One line of a response; what `usage` has besides comes as a dictionary."""
    usage = {"input_tokens": 3, "output_tokens": out, **more.pop("usage", {})}
    message = {
        "id": message_id,
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": f"{message_id} {request} {out}"}],
        "stop_reason": more.pop("stop_reason", None),
        "usage": usage,
    }
    return transcript.record(
        "assistant", message, **({"requestId": request} if request else {}), **more
    )


def counted(world):
    return world.sql(
        "SELECT s.native_id, u.input_tokens, u.output_tokens, u.cost_nano FROM usage u"
        " JOIN sessions s ON s.id = u.session_id WHERE u.counted = 1 ORDER BY u.ts, 1"
    )


def outputs(world):
    return [(session, out) for session, _, out, _ in counted(world)]


def only(world, columns):
    [row] = world.sql(f"SELECT {columns} FROM usage WHERE counted = 1")
    return row


def copies(transcript, lines, **more):
    """As a fork writes them: same ids and times, another session."""
    return [{**copied, "sessionId": transcript.session, **more} for copied in lines]


def both_orders(world, name, first, second):
    """Two files, read in one order or the other."""
    for transcript, lines in [first, second] if name == "forward" else [second, first]:
        transcript.append(*lines)
        world.ingest()


order = pytest.mark.parametrize("order", ["forward", "backward"])


@pytest.mark.parametrize("request_id", ["req_1", None])
def test_a_streamed_response_counts_its_last_line(world, request_id):
    t = world.transcript()
    t.append(*(line(t, out=out, request=request_id) for out in (1, 50, 100)))
    world.ingest()
    assert counted(world) == [(t.session, 3, 100, 9_000 + 1_500_000)]


def test_the_line_that_ended_the_response_beats_one_with_more_output(world):
    t = world.transcript()
    t.append(line(t, out=90, stop_reason="end_turn", usage={"input_tokens": 7}), line(t, out=95))
    world.ingest()
    assert counted(world) == [(t.session, 7, 90, 21_000 + 1_350_000)]


def test_of_equal_lines_the_later_one_counts_whole(world):
    t = world.transcript()
    t.append(line(t, out=5, usage={"input_tokens": 9}), line(t, out=5, usage={"input_tokens": 4}))
    world.ingest()
    assert only(world, "input_tokens, output_tokens") == (4, 5)


@order
@pytest.mark.parametrize("folder", ["-code-demo", "-code-other"])
@pytest.mark.parametrize("request_id", ["req_1", None])
def test_a_response_copied_into_a_fork_counts_once_for_the_original(
    world, order, folder, request_id
):
    original, fork = world.transcript(B), world.transcript(A, folder)
    lines = [original.prompt("go"), *(line(original, out=n, request=request_id) for n in (1, 50))]
    copied = copies(fork, lines, forkedFrom={"sessionId": B})
    both_orders(world, order, (original, lines), (fork, copied))
    assert outputs(world) == [(B, 50)]


@order
@pytest.mark.parametrize("request_id", ["req_1", None])
def test_a_fork_cut_in_mid_stream_owns_nothing_of_it(world, order, request_id):
    original, fork = world.transcript(B), world.transcript(A)
    lines = [original.prompt("go"), *(line(original, out=n, request=request_id) for n in (1, 50))]
    both_orders(world, order, (original, lines), (fork, copies(fork, lines[:2])))
    assert outputs(world) == [(B, 50)]


@order
def test_copies_with_new_uuids_are_the_earlier_sessions(world, order):
    original, fork = world.transcript(B), world.transcript(A)
    lines = [original.prompt("go"), line(original, out=1), line(original, out=50)]
    fork.count = 10
    copied = [
        {**old, "sessionId": A, "uuid": f"new-{number}"} for number, old in enumerate(lines[1:])
    ]
    both_orders(world, order, (original, lines), (fork, copied))
    assert outputs(world) == [(B, 50)]


@order
def test_the_best_line_counts_in_whichever_file_it_is(world, order):
    """Case 44; the owner is the earlier session all the same."""
    early, late = world.transcript(B), world.transcript(A)
    late.count = 50
    lines = [line(early, out=1)], [line(late, out=80, stop_reason="end_turn")]
    both_orders(world, order, (early, lines[0]), (late, lines[1]))
    assert outputs(world) == [(B, 80)]
    [(session,)] = world.sql(
        "SELECT s.native_id FROM usage u JOIN records t ON t.id = u.record_id"
        " JOIN sessions s ON s.id = t.session_id"
    )
    assert session == A


@order
def test_a_repeated_request_counts_the_earliest(world, order):
    """Case 06: one message id, two request ids, one session, read in one pass or in two."""
    t = world.transcript()
    t.append(line(t, out=10, request="req_2"))
    if order == "backward":
        world.ingest()
    t.append(line(t, out=70, request="req_1"))
    world.ingest()
    assert outputs(world) == [(t.session, 10)]
    assert world.sql("SELECT count(*) FROM usage") == [(2,)]


@order
@pytest.mark.parametrize("requests", [("r1", "r2", "r3"), (None, None, None)])
def test_a_message_id_that_a_gateway_gives_every_response_means_nothing(world, order, requests):
    """Answers to several prompts of one session are several responses."""
    t = world.transcript()
    for number, request in enumerate(requests, 1):
        t.append(t.prompt(f"prompt {number}"))
        t.append(*(line(t, out=out, request=request) for out in (1, 10 * number)))
        if order == "backward":
            world.ingest()
    world.ingest()
    assert outputs(world) == [(t.session, 10), (t.session, 20), (t.session, 30)]


@pytest.mark.parametrize(
    ("requests", "read", "expected"),
    [
        (("r1", "r2"), (3, 3), [10, 20]),
        ((None, None), (3, 50), [10, 20]),
        ((None, None), (3, 3), [20]),  # the result came while the response went on
        ((None, None), (0, 50), [20]),
    ],
)
def test_a_result_separates_responses_that_read_different_things(world, requests, read, expected):
    """Where one message id is all that tells them apart, and where the id is right."""
    t = world.transcript()
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
    t.append(
        t.prompt("go"),
        line(t, out=10, request=requests[0], usage={"input_tokens": read[0]}),
        t.record("user", {"role": "user", "content": [result]}),
        line(t, out=20, request=requests[1], usage={"input_tokens": read[1]}),
    )
    world.ingest()
    assert [out for _, out in outputs(world)] == expected


def test_a_message_typed_into_a_response_does_not_split_it(world):
    t = world.transcript()
    typed = {"type": "queued_command", "prompt": "and faster", "commandMode": "prompt"}
    t.append(t.prompt("go"), line(t, out=10, request=None))
    t.append(t.record("attachment", None, attachment=typed), line(t, out=20, request=None))
    world.ingest()
    assert outputs(world) == [(t.session, 20)]


@order
def test_a_message_id_of_another_session_is_another_response(world, order):
    """Case 42: some gateways number their messages from one."""
    first, second = world.transcript(A), world.transcript(B)
    second.count = 10
    lines = [line(first, out=10, request="r1")], [line(second, out=20, request="r2")]
    both_orders(world, order, (first, lines[0]), (second, lines[1]))
    assert outputs(world) == [(A, 10), (B, 20)]


@order
def test_a_fork_shares_a_session_with_what_it_copied(world, order):
    """The fork has both requests of the message, so they are one response."""
    original, fork = world.transcript(A), world.transcript(B)
    lines = [original.prompt("go"), line(original, out=10)]
    fork.count = 10
    copied = [*copies(fork, lines), line(fork, out=30, request="req_2")]
    both_orders(world, order, (original, lines), (fork, copied))
    assert outputs(world) == [(A, 10)]


def subagent(world, parent, name="agent-1"):
    t = world.transcript(parent.session)
    t.path = parent.path.with_suffix("") / "subagents" / f"{name}.jsonl"
    t.path.parent.mkdir(parents=True, exist_ok=True)
    t.count = 20
    return t


@order
def test_a_subagent_has_responses_of_its_own(world, order):
    """Case 24."""
    main = world.transcript(A)
    agent = subagent(world, main)
    lines = [line(main, out=10)], [line(agent, "msg_2", 20, request="r2", isSidechain=True)]
    both_orders(world, order, (main, lines[0]), (agent, lines[1]))
    assert outputs(world) == [(A, 10), ("agent-1", 20)]
    assert world.sql("SELECT output_tokens FROM usage WHERE sidechain = 1") == [(20,)]


@order
def test_a_subagents_replay_is_not_counted(world, order):
    """It has another request id and stands earlier: the main thread's row counts."""
    main = world.transcript(A)
    agent = subagent(world, main)
    main.count = 40
    lines = [line(main, out=10)], [line(agent, out=20, request="r2", isSidechain=True)]
    both_orders(world, order, (main, lines[0]), (agent, lines[1]))
    assert outputs(world) == [(A, 10)]


def ended(record, out):
    """The same record after the response ended, as a side agent keeps it."""
    message = record["message"]
    usage = {**message["usage"], "output_tokens": out}
    return {**record, "message": {**message, "stop_reason": "end_turn", "usage": usage}}


@order
@pytest.mark.parametrize("request_id", ["req_1", None])
@pytest.mark.parametrize("name", ["agent-acompact-1", "agent-aside_question-1"])
def test_a_copy_that_knows_the_final_count_gives_it_to_the_original(world, order, name, request_id):
    """Side agents repeat records with their ids, and know how the response ended."""
    main = world.transcript(B)
    agent = subagent(world, main, name)
    lines = [main.prompt("go"), line(main, out=37, request=request_id)]
    side = {"isSidechain": True, "agentId": name.removeprefix("agent-")}
    copied = [{**lines[0], **side}, {**ended(lines[1], 2872), **side}]
    both_orders(world, order, (main, lines), (agent, copied))
    assert outputs(world) == [(B, 2872)]
    assert world.sql("SELECT prompts FROM v_sessions WHERE session = ?", B) == [(1,)]
    assert only(world, "stop_reason, chars, sidechain") == ("end_turn", 0, 0)


def test_a_later_line_of_the_original_does_not_hide_the_final_count_of_a_copy(world):
    """The copy was read before the original, whose last line nobody copied."""
    main = world.transcript(B)
    agent = subagent(world, main, "agent-acompact-1")
    lines = [main.prompt("go"), line(main, out=37), line(main, out=12)]
    side = {"isSidechain": True, "agentId": "acompact-1"}
    copied = [{**lines[0], **side}, {**ended(lines[1], 2872), **side}]
    both_orders(world, "backward", (main, lines), (agent, copied))
    assert outputs(world) == [(B, 2872)]


def test_a_file_that_is_rewritten_with_the_final_count_tells_it(world):
    t = world.transcript()
    first = line(t, out=37)
    t.append(t.prompt("go"), first)
    world.ingest()
    t.path.write_bytes(b"".join(map(t.encode, [t.prompt("again"), ended(first, 2872)])))
    world.ingest()
    assert outputs(world) == [(t.session, 2872)]


@pytest.mark.parametrize(
    ("flat", "split", "expected", "cost"),
    [
        (1000, {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600}, (1000, 600),
         12_609_000),
        (1000, {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}, (1000, 0),
         11_259_000),
        (1000, {"ephemeral_1h_input_tokens": 600}, (1000, 600), 12_609_000),
        (1000, None, (1000, 0), 11_259_000),
        (None, {"ephemeral_5m_input_tokens": 400.0, "ephemeral_1h_input_tokens": None}, (400, 0),
         9_009_000),
    ],
)  # fmt: skip
def test_cache_writes_are_split_by_lifetime(world, flat, split, expected, cost):
    """Case 11 and its relatives."""
    t = world.transcript()
    usage = {"cache_creation_input_tokens": flat, "cache_creation": split}
    t.append(line(t, out=500, usage=usage))
    world.ingest()
    assert only(world, "cache_write_tokens, cache_write_1h_tokens, cost_nano") == (*expected, cost)


def test_a_null_speed_and_spaces_in_the_json_change_nothing(world):
    """Cases 13 and 17."""
    t = world.transcript()
    record = line(t, usage={"speed": None, "inference_geo": "us"})
    t.append(json.dumps(record).encode() + b"\n")
    world.ingest()
    assert only(world, "output_tokens, speed, geo, cost_nano") == (100, None, "us", 1_509_000)


def test_a_long_prompt_is_charged_whole_at_the_higher_rate(world):
    """Case 21."""
    t = world.transcript()
    usage = {"cache_creation_input_tokens": 1000, "cache_read_input_tokens": 250_000}
    t.append(line(t, usage=usage))
    world.ingest()
    assert only(world, "cost_nano, cost_source") == (159_768_000, "computed")


def test_a_model_without_a_price_keeps_its_tokens(world):
    """Case 29."""
    t = world.transcript()
    t.append(line(t, model="someone-elses-model-9"))
    world.ingest()
    assert only(world, "output_tokens, cost_nano, cost_source") == (100, None, "unknown")


def test_an_impossible_price_is_unknown(world):
    """A thousand million tokens of output would cost more than any response."""
    t = world.transcript()
    t.append(line(t, out=10**9))
    world.ingest()
    assert only(world, "cost_nano, cost_source") == (None, "unknown")


def test_a_cut_last_line_counts_once_it_is_whole(world):
    """Case 30."""
    t = world.transcript()
    last = t.encode(line(t, out=100))
    t.append(line(t, out=1), last[:-20])
    world.ingest()
    assert outputs(world) == [(t.session, 1)]
    t.append(last[-20:])
    world.ingest()
    assert outputs(world) == [(t.session, 100)]


@pytest.mark.parametrize(
    ("dollars", "nano"), [(0, 0), (0.0000000005, 1), (0.1598, 159_800_000), (2.5e-10, 0)]
)
def test_a_recorded_cost_is_taken_as_it_is(world, dollars, nano):
    t = world.transcript()
    t.append(line(t, costUSD=dollars))
    world.ingest()
    assert only(world, "cost_nano, cost_source") == (nano, "recorded")
    assert exact_nano(1.0000000005) == 1_000_000_001


def test_the_words_of_the_client_itself_cost_nothing(world):
    t = world.transcript()
    t.append(line(t, model="<synthetic>"))
    world.ingest()
    assert counted(world) == []


def test_a_response_without_a_message_id_is_known_by_its_request_or_its_line(world):
    t = world.transcript()
    t.append(line(t, None, 10), line(t, None, 20), line(t, None, 30, request=None))
    world.ingest()
    assert outputs(world) == [(t.session, 20), (t.session, 30)]


def test_numbers_survive_the_transcript(world):
    t = world.transcript()
    t.append(line(t, out=1), line(t, out=100), line(t, "msg_2", request="req_2"))
    world.ingest()
    before = counted(world)
    t.path.unlink()
    world.ingest()
    assert counted(world) == before != []


def test_reprice_changes_what_a_new_table_changes(world):
    t = world.transcript()
    t.append(
        line(t),
        line(t, "msg_2", request="req_2", model="my-own"),
        line(t, "msg_3", request="req_3", costUSD=0.5),
    )
    world.ingest()
    mine = Pricer({"my-own": {"input": 1_000_000, "output": 2_000_000}})
    with closing(open_writer(world.state / "index.db")) as db:
        assert reprice(db, Pricer()) == 0
        assert reprice(db, mine) == 1
        assert reprice(db, mine) == 0
    assert [cost for *_, cost in counted(world)] == [1_509_000, 203_000, 500_000_000]


def progress(main, agent, inner, number=1):
    """As the parent's file repeats what its subagent says."""
    data = {"type": "agent_progress", "agentId": agent.removeprefix("agent-"), "message": inner}
    record = main.record("progress", None, data=data, parentToolUseID=f"call_{number}")
    del record["message"]
    return record


@pytest.mark.parametrize("order", ["forward", "backward"])
def test_a_progress_line_tells_of_the_subagents_response_once(world, order):
    main = world.transcript(A)
    agent = subagent(world, main)
    said = line(agent, out=70)
    both_orders(world, order, (main, [progress(main, "agent-1", said)]), (agent, [said]))
    assert outputs(world) == [("agent-1", 70)]


@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("request_id", ["req_1", None])
@pytest.mark.parametrize("missing", ["agentId", "parentToolUseID", "both"])
def test_a_progress_line_without_names_counts_once(world, order, request_id, missing):
    """For a subagent without a file, and not again where the file has the response."""
    main = world.transcript(A)
    agent = subagent(world, main)
    alone, known = (line(agent, name, 70, request=request_id) for name in ("msg_1", "msg_2"))
    lines = [progress(main, "agent-1", said, number) for number, said in enumerate((alone, known))]
    lines.append({**progress(main, "agent-1", known, 1), "uuid": "again"})
    for one in lines:
        if missing != "parentToolUseID":
            del one["data"]["agentId"]
        if missing != "agentId":
            del one["parentToolUseID"]
    both_orders(world, order, (main, [main.prompt("go"), *lines]), (agent, [known]))
    found = dict(
        world.sql(
            "SELECT u.message_id, s.native_id FROM usage u JOIN sessions s"
            " ON s.id = u.session_id WHERE u.counted"
        )
    )
    assert found["msg_2"] == "agent-1"
    assert sorted(found) == ["msg_1", "msg_2"]
    total = "SELECT sum(output_tokens), sum(requests) FROM usage_sums"
    assert world.sql(total) == [(140, 2)]
    with closing(open_reader(world.state / "index.db")) as db:
        asked = Stats(session=sessions.resolve(db, A).key)
        assert asked.total(db).output_tokens == 140


def test_a_progress_line_counts_where_the_subagents_file_is_gone(world):
    main = world.transcript(A)
    main.append(main.prompt("go"), progress(main, "agent-1", line(main, out=70)))
    world.ingest()
    assert outputs(world) == [("agent-1", 70)]
    [(parent,)] = world.sql(
        "SELECT p.native_id FROM sessions s JOIN sessions p ON p.id = s.parent_id"
        " WHERE s.native_id = 'agent-1'"
    )
    assert parent == A


def test_advice_of_another_model_is_billed_on_top(world):
    t = world.transcript()
    advice = {"type": "advisor_message", "model": "claude-opus-4-5", "input_tokens": 1000}
    own = {"type": "message", "input_tokens": 3, "output_tokens": 100}
    more = {"iterations": [own, advice | {"output_tokens": 200}]}
    t.append(line(t, usage=more), line(t, usage=more, stop_reason="end_turn"))
    world.ingest()
    assert world.sql(
        "SELECT model, input_tokens, output_tokens, cost_nano FROM usage WHERE counted ORDER BY 1"
    ) == [
        ("claude-opus-4-5", 1000, 200, 1000 * 5_000 + 200 * 25_000),
        (SONNET, 3, 100, 3 * 3_000 + 100 * 15_000),
    ]


def test_a_response_includes_the_compaction_that_it_began_with(world):
    t = world.transcript()
    iterations = [
        {"type": "compaction", "input_tokens": 50_000, "output_tokens": 20,
         "cache_read_input_tokens": 7, "cache_creation_input_tokens": 4},
        {"type": "message", "input_tokens": 3, "output_tokens": 100},
    ]  # fmt: skip
    t.append(line(t, usage={"iterations": iterations}))
    world.ingest()
    assert only(world, "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens") == (
        *(50_003, 120),
        *(7, 4),
    )


def test_a_count_that_was_never_finished_is_marked_and_not_made_up(world):
    """All lines lack a reason to stop, and the count is smaller than the words."""
    t = world.transcript()
    for text in ("a" * 300, "b" * 500):
        record = line(t, out=4)
        record["message"]["content"][0]["text"] = text
        t.append(record)
        world.ingest()
    t.append(line(t, "msg_2", out=4, request="req_2", stop_reason="end_turn"))
    world.ingest()
    assert world.sql("SELECT output_tokens, chars FROM usage ORDER BY message_id") == [
        (4, 800),
        (4, 0),
    ]
    assert world.sql(
        "SELECT sum(output_tokens), sum(placeholders), sum(placeholder_chars) FROM usage_sums"
    ) == [(8, 1, 800)]


def test_what_the_cache_saved(world):
    """Reads at the price of input, less what writing cost more than that."""
    t = world.transcript()
    t.append(
        line(
            t,
            usage={
                "cache_read_input_tokens": 10_000,
                "cache_creation_input_tokens": 1_000,
                "cache_creation": {"ephemeral_1h_input_tokens": 400},
            },
        )
    )
    world.ingest()
    reads, short, long = 10_000 * (3_000 - 300), 600 * (3_750 - 3_000), 400 * (6_000 - 3_000)
    assert only(world, "saved_nano") == (reads - short - long,)
