"""Shows on loopback, without a cluster, that the gateway detects a model that was swapped behind its provider's name.

    make demo-swap
    python -m e2e.swap

A worker that analyses answers is in front of a stand-in provider. Its tenant repeats the same few requests, and gets
answers with the same length and words: the texts before and after the swap are identical byte for byte. The models
differ only in the probabilities of their tokens, and in the alternative tokens.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.ports import free_port
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, send, status_of

WINDOW = 100
SETTINGS = {"analysis": {"window": WINDOW}}
TENANT = "acme"

Json = dict[str, Any]


def ask(gateway: LocalGateway, count: int, stream: bool = False) -> None:
    """Asks `count` questions as the tenant, each for the distributions of its answer's tokens."""
    for number in range(count):
        messages = [{"role": "user", "content": f"question {number % 50}"}]
        body: Json = {"model": MODEL, "messages": messages, "logprobs": True, "top_logprobs": 5, "stream": stream}
        answer = send(gateway.address, chat_request(json.dumps(body).encode(), KEYS[TENANT]))
        if status_of(answer) != 200:
            raise RuntimeError(f"the worker answered {answer[:200]!r}")


def swap(gateway: LocalGateway) -> None:
    """Replaces the provider's model; the address, the key and the name stay."""
    assert gateway.upstream is not None
    gateway.upstream.stop()
    gateway.upstream_arguments = ["--character", "b"]
    gateway.start_upstream()


def findings(gateway: LocalGateway) -> dict[str, int]:
    """The worker's counts for the tenant's model, by finding."""
    labels = rf'tenant="{TENANT}",model="{MODEL}",finding="(\w+)"'
    series = re.finditer(rf"^proofgate_analysis_findings_total{{{labels}}} (\d+)$", metrics(gateway), re.MULTILINE)
    return {found[1]: int(found[2]) for found in series}


def windows(gateway: LocalGateway) -> int:
    """The number of full windows of answers."""
    found = re.search(r"^proofgate_analysis_windows_total (\d+)$", metrics(gateway), re.MULTILINE)
    return int(found[1]) if found else 0


def metrics(gateway: LocalGateway) -> str:
    """All metrics of the worker."""
    return gateway.admin_text("/metrics")


def analyses(gateway: LocalGateway) -> list[Json]:
    """The records of findings."""
    return [record for record in gateway.records() if record["kind"] == "analysis"]


@contextmanager
def swapped(folder: Path, stream: bool = False) -> Iterator[tuple[LocalGateway, dict[str, int]]]:
    """A worker whose model was swapped after three windows of answers, and its findings before the swap."""
    listen = f"127.0.0.1:{free_port()}"
    with local_gateway(folder, settings=SETTINGS, upstream_listen=listen) as gateway:
        ask(gateway, 3 * WINDOW, stream)
        wait_until(lambda: windows(gateway) == 3, PATIENCE, "three windows are full")
        before = findings(gateway)
        swap(gateway)
        ask(gateway, WINDOW, stream)
        wait_until(lambda: windows(gateway) == 4, PATIENCE, "the window behind the swap is full")
        wait_until(lambda: len(analyses(gateway)) == 4, PATIENCE, "each window is recorded")
        yield gateway, before


def main() -> int:
    """Returns the exit code: 0 if the swap was detected and nothing was found before it."""
    with tempfile.TemporaryDirectory(prefix="proofgate-swap-") as folder, swapped(Path(folder)) as (gateway, before):
        for record in analyses(gateway):
            window = record["window"]
            mean = window["entropy_millibits"] / 1000
            compared = f"differs in {', '.join(record['findings'])}" if record["findings"] else "as the reference"
            told = compared if window["tests"] else "becomes the reference"
            print(f"window {window['number']}: {window['answers']} answers, {mean:.3f} bits a token: {told}")
        after = findings(gateway)
        print(f"findings in the metrics before the swap: {sum(before.values())}, after it: {sum(after.values())}")
        record = analyses(gateway)[-1]
        print(f"recorded with exchange {record['exchange']}, record {record['seq']} of {record['log']}")
        assert gateway.worker is not None
        gateway.worker.stop()
        command = [
            sys.executable,
            "-m",
            "proofgate",
            "ledger",
            "fsck",
            str(gateway.ledger),
            "--key",
            gateway.verifying_key,
        ]
        is_valid = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=PATIENCE, check=False).returncode == 0
        print("the ledger verifies" if is_valid else "the ledger does not verify")
        return 0 if is_valid and not sum(before.values()) and "entropy" in record["findings"] else 1


if __name__ == "__main__":
    sys.exit(main())
