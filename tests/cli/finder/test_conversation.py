"""The list and the conversation on screens of every size."""

from __future__ import annotations

import pytest
from tests.cli.finder.screen import drive


def test_the_preview_shows_the_hit_in_its_conversation(shop):
    """What was said around it is there, the hit has a bar beside it, matches are marked."""

    async def script(screen):
        await screen.type("FAILED")
        await screen.until(lambda: any("FAILED" in line for line in screen.preview()))
        shown = screen.preview()
        assert any("the checkout times out" in line for line in shown)
        assert [line for line in shown if line.startswith("▌")] == [
            next(line for line in shown if line.startswith("▌ ● Bash")),
            "▌   FAILED: gateway timeout after 30 s",
        ]
        assert screen.marked(screen.app._preview) == ["FAILED"]
        assert f"11111111#{screen.cite()}" in screen.heading()

    drive(shop, script)


def test_a_match_far_down_an_output_is_in_sight(shop):
    """Of a long output the lines around the match are shown, and the pane is scrolled there."""

    async def script(screen):
        await screen.type('"line 150"')
        await screen.until(lambda: screen.marked(screen.app._preview) == ["line 150"])
        shown = screen.preview()
        assert "▌   … 143 lines" in shown
        assert "▌   … 45 lines" in shown

    drive(shop, script, size=(120, 20))


def test_moving_in_the_list_moves_the_preview(shop):
    """Down goes into the list and to the next hit; up from the first returns to the line."""

    async def script(screen):
        await screen.type("gateway")
        first = screen.app.item.event
        await screen.press("down")
        assert screen.app._results.has_focus
        second, cite = screen.app.item.event, screen.cite()
        assert second != first
        await screen.until(lambda: f"#{cite}" in screen.heading())
        await screen.press("up", "up")
        assert screen.app._line.has_focus
        await screen.press("pagedown")
        assert screen.app.item.event not in (first, second)
        await screen.press("home")
        assert screen.app.item.event == first
        await screen.press("tab")
        assert screen.app._preview.has_focus
        await screen.press("slash")
        assert screen.app._line.has_focus

    drive(shop, script)


def test_hits_follow_each_other_without_leaving_the_line_or_the_conversation(shop):
    """Ctrl-N and Ctrl-J go to the next hit, Ctrl-P and Ctrl-K back; n and N while reading."""

    async def script(screen):
        await screen.type("gateway")
        first = screen.app.item
        for down, up in (("ctrl+n", "ctrl+p"), ("ctrl+j", "ctrl+k")):
            await screen.press(down)
            second = screen.app.item
            assert second.event != first.event
            await screen.press(up, up)
            assert screen.app.item == first
        assert screen.app._line.has_focus
        assert screen.app._line.value == "gateway"
        await screen.press("tab", "tab", "n")
        assert screen.app.item == second
        await screen.until(lambda: screen.cite() in screen.heading())
        await screen.press("N", "N")
        assert screen.app.item == first
        assert screen.app._preview.has_focus

    drive(shop, script)


def test_a_click_chooses_a_line(shop):
    """The mouse chooses a hit; a title stands for its best hit."""

    async def script(screen):
        await screen.type("gateway")
        await screen.pilot.click(screen.app._results, offset=(20, 3))
        assert screen.list()[2][2:12] in ("Bash error", "assistant ", "Read      ")
        chosen = screen.app.item.event
        await screen.pilot.click(screen.app._results, offset=(5, 1))
        assert screen.app.item.event != chosen

    drive(shop, script)


@pytest.mark.parametrize("size", [(80, 24), (160, 50), (40, 12), (20, 6)])
def test_it_fits_any_terminal(shop, size):
    """Nothing is wider than its pane; beside the list when wide, below when narrow."""

    async def script(screen):
        await screen.type("timeout")
        await screen.press("down", "tab", "f1", "escape")
        app, width = screen.app, size[0]
        for widget in (app._results, app._preview):
            for y in range(widget.size.height):
                assert widget.render_line(y).cell_length <= widget.size.width
        if width >= 110:
            assert app._preview.region.x > app._results.region.x
        elif size[1] >= 20:
            assert app._preview.region.y > app._results.region.y
        else:
            assert not app._preview.display
        assert app._facets.region.bottom <= app._results.region.y

    drive(shop, script, size)


def test_everything_on_a_small_screen_is_whole(shop):
    """At 80 columns all facets and all keys can be read."""

    async def script(screen):
        await screen.press("tab")
        text = "".join(
            "".join(segment.text for segment in line) + "\n"
            for line in screen.app.screen._compositor.render_strips(screen.app.size)
        )
        assert "F2 agent  F3 project  F4 tool  F5 errors  F6 date" in text
        assert "enter read" in text
        assert "esc quit" in text

    drive(shop, script, (80, 24))


def test_the_preview_can_be_hidden(shop):
    """`p` gives the list all the room, and a second `p` takes it back."""

    async def script(screen):
        await screen.press("tab", "p")
        assert not screen.app._preview.display
        assert screen.app._results.region.width == 160
        await screen.press("p")
        await screen.until(lambda: screen.app._preview.display)
        await screen.press("slash", "p")
        assert screen.app._line.value == "p"
        await screen.press("ctrl+o")
        assert not screen.app._preview.display

    drive(shop, script)


def test_hostile_text_is_plain_in_every_widget(world):
    """No line of the list, the conversation, the facets or their menus has a control character."""
    evil = "\x1b[2J[red]needle[/red]\r\n\tx\x00\u202e"
    t = world.transcript()
    t.append(t.prompt(evil, cwd=f"/code/{evil}"), t.call("c1", evil, command=evil))
    world.ingest()

    async def script(screen):
        await screen.until(lambda: screen.app._facets.chip("tool").facet.choices)
        await screen.type("needle")
        await screen.press("f3", "down", "enter", "f4", "down", "enter", "f4")
        await screen.until(lambda: screen.summary() == "1 hit")
        await screen.until(lambda: any("needle" in line for line in screen.preview()))
        drawn = screen.app.screen._compositor.render_strips(screen.app.size)
        text = "\n".join("".join(segment.text for segment in line) for line in drawn)
        assert all(c.isprintable() or c == "\n" for c in text)
        assert "[red]needle[/red]" in text

    drive(world, script)
