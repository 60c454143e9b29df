"""The row of filters below the line."""

from __future__ import annotations

from tests.cli.finder.screen import drive

from sess_schema.queries.search import Filter


def test_errors_can_be_chosen_alone(shop):
    """F5 leaves failed calls only, a second F5 brings the rest back; a click does the same."""

    async def script(screen):
        await screen.type("timeout")
        everything = screen.list()
        await screen.press("f5")
        assert [line[2:12] for line in screen.list()[1:]] == ["Bash error"]
        await screen.pilot.click("#facet-errors")
        await screen.settle()
        assert screen.list() == everything

    drive(shop, script)


def test_a_facet_offers_what_is_in_the_index(shop):
    """Agents, projects and tools come from the index; the list follows; the chip tells."""

    async def script(screen):
        await screen.until(lambda: screen.app._facets.chip("tool").facet.choices)
        await screen.type("timeout")
        for facet, keys, label, titles in (
            ("agent", ["f2", "down", "enter"], "claude", 2),
            ("project", ["f3", "down", "enter"], "/code/demo", 1),
            ("project", ["f3", "f3", "enter"], "/code/other", 1),
            ("project", ["f3", "home", "enter"], "all", 2),
            ("tool", ["f4", "down", "enter"], "Bash", 1),
            ("date", ["f6", "end", "enter"], "last 30 days", 0),
        ):
            await screen.press(*keys)
            await screen.until(
                lambda label=label, facet=facet: screen.chosen(facet) == label  # the menu closes
            )
            await screen.settle()
            assert len([line for line in screen.list() if line[1] != " "]) == titles, label
        assert screen.summary() == "nothing found with these filters"

    drive(shop, script)


def test_a_facet_narrows_the_newest_sessions_too(shop):
    """Without words a project leaves its sessions, a tool leaves its calls."""

    async def script(screen):
        await screen.until(lambda: screen.app._facets.chip("tool").facet.choices)
        await screen.press("f3", "down", "down", "enter")
        await screen.until(lambda: len(screen.list()) == 1)
        await screen.press("f3", "up", "up", "enter")
        await screen.press("f4", "down", "enter")
        await screen.until(lambda: screen.summary() == "1 hit")
        await screen.press("f4", "escape")
        assert screen.summary() == "1 hit"

    drive(shop, script)


def test_a_tool_named_like_a_pattern_is_found_by_its_name(world):
    """The name of a tool is data: `[x]*` means that tool and no other."""
    t = world.transcript()
    t.append(t.prompt("go"), t.call("c1", "[x]*", a="needle"), t.call("c2", "x", a="needle"))
    world.ingest()

    async def script(screen):
        await screen.until(lambda: screen.app._facets.chip("tool").facet.choices)
        choices = screen.app._facets.chip("tool").facet.choices
        (strange,) = [one for one in choices if one.label == "[x]*"]
        screen.app._facets.choose("tool", strange)
        await screen.pilot.pause(0)
        await screen.type("needle")
        assert [line[2:6].strip() for line in screen.list()[1:]] == ["[x]*"]

    drive(world, script)


def test_filters_of_the_line_and_of_the_facets_meet(shop):
    """A facet and a filter that was typed must both hold."""

    async def script(screen):
        await screen.press("f5")
        await screen.type("tool:Read")
        assert screen.app._asked.filters == (Filter("is", "failed"),)
        assert screen.summary() == "nothing found with these filters"

    drive(shop, script)
