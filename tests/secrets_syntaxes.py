"""More places in which people and programs write a secret, for the grid of secrets."""

from __future__ import annotations

import html
import json
from collections.abc import Callable

Syntax = tuple[str, Callable[[str], str], str]


def _json(value: str) -> str:
    return json.dumps(value)[1:-1]


def _slashed(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def _doubled(value: str) -> str:
    return value.replace("'", "''")


def _ticked(value: str) -> str:
    return value.replace("`", "``").replace('"', '`"').replace("$", "`$")


def _no(characters: str) -> Callable[[str], str]:
    """The same without these; `$(...)` would be a command."""
    return lambda value: "".join("k" if c in characters else c for c in value.replace("$(", "k("))


def _word(*, no: str = "") -> Callable[[str], str]:
    """Without quotes, and beginning as a value does: a bracket or a `$` begins an expression."""

    def written(value: str) -> str:
        first = "k" if value[0] in "($<{[,-#" else value[0]
        return "".join("k" if c in "\"'`\\" + no else c for c in first + value[1:])

    return written


# Values may have blanks in them: quotes show where they end.
WITH_BLANKS: tuple[Syntax, ...] = (
    ("perl hash", _slashed, "$h{{{name}}} = '{secret}';"),
    ("braces", _json, 'std::string {name}{{"{secret}"}};'),
    ("default of php", _slashed, "'{name}' => env('OTHER', '{secret}'),"),
    ("default of getenv", _json, '{name} = os.getenv("OTHER", "{secret}")'),
    ("default of a field", _json, '    {name}: str = Field(default="{secret}")'),
    ("default of an option", _slashed, "@click.option('--api-key', default='{secret}')"),
    ("wrapped", _json, '    {name}: Some("{secret}".to_string()),'),
    ("hashed", _doubled, "UPDATE u SET password = crypt('{secret}', gen_salt('bf'));"),
    ("for a user", _doubled, "SET PASSWORD FOR 'bob'@'%' = '{secret}';"),
    ("tuple", _json, '{{:{name}, "{secret}"}}'),
    ("equals", _json, 'if ({name}.equals("{secret}")) {{'),
    ("changed", _json, '      ~ {name} = "old-1" -> "{secret}"'),
    ("from and to", _no('"\\'), 'changed {name} from "old-one-1" to "{secret}"'),
    ("aside", _no("`"), "{name} (currently `{secret}`)"),
    ("length", _no('"'), '["{name}"]=>\n  string(12) "{secret}"'),
    ("tag of yaml", _json, '  {name}: !!str "{secret}"'),
    ("anchor of yaml", _json, '  {name}: &pw "{secret}"'),
    ("example", _json, '  {name}:\n    type: string\n    example: "{secret}"'),
    ("quoted cell", lambda v: v.replace('"', '""'), 'id,{name},host\n7,"{secret}",h'),
    ("property text", html.escape, '<property name="{name}">{secret}</property>'),
    ("ticks of powershell", _ticked, '$env:{name}="{secret}"'),
    ("setter", _json, 'ds.setPassword("{secret}");'),
)  # fmt: skip
# Something else than quotes shows where the value ends.
WITHOUT_BLANKS: tuple[Syntax, ...] = (
    ("npmrc", _word(), "registry=https://r.example/\n//r.example/:_authToken={secret}\nfund=false"),
    ("helm", _word(no=","), "helm upgrade app ./c --set auth.{name}={secret} --wait"),
    ("pairs of a log", _word(), "level=info user=bob password={secret} took=3ms"),
    ("pairs with commas", _word(no=",;)"), "mount -o user=bob,password={secret},vers=3.0 //h/s /m"),
    ("text of an object", _word(no=",;()"), "User(id=1, {name}={secret}, admin=false)"),
    ("go object", _word(no="{}"), "{{User:bob {name}:{secret} Port:1}}"),
    ("php object", _word(), "Array\n(\n    [user] => bob\n    [{name}] => {secret}\n)"),
    ("plain yaml", _word(no="#{}[]&*!|>%@,:"), "db:\n  user: bob\n  {name}: {secret}\n  port: 1"),
    ("plain ini", _word(no=";#"), "[client]\nuser = bob\n{name} = {secret}\nport = 1"),
    ("makefile", _word(no="#$"), "{name} := {secret}\nall:"),
    ("arrow", _word(), "- {name} → {secret}"),
    ("switch", _word(), "login /user:bob /password:{secret} /y"),
    ("logged", _word(), "DEBUG using {name}: {secret}"),
    ("in a sentence", _word(), "my api key is {secret} and it does not work"),
    ("with a user", _word(no=","), "log in with user bob and password {secret}"),
    ("columns", _word(), "Key       Value\n---       -----\nusername  bob\npassword  {secret}"),
    ("tabs", _word(), "id\tpassword\n1\t{secret}\n"),
    ("box", _word(no="|"), "│ user │ password │\n├──────┼──────────┤\n│ bob │ {secret} │"),
    ("row of a box", _word(no="|"), "│ {name} │ {secret} │"),
    ("block of code", _word(), "{name}:\n```\n{secret}\n```"),
    ("form", _word(), 'Content-Disposition: form-data; name="{name}"\n\n{secret}\n--b--'),
    ("variable and value", _word(no="#{}[]&*!|>%@,:"), "- name: {name}\n  value: {secret}\n"),
)  # fmt: skip

# Forms for which there is no rule: only the net finds what is in them.
UNKNOWN: tuple[str, ...] = (
    "{secret} is the {name} now",
    "I typed {secret} when it asked for the {name}",
    "try {secret} as {name}",
    "the {name} on staging got rotated yesterday, new one: {secret}",
    "{name} (staging) » {secret}",
    "{name} ~> {secret}",
    "[{name}] {secret}",
    "{name}\n\t{secret}",
    "{name}\n-------------\n{secret}",
    "> what's the {name}?\n{secret}",
    "{name} / {secret}",
    "{name}; {secret}",
    "{secret} # {name}",
    "{secret} -- {name} for prod",
    "{secret} <- {name}",
    "{secret}\t{name}",
    "case {name} of '{secret}' -> ok",
    "(setq my-{name} '{secret}')",
    "EXEC sp_addlogin 'bob', '{secret}' -- {name}",
    "Your one time {name} will be {secret}",
    "wifi: SSID Cafe, {name}, {secret}",
    "{name}... {secret}",
    "typed: {secret} (that is the {name})",
    "old {name} {secret}, new one follows",
    "* {name}\n  + {secret}",
    "Enter {name}: \n{secret}\nLogin ok",
    "the {name}, which I got from Eve, reads {secret}",
    "please export {secret} in place of the {name}",
    "type {secret}, it is our {name}",
    "{name}:\n\n    {secret}\n",
)


def _lines(form: str) -> Callable[[str], str]:
    return lambda text: "\n".join(form.format(line) for line in text.split("\n"))


def _notebook(text: str) -> str:
    """Each line is a string of its own."""
    return json.dumps([f"{line}\n" for line in text.split("\n")], indent=1)


# Where the text stands besides those of the grid.
PLACES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("notebook", _notebook),
    ("page", lambda text: f"<pre>\n{html.escape(text, quote=False)}\n</pre>"),
    ("syslog", _lines("Mar  4 05:06:07 web1 app[123]: {}")),
    ("compose", _lines("web-1  | {}")),
    ("application log", _lines("[2026-03-04 05:06:07] app.INFO: {}")),
    ("block comment", _lines(" * {}")),
)  # fmt: skip
