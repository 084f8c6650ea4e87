"""An auditor with the index of a ledger in which the analysis of answers detected a swapped model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from proofgate import _core

from e2e.auditing import AUDITOR, Audit, following
from e2e.indexed import READERS
from e2e.programs import PATIENCE, wait_until
from e2e.swap import swapped


@contextmanager
def analysed(folder: Path) -> Iterator[str]:
    """The address of the auditor, whose index has four windows, the last of which differs."""
    with swapped(folder) as (gateway, _):
        secret, _ = _core.generate_key(AUDITOR)
        (folder / "auditor-key").write_text(secret)
        readers = {
            _core.hash_api_key(READERS["officer"]): {"name": "officer", "all": True},
            _core.hash_api_key(READERS["acme's"]): {"name": "globex's", "tenant": "globex"},
        }
        (folder / "readers").write_text(json.dumps(readers))
        arguments = ["--new-aggregate", "--index", str(folder / "index"), "--readers", str(folder / "readers")]
        with following(Audit(folder, gateway.verifying_key), *arguments) as (_, url):
            headers = {"Authorization": f"Bearer {READERS['officer']}"}

            def is_told() -> bool:
                answer = httpx.get(f"{url}/v1/analysis", headers=headers, timeout=PATIENCE)
                return answer.is_success and len(answer.json()["windows"]) == 4

            wait_until(is_told, PATIENCE, "the windows are in the index")
            yield url
