"""Gate: who may ask. Checked before anything else of a request is looked at.

A page of some other site must not be able to use the service (it could otherwise: a browser sends requests to loopback
for anybody). So: the Host header must be one of ours (against DNS rebinding), a request that changes something must
come from our own page or from no page at all, and no CORS header is ever sent.

The token may come as the password of HTTP Basic, so that the page opens in a browser where the token is asked for. A
browser then sends it with whatever asks, other sites' pages included: alone it does not prove where a request is from.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from watcher.config import Api
from watcher.web.door import Refused
from watcher.web.token import Token

OPEN_PATH = "/healthz"
TOKEN_HEADER = "X-Depth-Watcher-Token"
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")


class Gate:
    def __init__(self, api: Api, token: Token) -> None:
        own = f"[{api.host}]" if ":" in api.host else api.host
        self._names = {name.lower() for name in (*_LOOPBACK, own, *api.names)}
        # What other machines can reach is never open, whatever the settings say of this machine.
        self._always = api.require_token or api.expose
        self._token = token

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raises ``Refused``: 421 for another host's name, 401 without the token, 403 for another site's page."""
        host = _HOST.fullmatch(headers.get("Host", ""))
        if host is None or host[1].lower() not in self._names:
            raise Refused(421, "wrong-host", "this name is not ours", "Use the address, or add it to api.names.")
        if path == OPEN_PATH:
            return
        given = _token_of(headers)
        if given is not None and not self._token.fits(given):
            raise Refused(401, "wrong-token", "the token is not the right one", "It is in the state folder: api-token.")
        basic = headers.get("Authorization", "").startswith("Basic ")
        if given is not None and not basic:
            return
        if self._always and not basic:
            raise Refused(401, "no-token", "the token is missing", f"Send the content of api-token as {TOKEN_HEADER}.")
        if method not in ("GET", "HEAD", "OPTIONS"):
            _check_same_origin(headers)


def _token_of(headers: Mapping[str, str]) -> str | None:
    given = headers.get(TOKEN_HEADER)
    if given is not None:
        return given.strip()
    scheme, _, rest = headers.get("Authorization", "").partition(" ")
    if scheme == "Bearer":
        return rest.strip()
    if scheme == "Basic":
        with contextlib.suppress(ValueError):
            return base64.b64decode(rest, validate=True).decode("utf-8", "replace").partition(":")[2].strip()
        return ""
    return None


def _check_same_origin(headers: Mapping[str, str]) -> None:
    """Browsers say where a request comes from; what says nothing is no browser."""
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
    same = origin is None or (urlsplit(origin).scheme == "http" and urlsplit(origin).netloc == headers.get("Host"))
    if not same or site not in ("none", "same-origin"):
        raise Refused(403, "other-site", "a page of another site asked for this", "Send the token to allow it.")
