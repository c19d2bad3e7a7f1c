"""A proxy before a server that speaks S3: it counts requests, and may keep each waiting, as a store far away does.

    python benchmarks/counted_s3.py localhost:9000 --port 9001 --latency 0.02

Bytes are passed on as they come. `GET /-counts` answers with what has been counted since the last time, as JSON:
requests by method, bytes of their bodies and answers, and how many were under way at a time, at most and on average
while any was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

AT_A_TIME = 1 << 18
NO_BODY = (b"204", b"304")


@dataclass
class Counts:
    methods: Counter[str] = field(default_factory=Counter)
    nbytes: int = 0
    under_way: int = 0
    most: int = 0
    seconds: float = 0.0  # of all requests
    busy: float = 0.0  # while any was under way
    since: float = 0.0

    def begin(self, method: str) -> float:
        now = time.perf_counter()
        if self.under_way == 0:
            self.since = now
        self.methods[method] += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        return now

    def end(self, began: float, nbytes: int) -> None:
        now = time.perf_counter()
        self.under_way -= 1
        self.nbytes += nbytes
        self.seconds += now - began
        if self.under_way == 0:
            self.busy += now - self.since

    def told(self) -> dict[str, Any]:
        at_a_time = self.seconds / self.busy if self.busy else 0.0
        return {"methods": dict(self.methods), "nbytes": self.nbytes, "most": self.most, "at_a_time": at_a_time}


class Proxy:
    """Serves one upstream; each connection of a client has one of its own to there."""

    def __init__(self, upstream: str, latency: float) -> None:
        self.host, port = upstream.split(":")
        self.port, self.latency = int(port), latency
        self.counts = Counts()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: Any = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.split(b" ", 2)
                if path == b"/-counts":
                    await self._tell(writer)
                    return
                if there is None:
                    there = await asyncio.open_connection(self.host, self.port)
                await self._pass_on(method.decode(), head, (reader, writer), there)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for one in (writer, *(there or ())[1:]):
                one.close()

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        content = json.dumps(self.counts.told()).encode()
        self.counts = Counts()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(content), content))
        await writer.drain()

    async def _pass_on(self, method: str, head: bytes, here: Any, there: Any) -> None:
        began = self.counts.begin(method)
        nbytes = 0
        try:
            asked = fields(head)
            if b"expect" in asked:  # a client that waits for a word before it sends the rest
                here[1].write(b"HTTP/1.1 100 Continue\r\n\r\n")
                head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:"))
            if self.latency:
                await asyncio.sleep(self.latency)
            there[1].write(head)
            nbytes += await pump(asked, here[0], there[1])
            answer = await there[0].readuntil(b"\r\n\r\n")
            here[1].write(answer)
            if method != "HEAD" and answer.split(b" ", 2)[1] not in NO_BODY:
                nbytes += await pump(fields(answer), there[0], here[1])
            await here[1].drain()
        finally:
            self.counts.end(began, nbytes)


def fields(head: bytes) -> dict[bytes, bytes]:
    """The fields of a head, names in lower case."""
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:] if line)
    return {name.strip().lower(): value.strip() for name, _, value in lines}


async def pump(head: dict[bytes, bytes], source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> int:
    """Pass a body on, and count its bytes."""
    if head.get(b"transfer-encoding", b"").lower() == b"chunked":
        return await _pump_chunks(source, sink)
    left = total = int(head.get(b"content-length", 0))
    while left:
        content = await source.read(min(left, AT_A_TIME))
        if not content:
            raise ConnectionError("a body ends early")
        left -= len(content)
        sink.write(content)
        await sink.drain()
    await sink.drain()
    return total


async def _pump_chunks(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> int:
    total = 0
    while True:
        line = await source.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        sink.write(line + await source.readexactly(size + 2))
        await sink.drain()
        total += size
        if size == 0:
            return total


def counted(endpoint: str) -> dict[str, Any]:
    """What a proxy has counted since it was asked last."""
    with urllib.request.urlopen(f"{endpoint}/-counts") as answer:
        return json.load(answer)


async def run(options: argparse.Namespace) -> None:
    proxy = Proxy(options.upstream, options.latency)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", options.port, limit=1 << 20)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("upstream", help="host:port")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that each request waits")
    asyncio.run(run(parser.parse_args()))
