"""The light `dataclass`: what we use of the standard library's behaves the same."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sess_common import classes


def made(module):
    @module.dataclass(frozen=True)
    class Frozen:
        a: int
        b: str = "b"
        c: list[int] = module.field(default_factory=list)

    @module.dataclass
    class Open:
        a: int = 1

        @property
        def twice(self) -> int:
            return 2 * self.a

    return SimpleNamespace(frozen=Frozen, open=Open, module=module)


def outcome(call):
    try:
        value = call()
    except (TypeError, AttributeError) as error:
        # A frozen dataclass raises a kind of AttributeError.
        return TypeError if isinstance(error, TypeError) else AttributeError
    return repr(value).rpartition(".")[2]


CALLS = [
    lambda x: x.frozen(1),
    lambda x: x.frozen(1, "x", [2]),
    lambda x: x.frozen(a=1, c=[3]),
    lambda x: x.frozen(1, c=[3]),
    lambda x: x.frozen(),
    lambda x: x.frozen(b="x"),
    lambda x: x.frozen(1, "x", [2], 4),
    lambda x: x.frozen(1, other=2),
    lambda x: x.frozen(1) == x.frozen(1),
    lambda x: x.frozen(1) == x.frozen(2),
    lambda x: x.frozen(1) == x.open(1),
    lambda x: hash(x.frozen(1, c=())) == hash(x.frozen(1, c=())),
    lambda x: hash(x.open(1)),
    lambda x: setattr(x.frozen(1), "a", 2),
    lambda x: x.module.replace(x.frozen(1), b="y"),
    lambda x: x.module.replace(x.open(4)).twice,
    lambda x: x.module.replace(x.frozen(1), other="y"),
    lambda x: x.module.asdict(x.frozen(1, c=[7])),
    lambda x: x.frozen(1).c is x.frozen(1).c,
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_it_behaves_as_the_standard_librarys(number):
    """The same objects, the same errors."""
    results = [
        outcome(lambda module=module: CALLS[number](made(module)))
        for module in (dataclasses, classes)
    ]
    assert results[0] == results[1]


def test_the_functions_of_dataclasses_take_it():
    """A module that imports them from there gets the same."""
    one = made(classes).frozen(1, c=[2])
    assert dataclasses.replace(one, b="x") == classes.replace(one, b="x")
    assert dataclasses.asdict(one) == {"a": 1, "b": "b", "c": [2]}
    assert [field.name for field in dataclasses.fields(one)] == ["a", "b", "c"]


def test_an_open_object_can_be_changed():
    """Only frozen ones refuse."""
    one = made(classes).open()
    one.a = 21
    assert one.twice == 42


@given(st.text())
def test_a_later_pattern_is_the_pattern(text):
    """Compiled at first use, with its flags."""
    later, now = classes.later("[a-f]+", re.IGNORECASE), re.compile("[a-f]+", re.IGNORECASE)
    assert later.findall(text) == now.findall(text)
    assert later.sub("-", text) == now.sub("-", text)
