"""A client's session and end user are recorded and can be found, and the ledger contains no person's name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from e2e.auditing import signed
from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, local_gateway
from e2e.programs import PATIENCE, wait_until

TRACE = "0af7651916cd43dd8448eb211c80319c"
FIELDS = {
    "x-claude-code-session-id": "0f3c2a10-55aa-4c1e-9d3b-1c2d3e4f5a6b",
    "x-claude-code-agent-id": "reviewer@team",
    "x-claude-code-parent-agent-id": "lead@team",
    "traceparent": f"00-{TRACE}-b7ad6b7169203331-01",
}
USER = "alice@example.com"


def found(index: Path, *more: str) -> list[dict[str, Any]]:
    done = proofgate("audit", "exchanges", "--index", index, "--json", *more)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["exchanges"]
    return rows


def pseudonym() -> str:
    command = [sys.executable, "-m", "proofgate", "audit", "end-user", "--tenant", "acme"]
    return subprocess.run(command, input=USER, capture_output=True, text=True, check=True).stdout.strip()


def test_an_exchange_is_found_by_what_its_client_says_of_itself(tmp_path: Path) -> None:
    index = tmp_path / "index"
    with local_gateway(tmp_path / "gateway") as gateway:
        before = signed(gateway)
        body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
        with httpx.Client(
            base_url=gateway.base_url, headers={"Authorization": f"Bearer {KEYS['acme']}"}, timeout=PATIENCE
        ) as client:
            said = client.post("/chat/completions", json=body | {"safety_identifier": USER}, headers=FIELDS)
            silent = client.post("/chat/completions", json=body)
        assert (said.status_code, silent.status_code) == (200, 200)
        wait_until(lambda: signed(gateway) >= before + 4, PATIENCE, "both are under a checkpoint")
        assert gateway.worker is not None and gateway.worker.stop() == 0
        ledger, key = gateway.ledger, gateway.verifying_key
    done = proofgate("audit", "index", "--same-volume", "--ledger", ledger, "--ledger-key", key, "--index", index)
    assert done.returncode == 0, done.stderr
    told = {
        "session": FIELDS["x-claude-code-session-id"],
        "end_user": pseudonym(),
        "agent": "reviewer@team",
        "trace_id": TRACE,
    }
    for name, value in told.items():
        [row] = found(index, f"--{name.replace('_', '-')}", value)
        assert row["id"] == said.headers["x-request-id"], name
        assert told.items() <= row.items() and row["parent_agent"] == "lead@team"
    [other] = [row for row in found(index) if row["id"] != said.headers["x-request-id"]]
    assert not any(other[name] for name in told)
    files = [path for path in ledger.rglob("*") if path.is_file()]
    assert files and not any(USER.encode() in path.read_bytes() for path in files)
