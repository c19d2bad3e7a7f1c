"""A web server on loopback that serves a folder to whoever has a password, and parts of files to those who ask."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@contextmanager
def web_server(folder: Path, user: str, password: str) -> Iterator[tuple[str, list[str]]]:
    """Host and port, and the lines of requests so far; 401 without the password."""
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(False)

        def do_GET(self) -> None:
            self._answer(True)

        def _answer(self, with_body: bool) -> None:
            seen.append(self.path)
            path = folder / unquote(urlsplit(self.path).path).strip("/")
            if self.headers.get("Authorization") != expected:
                return self._send(401, b"", with_body)
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
            if body:
                self.wfile.write(content)

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
