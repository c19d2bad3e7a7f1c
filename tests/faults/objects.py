"""Rows about an object store that fails, truncates what it sends, and is slow."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
import fsspec
from moto.server import ThreadedMotoServer

from tests.faults.scene import Running, Scene
from tests.faults.table import SAME, Fault, Place, succeeded
from tests.helpers import unreliable_s3 as unreliable

SECRETS = ("aws_access_key_id", "aws_secret_access_key")


@contextmanager
def object_store(scene: Scene) -> Iterator[Place]:
    """Data, run folder and model behind S3, at a proxy."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()  # those of this process know other end points
    with s3_server() as direct, unreliable.unreliable_s3(direct) as (url, proxy):
        bucket = boto3.resource("s3", "us-east-1", endpoint_url=direct, **dict.fromkeys(SECRETS, "test")).Bucket("data")
        bucket.create()
        for path in Path(scene.store).rglob("*"):
            if path.is_file():
                bucket.upload_file(str(path), f"mail.zarr/{path.relative_to(scene.store)}")

        def begin(resume: bool = False, **how: Any) -> Running:
            folder = ("--resume" if resume else "--run", "s3://data/run")
            workers = () if scene.quick else ("--workers", 2)
            words = ("s3://data/mail.zarr", "s3://data/model", "-k", 20, "--no-cache", *workers, *folder)
            keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
            keys["AWS_RESPONSE_CHECKSUM_VALIDATION"] = "when_required"  # as of stores that send no checksums
            return scene.command("fit", *words, AWS_ENDPOINT_URL=url, **keys, **how)

        yield Place(begin, {"proxy": proxy})
        _fetch(bucket, scene)


@contextmanager
def s3_server() -> Iterator[str]:
    """The end point of an empty server that speaks S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    host, port = server.get_host_and_port()
    try:
        url = f"http://{host}:{port}"
        urlopen(Request(f"{url}/moto-api/reset", method="POST")).close()
        yield url
    finally:
        server.stop()


def _fetch(bucket: Any, scene: Scene) -> None:
    """Bring run folder and model to where those of all rows are looked at; there is nothing else in the bucket."""
    for item in bucket.objects.all():
        if not item.key.startswith("mail.zarr/"):
            path = scene.folder / item.key
            path.parent.mkdir(parents=True, exist_ok=True)
            bucket.download_file(item.key, str(path))
            assert item.key.startswith(("run/", "model/")), f"left behind: {item.key}"
    assert not list(bucket.multipart_uploads.all()), "an upload that was not ended"


def every_third_request_fails(scene: Scene, there: Place) -> str:
    there.proxy.deed = unreliable.every_third_fails
    succeeded(there.begin())
    assert min(there.proxy.done[deed] for deed in ("500", "503", "reset", "lost")) > 3
    return SAME


def answers_cut(scene: Scene, there: Place) -> str:
    there.proxy.deed = unreliable.truncated("cut", "/", 3)
    succeeded(there.begin())
    assert there.proxy.done["cut"] >= 5
    return SAME


def answers_short(scene: Scene, there: Place) -> str:
    there.proxy.deed = unreliable.truncated("short", "/", 5)
    succeeded(there.begin())
    assert there.proxy.done["short"] >= 5
    return SAME


def store_slow(scene: Scene, there: Place) -> str:
    there.proxy.deed = unreliable.slow
    succeeded(there.begin())
    return SAME


def row(name: str, happens: str, disturb: Any) -> Fault:
    return Fault(name, happens, "nothing", object_store, disturb, quick=disturb in (answers_cut, answers_short))


ROWS = [
    row(
        "an object store fails every third request, by 500, 503 or a reset connection, before or after it is done",
        "requests are repeated",
        every_third_request_fails,
    ),
    row(
        "an object store ends every third answer half-way",
        "fewer bytes come than were announced, and the request is repeated",
        answers_cut,
    ),
    row(
        "an object store sends half of every fifth answer, as if that were all",
        "checksums and sizes tell, and the request is repeated",
        answers_short,
    ),
    row("an object store takes 0.2 s for each answer, and sends it in drops", "all is slower", store_slow),
]
