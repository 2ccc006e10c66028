"""A real object store on this machine: an S3 server, a process of its own, spoken to over HTTP."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Event

import boto3

BUCKET = "earshot-test"
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
SERVER = "import moto.server; moto.server.main(['-H', '127.0.0.1', '-p', '0'])"


@contextmanager
def running_store(files: dict[str, str]) -> Iterator[dict[str, str]]:
    """A store with one bucket, which holds the files; the variables by which programs find it."""
    with (
        NamedTemporaryFile("r") as log,
        subprocess.Popen([sys.executable, "-c", SERVER], stderr=open(log.name, "w")) as server,
    ):
        try:
            while not (found := re.search(r"http://127[.0-9]+:\d+", Path(log.name).read_text())):
                assert server.poll() is None, log.read()
                Event().wait(0.1)
            address = found[0]
            client = boto3.client(
                "s3",
                endpoint_url=address,
                region_name=KEYS["AWS_REGION"],
                aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            )
            client.create_bucket(Bucket=BUCKET)
            for name, text in files.items():
                client.put_object(Bucket=BUCKET, Key=name, Body=text.encode())
            yield KEYS | {"AWS_ENDPOINT_URL": address}
        finally:
            server.kill()
