"""`sess search`: find events by words and filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sess_cli.options import AsJson, NoPager, NoSync, Superseded, Texts, Utc, of_field
from sess_cli.parsing import WordsCommand, expanded
from sess_common.classes import dataclass
from sess_common.errors import SessError, no_such
from sess_schema.queries.fields import FIELDS

if TYPE_CHECKING:
    from sess_schema.queries.search import Filter


class _Filters:
    """Every filter as an option, each with the values that were chosen."""

    def chosen(self) -> list[Filter]:
        from sess_schema.queries.search import Filter

        filters = []
        for name, field in FIELDS.items():
            value = getattr(self, f"{name}_")
            if value is not None:
                filters += [Filter(name, one) for one in (value if field.several else [value])]
        return filters


if TYPE_CHECKING:
    Filters = _Filters
else:
    _KINDS = {
        f"{name}_": Annotated[Texts if field.several else str | None, of_field(name)]
        for name, field in FIELDS.items()
    }
    Filters = dataclass(
        type("Filters", (_Filters,), {"__annotations__": _KINDS, **dict.fromkeys(_KINDS)})
    )


class SearchCommand(WordsCommand):
    """Also expands `@name`."""

    def expanded(self, options: list[str], words: list[str]) -> tuple[list[str], list[str]]:
        from sess_cli.search import saved_searches

        return saved_searches.expanded(options, words)


def register(app: typer.Typer) -> None:
    app.command("search", cls=SearchCommand, context_settings={"help_option_names": ["--help"]})(
        expanded(search)
    )


def search(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS", help="Words, '\"a phrase\"', prefix*, -excluded, a OR b."),
    ] = None,
    *,
    filters: Filters,
    utc: Utc = False,
    error: Annotated[bool, typer.Option("--error", help="Same as --is failed.")] = False,
    substring: Annotated[
        bool, typer.Option("--substring", help="Also match inside words.")
    ] = False,
    regex: Annotated[
        bool, typer.Option("--regex", help="WORDS is a regular expression (Python syntax).")
    ] = False,
    case: Annotated[
        bool, typer.Option("-s", "--case-sensitive", help="Match case exactly.")
    ] = False,
    ignore_case: Annotated[
        bool, typer.Option("-i", "--ignore-case", help="Ignore case, which is the default.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("-w", "--whole-word", help="Match whole words only, like grep -w.")
    ] = False,
    tools_only: Annotated[
        bool,
        typer.Option("--tools-only", help="Find WORDS as one string in tool input and output."),
    ] = False,
    all_words: Annotated[
        bool, typer.Option("--all-words", help="Only events with all words, however few.")
    ] = False,
    sort: Annotated[
        str, typer.Option(metavar="ORDER", help="Order by relevance, newest or oldest.")
    ] = "relevance",
    flat: Annotated[bool, typer.Option("--flat", help="Do not group by session.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--limit",
            min=0,
            metavar="N",
            help="Show at most N hits; 0 for all. Default: 20, and all with -l.",
        ),
    ] = None,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="PAGE", help="`start`, then the cursor that the last page printed."),
    ] = None,
    after: Annotated[
        int | None, typer.Option("-A", metavar="N", help="Show N events after each hit.")
    ] = None,
    before: Annotated[
        int | None, typer.Option("-B", metavar="N", help="Show N events before each hit.")
    ] = None,
    around: Annotated[
        int, typer.Option("-C", metavar="N", help="Show N events before and after.")
    ] = 0,
    width: Annotated[
        int, typer.Option("--context", min=20, metavar="N", help="Show N characters of each hit.")
    ] = 160,
    as_json: AsJson = False,
    fields: Annotated[
        str | None, typer.Option(metavar="A,B", help="Print only these JSON fields.")
    ] = None,
    count: Annotated[
        bool, typer.Option("-c", "--count", help="Print only the number of hits.")
    ] = False,
    ids: Annotated[
        bool, typer.Option("--ids", help="Print only SESSION#EVENT of each hit.")
    ] = False,
    files_with_matches: Annotated[
        bool,
        typer.Option(
            "-l", "--files-with-matches", help="Print only paths of transcripts with a hit."
        ),
    ] = False,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=50, metavar="N", help="Print the best evidence that fits in N tokens."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the query is understood; do not search.")
    ] = False,
    open_it: Annotated[
        bool, typer.Option("--open", help="Open the best hit in the browser.")
    ] = False,
    save: Annotated[
        str | None, typer.Option(metavar="NAME", help="Save this search as @NAME.")
    ] = None,
    list_saved: Annotated[bool, typer.Option("--saved", help="List saved searches.")] = False,
    unsave: Annotated[
        str | None, typer.Option(metavar="NAME", help="Delete the saved search @NAME.")
    ] = None,
    list_history: Annotated[
        bool, typer.Option("--history", help="List past searches, if enabled in config.toml.")
    ] = False,
    superseded: Superseded = False,
    no_pager: NoPager = False,
    no_sync: NoSync = False,
) -> None:
    """Search all sessions, best match first.

    Searches prompts, answers, thinking, commands, tool input and full tool
    output. All words must occur in the same event; where they do in fewer than
    three, events with most of them follow. Filters also work inside WORDS:
    tool:Bash is:error since:7d -file:*.md. Exits with 1 if nothing is found.
    """
    from sess_cli.search import saved_searches
    from sess_cli.search.run import OutputOptions, loosely, perform
    from sess_schema.queries.search import Filter, Search

    if case and ignore_case:
        raise SessError("--case-sensitive and --ignore-case cannot be combined")
    if saved_searches.manage(listed=list_saved, unsave=unsave, past=list_history):
        return
    request = Search(
        " ".join(words or ()),
        (*filters.chosen(), *([Filter("is", "failed")] if error else [])),
        (0 if files_with_matches else 20) if limit is None else limit,
        mode=_mode(substring=substring, regex=regex, tools_only=tools_only),
        case=case,
        whole=whole,
        sort=_sort(sort),
        width=width,
        superseded=superseded,
        utc=utc,
        cursor=None if cursor == "start" else cursor,
    )
    request.check()
    options = OutputOptions(
        json=as_json, fields=fields, count=count, ids=ids, files=files_with_matches,
        max_tokens=max_tokens, explain=explain, open=open_it, flat=flat, paged=cursor is not None,
        before=around if before is None else before, after=around if after is None else after,
    )  # fmt: skip
    options.check()
    if not (all_words or options.whole_list or case or whole) and sort == "relevance":
        request.further = loosely
    typed = saved_searches.without(context.meta["typed"], "--save")
    perform(request, options, typed, sync=not no_sync, save=save, no_pager=no_pager)


def _mode(*, substring: bool, regex: bool, tools_only: bool) -> Any:
    chosen = {"substring": substring, "regex": regex, "tools": tools_only}
    modes = [name for name, on in chosen.items() if on]
    if len(modes) > 1:
        raise SessError("--substring, --regex and --tools-only cannot be combined")
    return modes[0] if modes else "words"


def _sort(order: str) -> Any:
    from sess_schema.queries.search import SORTS

    if order not in SORTS:
        raise no_such("order", order, SORTS)
    return order
