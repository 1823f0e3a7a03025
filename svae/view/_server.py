"""A server for one user on this machine, until Ctrl-C."""

import contextlib
import html
import os
import secrets
import socket
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import Any

from svae._sealed import StoreError
from svae.config import ConfigError
from svae.data import DataError
from svae.runs import Run, RunError
from svae.view._session import Session

HOST = "127.0.0.1"


class Viewer:
    """A run that can be looked at under `url` as soon as it exists, and is answered for while `serve` runs."""

    def __init__(self, run: Run, port: int = 0):
        self.uvicorn, make_app, guard = _need()
        self.session = Session(run)
        self.socket = _listen(port)
        self.port = int(self.socket.getsockname()[1])
        self.token = secrets.token_urlsafe(32)
        self.url = f"http://{HOST}:{self.port}/{self.token}/"
        self.app = guard(make_app(self.session), self.token, self.port)

    def serve(self) -> None:
        """Answer until Ctrl-C."""
        threading.Thread(target=self._warm, daemon=True).start()
        settings = self.uvicorn.Config(
            self.app,
            http="h11",  # strict about what a request is
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self.uvicorn.Server(settings).run(sockets=[self.socket])

    def _warm(self) -> None:
        """Programs are compiled before somebody asks for them; what cannot be is told to whoever asks."""
        from svae.view._asking import CONTEXTS, decode

        with contextlib.suppress(ConfigError, DataError, RunError, StoreError):
            decode(self.session.model, self.session.track(0).found.mean[:1])
            self.session.predict(0, min(len(self.session.paths[0]), CONTEXTS[0]) - 1)


def _need() -> tuple[Any, Any, Any]:
    """uvicorn, our application and its guard; one sentence where the extra is missing."""
    try:
        import uvicorn

        from svae.view._app import make_app
    except ImportError as error:
        raise ConfigError(f'view needs {error.name}, which is not installed; run  pip install "svae[view]"') from None
    from svae.view._guard import Guard

    return uvicorn, make_app, Guard


def _listen(port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise ConfigError(f"--port must be from 1 to 65535, or 0 for any that is free, not {port}")
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
        found.listen(128)  # from here on a browser waits rather than fails
    except OSError as error:
        found.close()
        raise ConfigError(f"port {port} cannot be used: {error.strerror or error}; choose another one") from None
    return found


def show_in_browser(url: str) -> Path:
    """Open the user's browser by a page that only they can read: the words of a command can be seen by all users."""
    folder = Path(tempfile.mkdtemp(prefix="svae-view-"))
    page = folder / "open.html"
    address = html.escape(url, quote=True)
    page.write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">svae</a>'
    )
    threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
    return folder
