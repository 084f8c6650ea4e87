"""An auditor that follows a worker under load, and the resources that it uses."""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proofgate import _core

from bench.processes import LOAD_CORE, CpuMeter, Pinned, free_port, pinned

#: Maximum seconds in which an auditor must have read all records.
_CATCH_UP = 60
#: Seconds during which an auditor with nothing to read is measured.
_IDLE = 10


@contextmanager
def auditor(home: Path) -> Iterator[tuple[Pinned, str]]:
    """An auditor of the worker in `home`, and its address."""
    secret, _ = _core.generate_key("proofgate.dev/bench-audit")
    (home / "audit-key").write_text(secret)
    address = f"127.0.0.1:{free_port()}"
    place = home / "proofgate"
    command = [sys.executable, "-m", "proofgate", "audit", "run", "--new-aggregate", "--listen", address]
    command += ["--ledger", str(place / "ledger"), "--ledger-key", str(place / "verifying-key")]
    command += ["--state", str(home / "audit-state"), "--signing-key", str(home / "audit-key"), "--scrub", "0"]
    with pinned(LOAD_CORE, command, home / "auditor.log", port=int(address.split(":")[1])) as process:
        yield process, address


def caught_up(process: Pinned, address: str, begun: float) -> dict[str, Any]:
    """The auditor's work, and its CPU time since it had used `begun`, after it has read everything.

    What it takes where nothing comes is in that, and told beside it. Raises SystemExit when it never has read
    everything.
    """
    deadline = time.monotonic() + _CATCH_UP
    while time.monotonic() < deadline:
        status, records = json.loads(_ask(address, "/status")), _verified(address)
        if records and not status["records_behind"]:
            used = process.cpu_seconds() - begun
            if status["findings"]["by_code"]:
                raise SystemExit(f"the auditor found something: {status['findings']}")
            resident = process.resident_megabytes()
            with CpuMeter(process) as idle:
                time.sleep(_IDLE)
            return {
                "records": records,
                "cpu_us_per_record": round(used / records * 1e6, 3),
                "idle_share_of_a_core": round(idle.seconds / _IDLE, 4),
                "resident_megabytes": round(resident, 1),
            }
        time.sleep(0.5)
    raise SystemExit(f"the auditor was not done after {_CATCH_UP} s")


def _verified(address: str) -> int:
    """The number of records that an auditor reports as verified."""
    text = _ask(address, "/metrics")
    found = re.search(r"^proofgate_auditor_records_verified_total ([\d.e+]+)$", text, re.MULTILINE)
    return int(float(found[1])) if found else 0


def _ask(address: str, path: str) -> str:
    """An answer from the auditor's port."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
    return text
