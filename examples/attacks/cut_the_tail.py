"""Compares a hash chain with a ledger: which checks detect that the newest entries of a log were removed?

    python examples/attacks/cut_the_tail.py

Starts a gateway in front of a simulated provider and sends five requests. The gateway records them in its ledger, and
this program records them in a hash chain. Then it attacks copies of both, and prints the result of each check. It needs
the environment of `make run`, and no network. docs/tutorial/cut-the-tail.md explains the output.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROOFGATE = (sys.executable, "-m", "proofgate")
REQUESTS, KEPT = 5, 3
#: The length of the header before a record in a segment: docs/reference/ledger-format.md.
FRAME_HEADER = 32
GENESIS = "0" * 64
Entry = dict[str, Any]


def entry_hash(entry: Entry) -> str:
    """SHA-256 of an entry without its own hash."""
    hashed = {name: value for name, value in entry.items() if name != "record_hash"}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def append(chain: list[Entry], call_id: str) -> None:
    """Adds an entry with the previous entry's hash, in the fields of LiteLLM's audit callback (asqav)."""
    entry = {"seq": len(chain), "prev_hash": chain[-1]["record_hash"] if chain else GENESIS, "call_id": call_id}
    chain.append({**entry, "record_hash": entry_hash(entry)})


def check_chain(chain: list[Entry]) -> str:
    """Checks each entry's own hash, and its copy of the previous entry's hash."""
    before = GENESIS
    for entry in chain:
        if entry["prev_hash"] != before or entry["record_hash"] != entry_hash(entry):
            return f"broken at entry {entry['seq']}"
        before = entry["record_hash"]
    return f"valid, {len(chain)} entries"


def fsck(ledger: Path, key: Path, *more: str) -> str:
    """Runs `proofgate ledger fsck`, and returns its verdict and the first finding."""
    command = [*PROOFGATE, "ledger", "fsck", str(ledger), "--key", str(key), "--output", "json", *more]
    report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    findings = [one for log in report["incarnations"] for one in log["findings"]]
    verdict = f"{report['verdict']}, {report['records']} records"
    if not findings:
        return verdict
    # The log's name is too long for the output.
    message = re.sub(r"proofgate\.dev/\S+", "the log", findings[0]["message"]).partition(";")[0]
    return f"{verdict}; {Path(findings[0]['file']).name}: {message}"


@contextmanager
def program(folder: Path, ready: str, *arguments: str) -> Iterator[re.Match[str]]:
    """Runs a command of Proofgate, and yields the match of its ready line."""
    with (folder / "log").open("a") as log:
        process = subprocess.Popen([*PROOFGATE, *arguments], stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.match(ready, line):
                yield found
                break
        else:
            raise SystemExit(f"proofgate {arguments[0]} did not start:\n{(folder / 'log').read_text()}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def ask(url: str, key: str) -> str:
    """Sends a request, and returns the exchange's id."""
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        answer.read()
        return str(answer.headers["x-request-id"])


def record(folder: Path) -> list[Entry]:
    """Sends the requests. Writes `ledger`, `older` (a copy after some requests) and the last exchange's receipt."""
    chain: list[Entry] = []
    setup = folder / "gateway"
    with program(
        folder, r"mock-upstream ready: (\S+)", "gateway", "mock-upstream", "--listen", "127.0.0.1:0"
    ) as upstream:
        addresses = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
        make = [*PROOFGATE, "quickstart", "--directory", str(setup), "--base-url", upstream[1], *addresses]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        serve = ("serve", "--config", str(setup / "gateway.yaml"))
        with program(folder, r"proofgate ready: traffic=(\S+)", *serve) as worker:
            url, key = f"http://{worker[1]}", setup / "tenant-key"
            for number in range(1, REQUESTS + 1):
                append(chain, ask(url, key.read_text().strip()))
                if number in (KEPT, REQUESTS):
                    # The gateway returns the receipt when a signed checkpoint covers the exchange.
                    out = ["--out", str(folder / "receipt.json")]
                    receipt = ["receipt", chain[-1]["call_id"], "--url", url, "--api-key-file", str(key), *out]
                    subprocess.run([*PROOFGATE, *receipt], check=True, stdout=subprocess.DEVNULL)
                if number == KEPT:
                    shutil.copytree(setup / "ledger", folder / "older")
    shutil.copytree(setup / "ledger", folder / "ledger")
    return chain


def held_checkpoint(receipt: Path) -> str:
    """The signed checkpoint in a receipt, from which its holder knows the ledger's state."""
    proof: str = json.loads(receipt.read_text())["records"][-1]["proof"]
    return proof.split("\n\n", 1)[1]


def change_a_byte(ledger: Path, chain: list[Entry]) -> None:
    """Changes the second entry of the ledger and of the chain."""
    [segment] = ledger.glob("0/*/*.seg")
    data = bytearray(segment.read_bytes())
    data[data.index(chain[1]["call_id"].encode())] ^= 1
    segment.write_bytes(data)
    chain[1]["call_id"] = "req_another"


def cut_records(ledger: Path, chain: list[Entry]) -> None:
    """Removes the last exchanges from the ledger and from the chain."""
    [segment] = ledger.glob("0/*/*.seg")
    data = segment.read_bytes()
    end = data.rindex(b'{"v":', 0, data.index(chain[KEPT]["call_id"].encode())) - FRAME_HEADER
    segment.write_bytes(data[:end].ljust(len(data), b"\0"))
    del chain[KEPT:]


def set_back(ledger: Path, chain: list[Entry]) -> None:
    """Restores the ledger with its older signed checkpoint, and the chain, from before the last exchanges."""
    shutil.rmtree(ledger)
    shutil.copytree(ledger.parent / "older", ledger)
    del chain[KEPT:]


ATTACKS: dict[str, Callable[[Path, list[Entry]], None]] = {
    "nothing": lambda _ledger, _chain: None,
    "one entry changed": change_a_byte,
    "the last two exchanges cut off": cut_records,
    "all files put back to the third exchange": set_back,
}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="proofgate-attacks-") as made:
        folder = Path(made)
        chain = record(folder)
        key, receipt = folder / "gateway" / "verifying-key", folder / "receipt.json"
        held = folder / "held"
        held.write_text(held_checkpoint(receipt))
        for name, attack in ATTACKS.items():
            attacked, ledger = [dict(entry) for entry in chain], folder / "attacked"
            shutil.copytree(folder / "ledger", ledger)
            attack(ledger, attacked)
            print(f"attack: {name}")
            print(f"  hash chain           {check_chain(attacked)}")
            print(f"  fsck                 {fsck(ledger, key)}")
            print(f"  fsck and the receipt {fsck(ledger, key, '--against', str(held))}")
            shutil.rmtree(ledger)
        verify = [*PROOFGATE, "verify", str(receipt), "--key", str(key)]
        shown = subprocess.run(verify, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        print(f"receipt of the last exchange, without any ledger: {shown}")


if __name__ == "__main__":
    main()
