"""Sends traces to the address that the user gives, and only there.

Through no proxy, and not to where the address redirects.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

from sess_common.errors import Exit, SessError
from sess_common.program import counted
from sess_schema import __version__

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
_RETRIED = (429, 502, 503, 504)
_ATTEMPTS = 6
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds
_TIMEOUT = 30.0
_ANSWER = 1 << 16  # bytes


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Receiver:
    """Where traces go: `URL/v1/traces`."""

    def __init__(self, endpoint: str, pause: Callable[[float], None] = time.sleep) -> None:
        self.address = _address(endpoint)
        self._pause = pause
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"sessiond/{__version__}",
            **headers(os.environ.get(HEADERS, "")),
        }
        proxies = urllib.request.ProxyHandler({})
        self._opener = urllib.request.build_opener(_NoRedirects, proxies)
        self.sent = self.refused = 0  # spans
        self.why = ""  # some were refused

    @property
    def host(self) -> str:
        return urlsplit(self.address).hostname or ""

    def send(self, body: bytes, spans: int) -> None:
        """Send it until it is taken, refused, or tried often enough."""
        cause: OSError | None = None
        for attempt in range(_ATTEMPTS):
            asked = urllib.request.Request(  # noqa: S310 - the protocol was checked
                self.address, data=body, headers=self._headers
            )
            pause = min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE) * (0.5 + random.random() / 2)  # noqa: S311
            try:
                with self._opener.open(asked, timeout=_TIMEOUT) as answer:
                    self._note(answer.read(_ANSWER), spans)
                    return
            except urllib.error.HTTPError as error:
                with error:
                    cause = OSError(f"it answered {error.code} {error.reason}")
                    if error.code not in _RETRIED:
                        break
                    pause = _retry_after(error.headers.get("Retry-After")) or pause
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", None) or error
                cause = OSError(str(reason) or type(error).__name__)
            if attempt + 1 < _ATTEMPTS:
                self._pause(pause)
        raise SessError(
            f'cannot send to "{self.address}": {cause}; {counted(self.sent, "span")} had arrived',
            hint="send again: spans keep their IDs, so none is doubled",
            code=Exit.PROGRAM_FAILED,
        ) from cause

    def _note(self, answer: bytes, spans: int) -> None:
        """A receiver may take a request and refuse some of its spans."""
        try:
            partly = json.loads(answer)["partialSuccess"]
            refused = min(int(partly.get("rejectedSpans") or 0), spans)
            self.why = str(partly.get("errorMessage") or self.why) if refused else self.why
        except (ValueError, LookupError, TypeError, AttributeError):
            refused = 0
        self.sent += spans - refused
        self.refused += refused


def _address(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise SessError(f'"{endpoint}" is not an address', hint="such as http://localhost:4318")
    if parts.username is not None:
        raise SessError("the address holds a password", hint=f"set it in ${HEADERS}")
    return endpoint.rstrip("/").removesuffix("/v1/traces") + "/v1/traces"


def headers(listed: str) -> dict[str, str]:
    """`name=value,name=value`, values percent-encoded: the form of OpenTelemetry's variable."""
    pairs = (pair.partition("=") for pair in listed.split(",") if pair.strip())
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def _retry_after(given: str | None) -> float:
    return min(float(given), _LONGEST_PAUSE) if given and given.strip().isdecimal() else 0.0
