"""A ledger that is audited over the admin ports of its workers, or of stand-ins for them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from proofgate import _core
from proofgate.auditor.served_ledger import ROOT, ServedLedger
from proofgate.http_errors import ApiError, handle_api_error
from proofgate.reading.routes import LedgerReadRoutes

from e2e.asgi_server import asgi_server
from e2e.auditing import Audit
from e2e.programs import PATIENCE, PROOFGATE

#: The value that the command uses for `--second-look 0.1`, in microseconds.
_SECOND_LOOK = 100_000
_ALL = (1 << 64) - 1


@dataclass(frozen=True)
class ServedAudit(Audit):
    """An auditor that reads its ledger from workers, listed in a file beside it."""

    @property
    def workers(self) -> Path:
        return self.folder / "workers.json"

    @property
    def arguments(self) -> list[str]:
        keys = ["--signing-key", str(self.folder / "auditor-key"), "--ledger-key", self.key]
        source = ["--workers", str(self.workers), "--worker-token", str(self.folder / "auditor-token")]
        return ["audit", "run", *source, "--state", str(self.state), *keys, "--second-look", "0.1"]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs in a separate process, at whose end its connections close."""
        command = [*PROOFGATE, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    def list_workers(self, workers: dict[str, str]) -> None:
        """Writes the list of the workers' admin addresses by shard."""
        draft = self.workers.with_suffix(".draft")
        draft.write_text(json.dumps({shard: f"http://{admin}" for shard, admin in workers.items()}))
        draft.replace(self.workers)


@contextmanager
def served(ledger: Path) -> Iterator[str]:
    """Serves a ledger's folder as a worker does, but without authentication; gives its URL."""
    app = FastAPI()
    app.add_exception_handler(ApiError, handle_api_error)
    LedgerReadRoutes(ledger).add_routes(app, lambda _request: None)
    with asgi_server(app) as url:
        yield url


def look(audit: Audit, url: str) -> list[dict[str, Any]]:
    """The findings of one check over HTTP, as with `--once`."""
    ledger = ServedLedger(lambda: {"0": url}, None, patience=0)
    keeping = (audit.folder / "keeping-key").read_text()
    key = (audit.folder / "auditor-key").read_text()
    times = (1, _SECOND_LOOK, 30_000_000)
    auditor = _core.Auditor(
        ROOT, str(audit.state), key, audit.key, *times, resume=True, keeping_key=keeping, served=ledger
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            auditor.set_worker_states(ledger.start_pass())
            done = json.loads(auditor.poll(time.time_ns() // 1000, _ALL, _ALL))
            # On a busy machine an answer may be too late, which says nothing about the ledger.
            is_read = all(ledger.reachable_by_shard().values()) or time.monotonic() > deadline
            if is_read and not done["suspicious"]:
                found: list[dict[str, Any]] = json.loads(auditor.findings())["findings"]
                return found
            time.sleep(_SECOND_LOOK / 1e6)
    finally:
        ledger.close()
