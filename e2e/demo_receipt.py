"""The tenant's last step of the demonstration: it verifies its receipt offline with the sent and received bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True)
class Shown:
    """The verified facts of an exchange, as `proofgate verify` prints them."""

    request_id: str
    lines: list[str]


def fetch_and_verify(url: str, api_key: str, model: str, verifying_key: str, folder: Path) -> Shown:
    """Asks once, fetches the receipt with the same key and verifies it, bodies and all. Raises SystemExit.

    `url` is the gateway's, without `/v1`; the files are left in `folder`.
    """
    request = json.dumps({"model": model, "messages": [{"role": "user", "content": "Who was asked, and what?"}]})
    headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
    answer = httpx.post(f"{url}/v1/chat/completions", content=request, headers=headers, timeout=30)
    if answer.is_error:
        raise SystemExit(f"the gateway answers with {answer.status_code}: {answer.text}")
    request_id = answer.headers["x-request-id"]
    (folder / "request.json").write_text(request)
    (folder / "response.json").write_bytes(answer.content)
    key = folder / "tenant-key"
    key.touch(mode=0o600)
    key.write_text(api_key)
    _proofgate(folder, "receipt", request_id, "--url", url, "--api-key-file", "tenant-key", "--out", "receipt.json")
    bodies = ("--request", "request.json", "--response", "response.json")
    told = _proofgate(folder, "verify", "receipt.json", "--key", verifying_key, *bodies)
    return Shown(request_id, told.splitlines())


def _proofgate(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "proofgate", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise SystemExit(f"proofgate {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
