"""The addresses that the page asks, each one function. Nothing is looked up in a folder by a name that it sends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from svae._sealed import StoreError
from svae.config import ConfigError
from svae.data import DataError
from svae.runs import RunError
from svae.view import _answers, _edits
from svae.view._session import Session

ASSETS = Path(__file__).parent / "assets"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
OURS = (ConfigError, DataError, RunError, StoreError)  # errors that are one sentence
ASKED = ("run", "recording", "source", "window", "bout", "frames", "decoded", "decode", "plane", "forecast")
TOLD = ("name", "join", "part")


def make_app(session: Session) -> Starlette:
    """The application behind the guard."""
    files = {file.name: (file.read_bytes(), TYPES[file.suffix]) for file in ASSETS.iterdir() if file.suffix in TYPES}
    routes = [Route(f"/api/{name}", _answering(getattr(_answers, name), session)) for name in ASKED]
    routes += [Route(f"/api/{name}", _told(getattr(_edits, name), session), methods=["POST"]) for name in TOLD]
    routes += [Route(f"/assets/{file}", _file(*content)) for file, content in files.items()]
    app = Starlette(routes=[*routes, Route("/", _file(*files["index.html"]))])
    app.router.redirect_slashes = False
    return app


def _file(content: bytes, kind: str) -> Callable:
    return lambda request: Response(content, media_type=kind)


def _answering(function: Callable, session: Session) -> Callable:
    """An endpoint that answers with JSON or with arrays; our own errors are one sentence."""

    def endpoint(request: Request) -> Response:
        asked = dict(request.query_params)
        return _respond(lambda: function(session.of(asked.pop("block", None)), asked))

    return endpoint


def _told(function: Callable, session: Session) -> Callable:
    """An endpoint that writes; it answers with all states as they are now."""

    async def endpoint(request: Request) -> Response:
        try:
            told = json.loads(await request.body())
        except (ValueError, RecursionError):
            told = None
        return _respond(lambda: _written(function, session, told))

    return endpoint


def _written(function, session, told):
    if not isinstance(told, dict):
        raise ConfigError("the request holds no JSON object")
    block = told.pop("block", None)
    if block is not None and not isinstance(block, str):
        raise ConfigError("block must be the name of a discrete block")
    shown = session.of(block)
    shown.change(function(shown, told))
    return {"states": shown.states()}


def _respond(answer: Callable[[], Any]) -> Response:
    try:
        found = answer()
    except OURS as error:
        return JSONResponse({"error": str(error)}, 422)
    if isinstance(found, bytes):
        return Response(found, media_type="application/octet-stream")
    return JSONResponse(found)
