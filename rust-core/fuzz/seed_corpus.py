#!/usr/bin/env python3
"""Seeds the corpora of the HTTP targets from the framing cases that all suites share: one file per case."""

from __future__ import annotations

import json
from pathlib import Path

FUZZ = Path(__file__).parent
CASES = FUZZ.parent.parent / "e2e" / "framing" / "cases.json"
LARGEST_SEED = 2048  # bytes

RESPONSES = {
    "length": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
    "chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "until_close": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
    "no_reason": "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
    "continue": "HTTP/1.1 100 Continue\r\n\r\n",
    "switching_protocols": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
    "no_content": "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
    "not_modified": "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    "length_and_coding": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    "two_lengths": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
    "close": "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    "version_1_0": "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n",
}


def seed(target: str, name: str, data: bytes) -> None:
    """Writes one seed unless it is too large to be mutated usefully."""
    folder = FUZZ / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    if len(data) <= LARGEST_SEED:
        (folder / name).write_bytes(data)


def main() -> None:
    for case in json.loads(CASES.read_text())["cases"]:
        name, raw = case["id"], case["raw"].encode("latin-1")
        if name.endswith("_chat"):
            continue
        head, end, body = raw.partition(b"\r\n\r\n")
        seed("request_head", name, head + end)
        seed("split_points", name, b"s" + raw)
        if b"\r\nTransfer-Encoding: chunked" in head and body:
            seed("chunked", name, body)
    for name, text in RESPONSES.items():
        seed("response_head", name, text.encode())


if __name__ == "__main__":
    main()
