"""`sess check`: verify every archived byte and everything derived from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson

if TYPE_CHECKING:
    pass

_MOST_SHOWN = 20
_NAME_WIDTH = 10


def check(
    *,
    subset: Annotated[
        str,
        typer.Option(
            "--read-data-subset",
            metavar="SHARE",
            help="Read only this share of the archive, chosen at random, such as 10%.",
        ),
    ] = "100%",
    as_json: AsJson = False,
) -> None:
    """Verify the index and every archived byte.

    Pages, archive, full text, references and sums are checked.
    Every archived piece is compared with its checksum, and with its file if that is unchanged.
    Exits with 0 if all is well, 4 if anything is damaged.
    """
    from sess_cli.checking import check_all
    from sess_cli.output import json_line
    from sess_cli.terminal import Terminal
    from sess_common import paths, upkeep
    from sess_common.errors import Exit

    share = _share(subset)
    home = paths.home()
    terminal = Terminal()
    wrong = False
    for name, message, findings in check_all(home, share):
        wrong = wrong or bool(findings)
        if as_json:
            json_line(
                {
                    "check": name,
                    "ok": not findings,
                    "message": message,
                    "problems": [finding.message for finding in findings],
                }
            )
            continue
        mark = terminal.style("fail", "red") if findings else terminal.style("ok  ", "green")
        terminal.write(f"{mark}  {name:<{_NAME_WIDTH}}  {terminal.line(message)}")
        for finding in findings[:_MOST_SHOWN]:
            terminal.write(" " * (_NAME_WIDTH + 8) + terminal.line(finding.message))
        if len(findings) > _MOST_SHOWN:
            more = f"and {len(findings) - _MOST_SHOWN:,} more; --json lists all"
            terminal.write(" " * (_NAME_WIDTH + 8) + more)
    upkeep.note(home.data, upkeep.CHECK, ok=not wrong, share=share)
    if wrong:
        if not as_json:
            terminal.write("hint: `sessiond repair` mends what can be mended and names the rest")
        raise typer.Exit(Exit.INDEX_UNUSABLE)


def _share(given: str) -> float:
    from sess_common.errors import SessError

    try:
        share = float(given.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not given.endswith("%") or not 0 < share <= 1:
        raise SessError(
            f'"{given}" is not a share of the archive', hint="give a percentage, such as 10%"
        )
    return share
