"""Who gets in: only pages that this server sent, to the user who has the address it printed.

Everything is decided on the bytes of the request, before any route is looked up. The token is the first part of the
path, so that every address the page asks for carries it and nothing needs a cookie: cookies of 127.0.0.1 go to the
servers of all its ports. What is refused gets one answer, whatever the reason.
"""

import hmac
import re
from collections.abc import Awaitable, Callable

LARGEST_BODY = 16 * 1024  # bytes; a name is short
LONGEST_TARGET, LONGEST_HEAD = 4096, 16 * 1024  # bytes of path and query, and of all headers
PLAIN = re.compile(rb"/[A-Za-z0-9_\-./]*")  # our own addresses need no escapes, so none is looked behind
QUERY = re.compile(rb"[A-Za-z0-9_\-.,=&]*")
HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """An ASGI application around another, which sees only requests that pass, with the token cut from their path."""

    def __init__(self, app: Callable, token: str, port: int):
        self.app, self.token = app, token.encode()
        self.hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self.origins = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        path = self._inside(scope)
        body = None if path is None else await _body(scope, receive)
        if path is None or body is None:
            await _refuse(send)
            return
        inner = scope | {"path": path.decode(), "raw_path": path, "root_path": ""}
        await self.app(inner, _once(body), _with_headers(send))

    def _inside(self, scope) -> bytes | None:
        """The path behind the token, or None for whoever has no business here."""
        if scope["type"] != "http" or scope["http_version"] != "1.1" or scope["method"] not in ("GET", "POST"):
            return None
        target, query = scope.get("raw_path") or b"", scope["query_string"]
        if sum(len(key) + len(value) for key, value in scope["headers"]) > LONGEST_HEAD:
            return None
        if len(target) + len(query) > LONGEST_TARGET or not (PLAIN.fullmatch(target) and QUERY.fullmatch(query)):
            return None
        given, slash, rest = target[1:].partition(b"/")
        known = hmac.compare_digest(given, self.token)
        return b"/" + rest if known and slash and self._from_here(scope) else None

    def _from_here(self, scope) -> bool:
        """One Host, ours; no Origin but ours, and one at least where something is written."""
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return False
        here = [b"http://" + hosts[0]]
        return origins == here if scope["method"] == "POST" else origins in ([], here)


def _values(scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key.lower() == name]


async def _body(scope, receive) -> bytes | None:
    """The whole body; None where it is too large, or where there should be none."""
    most = LARGEST_BODY if scope["method"] == "POST" else 0
    lengths = _values(scope, b"content-length")
    if len(lengths) > 1 or any(not n.isdigit() or int(n) > most for n in lengths):
        return None
    found, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        found, more = found + message.get("body", b""), message.get("more_body", False)
        if len(found) > most:
            return None
    return found


def _once(body: bytes) -> Callable[[], Awaitable[dict]]:
    """A receive that hands over the body."""

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _with_headers(send: Callable) -> Callable:
    async def guarded(message):
        if message["type"] == "http.response.start":
            message = message | {"headers": [*message.get("headers", []), *HEADERS]}
        await send(message)

    return guarded


async def _refuse(send: Callable) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 403, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": b"refused\n"})
