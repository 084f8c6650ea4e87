"""A steady, limited load of plain and streamed requests, which runs inside the cluster's network.

python3 -m e2e.steady --url http://ADDRESS/v1 --keys FILE --until FILE --report FILE

Every client has one key and, by default, one connection, like an application. Every request has a unique id, which the
stand-in upstream counts, so a request that is sent twice is detected. Nothing is retried.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

MODEL = "gpt-4o-mini"


@dataclass(frozen=True)
class Attempt:
    """One request. Times are Unix seconds; a complete answer has no `error`."""

    id: str
    key: str
    stream: bool
    began: float
    ended: float
    request_id: str | None
    error: str | None


@dataclass(frozen=True)
class Pace:
    """The pace of a client: seconds between requests, and the tokens of a stream with the milliseconds between them."""

    pause: float
    tokens: int
    interval: int


def body_of(identity: str, stream: bool, pace: Pace) -> dict[str, Any]:
    """The body of one request."""
    text = f"mock:id={identity}"
    if stream:
        text += f" mock:tokens={pace.tokens} mock:interval={pace.interval}"
    messages = [{"role": "user", "content": text}]
    # If tokens are limited, this number is reserved for the answer.
    return {"model": MODEL, "messages": messages, "stream": stream, "max_tokens": pace.tokens}


async def attempt(
    http: httpx.AsyncClient, options: argparse.Namespace, key: str, identity: str, stream: bool, pace: Pace
) -> Attempt:
    """Sends one request; returns how it ended."""
    began = time.time()
    request_id, error = None, None
    try:
        headers = {"Authorization": f"Bearer {key}"}
        if options.fresh:
            headers["Connection"] = "close"
        # Services have no names outside the cluster, so the URL contains the address, and the certificate's name is
        # separate.
        named = {"sni_hostname": options.server_name} if options.server_name else {}
        response = await http.post(
            f"{options.url}/chat/completions",
            json=body_of(identity, stream, pace),
            headers=headers,
            extensions=named,
        )
        request_id = response.headers.get("x-request-id")
        if response.status_code != 200:
            error = f"{response.status_code} {response.text[:200]}"
        elif stream and not response.text.endswith("data: [DONE]\n\n"):
            error = f"cut stream: …{response.text[-120:]}"
    except httpx.HTTPError as failure:
        error = f"{type(failure).__name__}: {failure}"
    return Attempt(identity, key, stream, began, time.time(), request_id, error)


async def client(number: int, options: argparse.Namespace, key: str, pace: Pace, found: list[Attempt]) -> None:
    """Sends one request after another until the file appears or the time is up."""
    stream = number % 2 == 1 and not options.no_streams
    verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=options.ca) if options.ca else False
    limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
    async with httpx.AsyncClient(timeout=120, verify=verify, limits=limits, trust_env=False) as http:
        ends = time.monotonic() + options.seconds
        turn = 0
        while time.monotonic() < ends and not options.until.exists():
            turn += 1
            identity = f"{options.name}-{number}-{turn}"
            found.append(await attempt(http, options, key, identity, stream, pace))
            # The file is replaced as a whole, so that a reader always reads a complete number.
            count = options.report.with_suffix(".count")
            count.with_suffix(".new").write_text(str(len(found)))
            count.with_suffix(".new").replace(count)
            await asyncio.sleep(pace.pause if not stream else 0)


async def run(options: argparse.Namespace) -> list[Attempt]:
    """Runs all clients."""
    keys = options.keys.read_text().split()
    pace = Pace(options.pause, options.tokens, options.interval)
    found: list[Attempt] = []
    clients = (client(number, options, keys[number % len(keys)], pace, found) for number in range(options.clients))
    await asyncio.gather(*clients)
    return found


def main() -> None:
    """Runs the load and writes its report as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--name", default="steady", help="the beginning of every request's id")
    parser.add_argument("--keys", type=Path, required=True, help="a file with one API key per line")
    parser.add_argument("--until", type=Path, required=True, help="a file whose appearance ends the load")
    parser.add_argument("--report", type=Path, required=True, help="where the report is written")
    parser.add_argument("--ca", help="a file with the authority that the gateway's certificate is checked against")
    parser.add_argument("--fresh", action="store_true", help="a connection for each request, as new clients have")
    parser.add_argument("--no-streams", action="store_true", help="no client streams")
    parser.add_argument("--server-name", help="the name that the gateway's certificate has to bear")
    parser.add_argument("--seconds", type=float, default=300, help="how long it runs at most")
    parser.add_argument("--clients", type=int, default=12, help="every second one streams")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between a client's requests")
    parser.add_argument("--tokens", type=int, default=40, help="of a stream")
    parser.add_argument("--interval", type=int, default=50, help="milliseconds between a stream's tokens")
    options = parser.parse_args()
    found = asyncio.run(run(options))
    options.report.write_text(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main()
