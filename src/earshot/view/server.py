"""The server: gives the page to browsers on this machine only.

It listens on 127.0.0.1 only and answers only requests that use this address (a web site whose own name points
to this machine gets nothing). It has five addresses and serves no files.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from earshot.errors import EarshotError, UsageError
from earshot.view.page import page, policy
from earshot.view.runs import Catalogue

HOST = "127.0.0.1"


class PageServer(ThreadingHTTPServer):
    """Serves one catalogue until it is closed."""

    daemon_threads = True

    def __init__(self, catalogue: Catalogue, title: str, port: int = 0) -> None:
        self.catalogue = catalogue
        self.title = title
        self.reading = threading.Lock()
        "A lock: catalogues cache what they have read, so only one request at a time may use them."
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise UsageError(f"cannot listen on port {port}: {error.strerror}; choose another with --port") from None

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closed the connection is not an error."""


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "earshot"
    sys_version = ""

    def do_GET(self) -> None:
        try:
            self._check_host()
            kind, body = self._answer()
        except _Refused as refused:
            self._send(refused.status, "text/plain; charset=utf-8", f"{refused}\n".encode())
        except KeyError as unknown:
            self._send(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"there is no {unknown}\n".encode())
        except EarshotError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", f"{error}\n".encode())
        else:
            self._send(HTTPStatus.OK, kind, body)

    def _check_host(self) -> None:
        """Refuse the page of another site, which may reach this address under its own name."""
        names = {f"{HOST}:{self.server.server_port}", f"localhost:{self.server.server_port}"}
        if self.headers.get("Host", "") not in names:
            raise _Refused(HTTPStatus.FORBIDDEN, f"this server answers only as {HOST}")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise _Refused(HTTPStatus.FORBIDDEN, "this server answers only its own page")

    def _answer(self) -> tuple[str, bytes]:
        asked = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(asked.query, keep_blank_values=True).items()}
        catalogue = self.server.catalogue
        with self.server.reading:
            match asked.path:
                case "/":
                    shown = [entry.as_json() for entry in catalogue.worlds()]
                    return "text/html; charset=utf-8", page(self.server.title, shown, {}, served=True).encode()
                case "/world":
                    return "application/octet-stream", catalogue.world(_given(given, "world")).packed()
                case "/run":
                    world = _given(given, "world")
                    run = catalogue.run(world, _given(given, "run"))
                    return "application/octet-stream", run.packed(catalogue.world(world))
                case "/why":
                    asked_for = (_given(given, name) for name in ("world", "run", "event", "node"))
                    return "application/json", _json(catalogue.why(*asked_for))
                case "/updates":
                    updates = catalogue.updates()
                    shown = [entry.as_json() for entry in catalogue.worlds()]
                    return "application/json", _json({**updates, "worlds": shown} if updates is not None else None)
        raise _Refused(HTTPStatus.NOT_FOUND, "no such address")

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", policy(served=True))
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Only the command line prints."""


def _given(values: Mapping[str, str], name: str) -> str:
    if name not in values:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"say which {name}")
    return values[name]


def _json(value: Mapping[str, Any] | None) -> bytes:
    return json.dumps(value).encode()
