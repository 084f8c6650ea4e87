"""A ledger that a worker has written and sealed, with one exchange whose provider could not be reached."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from conftest import HTTP, PATIENCE_SECONDS, ConfigDirectory, refusing_port, started

from proofgate.archive import Archive
from proofgate.config import load

BODY = b'{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}'


@dataclass(frozen=True)
class Recorded:
    """The ledger's directory, the request's id, its body, and the log's first checkpoint."""

    ledger: Path
    request_id: str
    first_checkpoint: str
    body: bytes = BODY

    @property
    def log(self) -> Path:
        """The directory of its one log."""
        [log] = self.ledger.glob("0/*/")
        return log

    @property
    def origin(self) -> str:
        """The log's origin."""
        return (self.log / "checkpoint").read_text().split("\n", 1)[0]


def record(directory: ConfigDirectory) -> Recorded:
    """Runs a worker that records an exchange."""
    with refusing_port() as port:
        directory.replace("https://api.openai.com/v1/", f"http://127.0.0.1:{port}/v1/")
        config = load(directory.file)
        Archive(directory.ledger).store(config.public_json())
        with started(config) as worker:
            first = worker.checkpoint()
            url = f"http://{worker.address}/v1/chat/completions"
            answer = HTTP.post(url, content=BODY, headers={"Authorization": "Bearer acme-key"})
            assert answer.status_code == 502, answer.text
            worker.prove(answer.headers["x-request-id"], PATIENCE_SECONDS)
    return Recorded(directory.ledger, answer.headers["x-request-id"], first)


@pytest.fixture(scope="session")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(ConfigDirectory(tmp_path_factory.mktemp("recorded")))


@pytest.fixture
def recorded(recorded_once: Recorded, tmp_path: Path) -> Recorded:
    """A copy that the test may change."""
    return replace(recorded_once, ledger=shutil.copytree(recorded_once.ledger, tmp_path / "ledger"))
