"""A bounded load of unary and streamed requests; runs inside the cluster's network and reports what came back whole.

python3 -m e2e.tests.load --url http://ADDRESS/v1 --seconds 10 --clients 8 --keys FILE --until FILE
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from pathlib import Path

import httpx

from e2e.tests.fleet import MODEL


def client(url: str, key: str, streams: bool, ends: float, until: Path, report: dict[str, list[str]]) -> None:
    """Sends one request after another, each id to where it belongs by how its answer ended."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "mock:tokens=20"}], "stream": streams}
    headers = {"Authorization": f"Bearer {key}"}
    http = httpx.Client(timeout=20)
    while time.monotonic() < ends and not until.exists():
        try:
            response = http.post(f"{url}/chat/completions", json=body, headers=headers)
        except httpx.HTTPError as error:
            report["broken"].append(type(error).__name__)
            http.close()
            http = httpx.Client(timeout=20)
            time.sleep(0.05)
            continue
        whole = response.status_code == 200 and (not streams or response.text.endswith("[DONE]\n\n"))
        kind = "completed" if whole else "refused"
        report[kind].append(response.headers.get("x-request-id", str(response.status_code)))
    http.close()


def main() -> None:
    """Runs the clients and prints their report as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--keys", type=Path, required=True, help="a file with one API key per line")
    parser.add_argument("--until", type=Path, required=True, help="a file whose appearance ends the load")
    options = parser.parse_args()
    keys = options.keys.read_text().split()
    report: dict[str, list[str]] = {"completed": [], "refused": [], "broken": []}
    ends = time.monotonic() + options.seconds
    threads = [
        threading.Thread(
            target=client,
            args=(options.url, keys[number % len(keys)], number % 2 == 1, ends, options.until, report),
        )
        for number in range(options.clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
