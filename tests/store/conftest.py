"""Buckets behind a real S3 protocol, served on loopback."""

from __future__ import annotations

import boto3
import fsspec
import pytest
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="module")
def server():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    fsspec.get_filesystem_class("s3").clear_instance_cache()  # its clients may talk to the server of another module
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(server, monkeypatch, request):
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    for name, value in {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    name = f"b{abs(hash(request.node.name))}"
    boto3.client("s3", endpoint_url=server).create_bucket(Bucket=name)
    return f"s3://{name}"
