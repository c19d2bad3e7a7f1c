"""A proxy before a server that speaks S3, which does to some requests what networks and object stores do.

A deed gets the number of a request, its method and path, and returns what is to happen to it: None, or one of

    "500", "503"     an error of the server, which the request never reaches
    "reset"          the connection is reset before the request is passed on
    "lost"           the request is carried out, and the connection is reset before its answer
    "short"          half of the answer, with a Content-Length that says so: as if that were all
    "cut"            half of the answer, with the Content-Length of all of it, and the end of the connection
    "slow"           the answer after 0.2 s, in ten parts with 10 ms between them
"""

from __future__ import annotations

import http.client
import itertools
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Deed = Callable[[int, str, str], str | None]
HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}
SLOW_SECONDS = 0.2


class UnreliableS3:
    """The proxy. What it does may be changed at any time; ``done`` counts it."""

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.deed: Deed = nothing
        self.done: Counter[str] = Counter()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def choose(self, method: str, path: str) -> str | None:
        with self._lock:
            chosen = self.deed(next(self._numbers), method, path)
            self.done[chosen or "nothing"] += 1
        return chosen


def nothing(_number: int, _method: str, _path: str) -> str | None:
    return None


def every_third_fails(number: int, _method: str, _path: str) -> str | None:
    return ("500", "reset", "503", "lost")[number // 3 % 4] if number % 3 == 0 else None


def slow(_number: int, _method: str, _path: str) -> str | None:
    return "slow"


def truncated(how: str, part: str, every: int) -> Deed:
    """Of answers with the content of objects whose path has that part, each so manieth, from the first on."""
    seen = itertools.count()

    def deed(_number: int, method: str, path: str) -> str | None:
        about = method == "GET" and part in urlsplit(path).path and "list-type" not in path
        return how if about and next(seen) % every == 0 else None

    return deed


@contextmanager
def unreliable_s3(upstream: str) -> Iterator[tuple[str, UnreliableS3]]:
    """The end point of a proxy before another end point, and the proxy."""
    proxy = UnreliableS3(upstream)

    class Handler(_Handler):
        pass

    Handler.proxy = proxy
    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """A connection that either side has reset is what this is about."""


class _Handler(BaseHTTPRequestHandler):
    proxy: UnreliableS3
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None: ...

    def _handle(self) -> None:
        body = self._body()
        deed = self.proxy.choose(self.command, self.path)
        if deed == "reset":
            self._reset()
        elif deed in ("500", "503"):
            self._fail(int(deed))
        else:
            status, headers, content = self._passed_on(body)
            if deed == "lost":
                self._reset()
            else:
                self._answer(status, headers, content, deed)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _passed_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        there = http.client.HTTPConnection(self.proxy.upstream, timeout=30)
        try:
            there.request(self.command, self.path, body, headers | {"Content-Length": str(len(body))})
            answer = there.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            there.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, deed: str | None) -> None:
        length = next((value for name, value in headers if name.lower() == "content-length"), str(len(content)))
        sent = content[: len(content) // 2] if deed in ("short", "cut") else content
        if deed == "short":
            length = str(len(sent))
        if deed == "slow":
            time.sleep(SLOW_SECONDS)
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length if self.command != "HEAD" or deed != "short" else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self._send(sent, parts=10 if deed == "slow" else 1)
        if deed == "cut":
            self.close_connection = True

    def _send(self, content: bytes, parts: int) -> None:
        step = max(1, -(-len(content) // parts))
        for at in range(0, len(content), step):
            self.wfile.write(content[at : at + step])
            if parts > 1:
                self.wfile.flush()
                time.sleep(0.01)

    def _fail(self, status: int) -> None:
        code = "SlowDown" if status == 503 else "InternalError"
        content = f"<Error><Code>{code}</Code><Message>on purpose</Message></Error>".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _reset(self) -> None:
        """End the connection without a word, by a packet that says so."""
        with suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()
