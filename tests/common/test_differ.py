"""Line diffs rebuild both sides, mark words, and read patches of every form."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount

from sess_common.differ import DiffLine, between, from_hunks, from_patch


def told(lines: list[DiffLine]) -> list[str]:
    """`-12 text`, with the changed words in brackets."""
    return [
        f"{one.sign}{one.new if one.old is None else one.old} "
        + "".join(f"[{text}]" if changed else text for text, changed in one.runs)
        for one in lines
    ]


def test_changed_words_of_similar_lines_are_marked():
    assert told(between("a\nfoo(bar, 1)\nc\n", "a\nfoo(baz, 1)\nc\n")) == [
        " 1 a", "-2 foo([bar], 1)", "+2 foo([baz], 1)", " 3 c",
    ]  # fmt: skip


def test_lines_with_little_in_common_are_not_marked():
    assert told(between("return None", "while waiting: pass")) == [
        "-1 return None", "+1 while waiting: pass",
    ]  # fmt: skip


def test_an_inserted_line_does_not_keep_the_next_from_its_partner():
    assert told(between("x = one(1)\n", "import a\nx = one(2)\n")) == [
        "-1 x = one([1])", "+1 import a", "+2 x = one([2])",
    ]  # fmt: skip


def test_context_leaves_out_the_rest_and_numbers_stay_true():
    old = [str(n) for n in range(1, 31)]
    new = [*old[:4], "new", *old[4:24], *old[25:]]
    assert told(between("\n".join(old), "\n".join(new), 101, 201, context=1)) == [
        " 104 4", "+205 new", " 105 5", "@124 @@ -124 +225 @@", " 124 24", "-125 25", " 126 26",
    ]  # fmt: skip
    assert between("same\n", "same\n") == []
    assert [one.sign for one in between("a\nb", "a\nc", context=0)] == ["-", "+"]


def test_a_missing_newline_at_the_end_is_a_change_only_between_two_texts_that_differ_in_it():
    assert told(between("", "a\n")) == ["+1 a"]
    assert told(between("a\n", "")) == ["-1 a"]
    assert told(between("a\n", "a")) == [" 1 a", "-2 "]
    assert between("", "") == []


def test_a_very_long_line_is_compared_at_its_ends():
    old, new = "x" * 5_000 + "old" + "y" * 5_000, "x" * 5_000 + "new" + "y" * 5_000
    removed, added = between(old, new)
    assert removed.runs == [("x" * 5_000, False), ("old", True), ("y" * 5_000, False)]
    assert added.runs[1] == ("new", True)


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d e f", "d e g", "}"]), max_size=30)


@settings(max_examples=amount(83, 750), deadline=None)
@given(LINES, LINES)
def test_both_sides_can_be_rebuilt_and_numbers_count_them(old, new):
    before, after = "\n".join(old), "\n".join(new)
    lines = between(before, after, context=None)
    kept_old = [one.text for one in lines if one.sign in " -"]
    kept_new = [one.text for one in lines if one.sign in " +"]
    # The newline at the end of both is nobody's line.
    assert "\n".join(kept_old) in (before, before.removesuffix("\n"))
    assert "\n".join(kept_new) in (after, after.removesuffix("\n"))
    assert [one.old for one in lines if one.sign in " -"] == [*range(1, len(kept_old) + 1)]
    assert [one.new for one in lines if one.sign in " +"] == [*range(1, len(kept_new) + 1)]
    near = between(before, after)
    assert [one for one in near if one.sign in "+-"] == [one for one in lines if one.sign in "+-"]


def test_no_shorter_diff_is_missed_among_lines_that_repeat():
    """Against a table of longest common sequences filled cell by cell."""
    chance = random.Random(6)
    for _ in range(100):
        old = [chance.choice("ab") for _ in range(chance.randrange(1, 20))]
        new = [chance.choice("ab") for _ in range(chance.randrange(1, 20))]
        table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
        for i, one in enumerate(old):
            for j, other in enumerate(new):
                table[i + 1][j + 1] = (
                    table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
                )
        lines = between("\n".join(old), "\n".join(new), context=None)
        assert sum(one.sign == " " for one in lines) <= table[-1][-1]
        if min(old.count("a"), old.count("b"), new.count("a"), new.count("b")) > 1:
            assert sum(one.sign == " " for one in lines) == table[-1][-1]


def test_large_and_hostile_texts_are_compared_too():
    """Each of these takes minutes where time grows with the square of the lines."""
    chance = random.Random(6)
    many = [f"line {n}" for n in range(50_000)]
    for old, new in [
        (many, [line + "x" for line in many]),
        (many, chance.sample(many, len(many))),
        ([chance.choice("ab") for _ in many], [chance.choice("ab") for _ in many]),
    ]:
        lines = between("\n".join(old), "\n".join(new), context=None)
        assert [one.text for one in lines if one.sign in " -"] == old
        assert [one.text for one in lines if one.sign in " +"] == new


def test_structured_patches_of_the_agents():
    hunks = [
        {"oldStart": 3, "newStart": 4, "lines": [" a", "-b 1", "+b 2", "\\ No newline"]},
        {"oldStart": 30, "newStart": 31, "lines": ["+c"]},
    ]  # fmt: skip
    assert told(from_hunks(hunks)) == [
        " 3 a", "-4 b [1]", "+5 b [2]", "@30 @@ -30 +31 @@", "+31 c",
    ]  # fmt: skip


def test_odd_structured_patches_are_read_as_far_as_they_go():
    listed: list[Any] = [None, 5, [], {}, {"lines": 7}, {"lines": [5, None]}]
    for odd in (None, 5, "text", dict[str, Any](), listed):
        assert from_hunks(odd) == []
    assert told(from_hunks([{"oldStart": "x", "newStart": -3, "lines": ["+a", 5, "", "?"]}])) == [
        "+1 a", " 1 ",
    ]  # fmt: skip


def test_unified_patches_with_several_files():
    patch = (
        "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ def f\n"
        " a\n--- b 1\n+-- b 2\n c\n"
        "--- a/gone\n+++ /dev/null\n@@ -9 +8,0 @@\n-last\n\\ No newline at end of file\n"
    )  # fmt: skip
    assert told(from_patch(patch)) == [
        "@None b/x", "@None @@ -1,3 +1,3 @@ def f", " 1 a", "-2 -- b [1]",
        "+2 -- b [2]", " 3 c", "@None a/gone", "@None @@ -9 +8,0 @@", "-9 last",
    ]  # fmt: skip


def test_unified_patches_whose_numbers_are_wrong():
    assert told(from_patch("--- x\n+++ x\n@@ -1,1 +1,1 @@\n a\n-b\n+c\n d")) == [
        "@None x", "@None @@ -1,1 +1,1 @@", " 1 a", "-2 b", "+2 c", " 3 d",
    ]  # fmt: skip
    assert told(from_patch("@@ @@\n-b\n+c\n")) == ["@None @@ @@", "-None b", "+None c"]


def test_patches_between_begin_and_end():
    patch = (
        "before\n*** Begin Patch\n*** Update File: a.py\n@@ def f\n x = 1\n-y = 2\n+y = 3\n"
        "*** Add File: b.py\n+new\n*** End of File\n*** End Patch\nafter"
    )
    assert told(from_patch(patch)) == [
        "@None Update File: a.py", "@None @@ def f", " None x = 1", "-None y = [2]",
        "+None y = [3]",
        "@None Add File: b.py", "+None new",
    ]  # fmt: skip


@given(st.text(alphabet="-+@ \n*a1,\\", max_size=80))
def test_no_text_is_too_odd_for_a_patch(text):
    from_patch(text)
    from_patch("*** Begin Patch\n" + text)
    from_patch("@@ -1,2 +1,2 @@\n" + text)
