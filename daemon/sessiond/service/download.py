"""Downloads one file, because somebody gave its address; the only use of the network."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from sess_common import program
from sess_common.errors import Exit, SessError
from sess_schema import __version__

LARGEST = 256 << 20
TIMEOUT = 30.0
_BLOCK = 1 << 16
_PROTOCOLS = ("http", "https")


def is_address(target: str) -> bool:
    return target.partition("://")[0].lower() in _PROTOCOLS and "://" in target


def name_of(address: str) -> str:
    return unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2] or "download"


def download(address: str) -> Iterator[bytes]:
    """The bytes at an address; says which host is asked before it is asked."""
    _announce(address)
    request = urllib.request.Request(  # noqa: S310 - the protocol was checked
        address, headers={"User-Agent": f"sessiond/{__version__}"}
    )
    opener = urllib.request.build_opener(_Redirects)
    try:
        with opener.open(request, timeout=TIMEOUT) as answer:
            received = 0
            while piece := answer.read(_BLOCK):
                received += len(piece)
                if received > LARGEST:
                    raise _failed(address, f"is larger than {LARGEST >> 20} MiB")
                yield piece
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            why = f"the server answered {error.code} {error.reason}"
        raise _failed(address, why) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise _failed(address, str(reason) or type(error).__name__) from error


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to the web, and names the host first."""

    def redirect_request(self, *given: Any) -> Any:
        asked, target = given[0].full_url, given[-1]
        unsafe = asked.startswith("https:") and not target.startswith("https:")
        if unsafe or not is_address(target):
            raise urllib.error.URLError(f"refused a redirect to {target}")
        _announce(target)
        return super().redirect_request(*given)


def _announce(address: str) -> None:
    program.say(f"downloading from {urlsplit(address).hostname}")


def _failed(address: str, why: str) -> SessError:
    return SessError(
        f'cannot download "{address}": {why}',
        hint="save the file yourself and import it from disk",
        code=Exit.PROGRAM_FAILED,
    )
