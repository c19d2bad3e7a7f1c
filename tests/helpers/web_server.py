"""Web servers on loopback that serve a folder, and parts of files to those who ask: for a password, or signed URLs."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

Served: TypeAlias = AbstractContextManager[tuple[str, list[str]]]  # host and port, and the requests so far


def web_server(folder: Path, user: str, password: str) -> Served:
    """401 without the password."""
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    return _served(folder, lambda asked: 200 if asked.headers.get("Authorization") == expected else 401)


def signed_server(folder: Path, *queries: str) -> Served:
    """403 without one of the queries, and to HEAD with it: as object stores take URLs that were signed for GET."""
    return _served(
        folder, lambda asked: 200 if asked.command == "GET" and urlsplit(asked.path).query in queries else 403
    )


@contextmanager
def _served(folder: Path, answer_to: Callable[[BaseHTTPRequestHandler], int]) -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(False)

        def do_GET(self) -> None:
            self._answer(True)

        def _answer(self, with_body: bool) -> None:
            seen.append(f"{self.command} {self.path} {self.headers.get('Range') or 'whole'}")
            path = folder / unquote(urlsplit(self.path).path).strip("/")
            if (answer := answer_to(self)) != 200:
                return self._send(answer, b"", with_body)
            if path.is_dir():
                links = "".join(f'<a href="{one.name}{"/" * one.is_dir()}">x</a>' for one in sorted(path.iterdir()))
                return self._send(200, links.encode(), with_body, "text/html")
            if not path.is_file():
                return self._send(404, b"", with_body)
            return self._send_part(path.read_bytes(), self.headers.get("Range"), with_body)

        def _send_part(self, content: bytes, asked: str | None, with_body: bool) -> None:
            if asked is None:
                return self._send(200, content, with_body)
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(content) - int(last))
            stop = min(int(last) + 1, len(content)) if first and last else len(content)
            return self._send(206, content[start:stop], with_body, part=f"bytes {start}-{stop - 1}/{len(content)}")

        def _send(self, code: int, content: bytes, body: bool, kind: str = "binary/x", part: str | None = None) -> None:
            self.send_response(code)
            for name, value in {"Content-Length": len(content), "Content-Type": kind, "Accept-Ranges": "bytes"}.items():
                self.send_header(name, str(value))
            if part is not None:
                self.send_header("Content-Range", part)
            self.end_headers()
            with suppress(ConnectionError):  # who wanted to know the size alone hangs up
                self.wfile.write(content if body else b"")

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
