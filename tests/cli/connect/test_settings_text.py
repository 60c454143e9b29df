"""Values are added to settings files without a change to anything else in them."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sess_cli.connect.settings_text import NotUnderstood, read_json, with_json, with_toml

VALUE = {"command": "/bin/sess", "args": ["mcp"]}
COMMENTED = """{
  // my servers
  "mcpServers": {
    "git": { "command": "git-mcp", }, // keep
    /* old: "x": 1 */
  },
  "theme": "dark" // last
}
"""


def test_a_member_is_added_behind_the_others():
    text = '{\n    "a": 1,\n    "mcpServers": {\n        "git": {"command": "g"}\n    }\n}\n'
    assert with_json(text, ["mcpServers", "sess"], VALUE) == (
        '{\n    "a": 1,\n    "mcpServers": {\n        "git": {"command": "g"},\n        "sess": {\n'
        '            "command": "/bin/sess",\n            "args": [\n                "mcp"\n'
        "            ]\n        }\n    }\n}\n"
    )


def test_comments_order_and_trailing_commas_stay():
    edited = with_json(COMMENTED, ["mcpServers", "sess"], 7)
    assert edited == COMMENTED.replace(
        '"git": { "command": "git-mcp", }, // keep',
        '"git": { "command": "git-mcp", },\n    "sess": 7, // keep',
    )
    assert with_json(COMMENTED, ["other"], 1) == COMMENTED.replace(
        '"dark" // last', '"dark",\n  "other": 1 // last'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "m": {\n    "sess": 1\n  }\n}\n'),
        ("{}", '{\n  "m": {\n    "sess": 1\n  }\n}'),
        ('{"m": {}}', '{"m": {\n  "sess": 1\n}}'),
        ('{"m": {"a": 2}}', '{"m": {"a": 2, "sess": 1}}'),
        ('{"m": {"sess": 1}}', '{"m": {"sess": 1}}'),
        ('{"m": {"sess": [2, 3]}, "z": 0}', '{"m": {"sess": 1}, "z": 0}'),
        ('{\n\t"z": 0\n}\n', '{\n\t"z": 0,\n\t"m": {\n\t\t"sess": 1\n\t}\n}\n'),
    ],
)
def test_small_files(text, expected):
    assert with_json(text, ["m", "sess"], 1) == expected


def test_an_item_is_added_once():
    once = with_json("{}", ["hooks", "Start"], {"x": 1}, item=True)
    assert read_json(once) == {"hooks": {"Start": [{"x": 1}]}}
    twice = with_json(once, ["hooks", "Start"], {"x": 2}, item=True)
    assert read_json(twice) == {"hooks": {"Start": [{"x": 1}, {"x": 2}]}}
    assert with_json(twice, ["hooks", "Start"], {"x": 1}, item=True) == twice


@pytest.mark.parametrize(
    "text", ["{", '{"a": }', '{"a": 1 "b": 2}', "[1", '{"m": 3}', '{"m": []}', "{} {}", "nope"]
)
def test_what_is_broken_or_something_else_is_refused(text):
    with pytest.raises(NotUnderstood):
        with_json(text, ["m", "sess"], 1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    st.sampled_from([None, 2, "\t"]),
    st.lists(st.sampled_from(["m", "a", "", "ü"]), min_size=1, max_size=3),
    VALUES,
)
def test_any_json_says_the_same_and_the_new_value(before, indent, path, value):
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    try:
        after = json.loads(with_json(text, path, value))
    except NotUnderstood:
        inside = before
        for name in path[:-1]:
            inside = inside.get(name) if isinstance(inside, dict) else inside
        assert not isinstance(inside, dict)
        return
    wanted = json.loads(text)
    inside = wanted
    for name in path[:-1]:
        inside[name] = {} if inside.get(name) is None else inside[name]
        inside = inside[name]
    inside[path[-1]] = value
    assert after == wanted


TOML = '# mine\nmodel = "gpt"\n\n[mcp_servers.git]\ncommand = "git-mcp" # keep\n'


def test_a_table_goes_to_the_end_of_toml():
    edited = with_toml(TOML, ["mcp_servers", "sess"], VALUE)
    assert edited == f'{TOML}\n[mcp_servers.sess]\ncommand = "/bin/sess"\nargs = ["mcp"]\n'
    assert with_toml(edited, ["mcp_servers", "sess"], VALUE) == edited
    assert with_toml("", ["mcp_servers", "sess"], VALUE).startswith("[mcp_servers.sess]\n")


def test_a_table_that_is_there_is_replaced():
    text = f"{with_toml(TOML, ['mcp_servers', 'sess'], VALUE)}\n# after\n[other]\nx = 1\n"
    edited = with_toml(text, ["mcp_servers", "sess"], {"command": "new", "args": []})
    assert edited == text.replace('"/bin/sess"', '"new"').replace('["mcp"]', "[]")
    assert tomllib.loads(edited)["other"] == {"x": 1}


@pytest.mark.parametrize("text", ["x = ", "mcp_servers = {git = {}}", "[mcp_servers]\nsess = 3"])
def test_toml_that_cannot_be_edited_is_refused(text):
    with pytest.raises(NotUnderstood):
        with_toml(text, ["mcp_servers", "sess"], VALUE)
