"""A real object store that speaks S3, with versions and object lock: versitygw on a directory."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofgate.mirror.s3_client import Client, Credentials
from proofgate.mirror.target import Piece

from e2e.local_gateway import wait_until
from e2e.ports import free_port

MODULE = Path(__file__).parent / "versitygw"
SERVER = "github.com/versity/versitygw/cmd/versitygw"
KEYS = {"AWS_ACCESS_KEY_ID": "root-access", "AWS_SECRET_ACCESS_KEY": "root-secret-0123456789abcdef"}
REGION = "us-east-1"


def binary() -> Path:
    """The server, built once outside of the checkout (about three minutes)."""
    cache = Path(os.environ.get("PROOFGATE_CACHE") or Path.home() / ".cache" / "proofgate")
    version = next(line.split()[1] for line in (MODULE / "go.mod").read_text().splitlines() if "/versitygw v" in line)
    built = cache / f"versitygw-{version.removeprefix('v')}" / "versitygw"
    if not built.exists():
        made = subprocess.run(
            ["go", "build", "-o", f"{built}.new", SERVER], cwd=MODULE, capture_output=True, text=True, timeout=1800
        )
        assert made.returncode == 0, made.stderr
        Path(f"{built}.new").replace(built)
    return built


@dataclass
class ObjectStore:
    """A server that can be killed and started again on what it holds."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        for name in ("objects", "versions", "users"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if not self.port:
            self.port = free_port()
        command = [str(binary()), "--port", f"127.0.0.1:{self.port}", "--region", REGION]
        command += ["posix", "--versioning-dir", str(self.folder / "versions"), str(self.folder / "objects")]
        keys = {"ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=os.environ | keys, stdout=log, stderr=log)
        wait_until(self._answers, 30, "the object store listens")

    def _answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, (self.folder / "server.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(30)

    def client(self, bucket: str) -> Client:
        return Client(self.endpoint, REGION, bucket, Credentials(None, KEYS), None)

    def make(self, bucket: str, *, locked: bool = True) -> Client:
        headers = {"X-Amz-Bucket-Object-Lock-Enabled": "true"} if locked else {}
        client = self.client(bucket)
        with client.ask("PUT", headers=headers) as answer:
            assert answer.status_code == 200, answer.text
        return client


def put(client: Client, key: str, content: bytes) -> None:
    """As somebody who has the credentials and no scruples."""
    with client.ask("PUT", key, body=Piece.of(key, content)) as answer:
        assert answer.status_code == 200, answer.text


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    store = ObjectStore(folder)
    store.start()
    try:
        yield store
    finally:
        store.kill()
