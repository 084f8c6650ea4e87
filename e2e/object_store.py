"""A real S3 object store with versions and object lock: versitygw on a directory."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofgate.mirror.s3_client import Credentials, S3Client
from proofgate.mirror.target import MirrorObject

from e2e import go_binaries
from e2e.ports import free_port
from e2e.programs import Program, start_ready

KEYS = {"AWS_ACCESS_KEY_ID": "root-access", "AWS_SECRET_ACCESS_KEY": "root-secret-0123456789abcdef"}
REGION = "us-east-1"


@dataclass
class ObjectStore:
    """A server that can be killed and restarted on its data."""

    folder: Path
    port: int = 0
    program: Program | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        for name in ("objects", "versions", "users"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        chosen = self.port

        def start() -> Program:
            self.port = chosen or free_port()
            arguments = ["--port", f"127.0.0.1:{self.port}", "--region", REGION]
            arguments += ["posix", "--versioning-dir", str(self.folder / "versions"), str(self.folder / "objects")]
            keys = {"ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
            return Program.start(
                "object-store", self.folder, arguments, [str(go_binaries.object_store())], env=os.environ | keys
            )

        self.program, _ = start_ready(start, lambda program: program.wait_until(self._listens, "it listens"))

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self.program is not None:
            self.program.stop(signal.SIGKILL)

    def client(self, bucket: str) -> S3Client:
        return S3Client(self.endpoint, REGION, bucket, Credentials(None, KEYS), None)

    def make(self, bucket: str, *, locked: bool = True) -> S3Client:
        headers = {"X-Amz-Bucket-Object-Lock-Enabled": "true"} if locked else {}
        client = self.client(bucket)
        with client.request("PUT", headers=headers) as answer:
            assert answer.status_code == 200, answer.text
        return client


def put(client: S3Client, key: str, content: bytes) -> None:
    """Writes an object, like an attacker who has the credentials."""
    with client.request("PUT", key, body=MirrorObject.from_bytes(key, content)) as answer:
        assert answer.status_code == 200, answer.text


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    store = ObjectStore(folder)
    store.start()
    try:
        yield store
    finally:
        store.kill()
