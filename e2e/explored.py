"""A ledger with a history, the auditor service that followed it, and a proxy between the auditor and a browser."""

from __future__ import annotations

import base64
import json
import secrets
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from proofgate import _core

from e2e.auditing import AUDITOR, Audit, ask_and_wait, fetch, following, heads, signed
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.loopback_server import loopback_server
from e2e.programs import PATIENCE, wait_until


@dataclass(frozen=True)
class Explored:
    """The address of the auditor's page, the keys, and one exchange with its receipt."""

    url: str
    secret: str
    aggregate_key: str
    ledger_key: str
    gateway: LocalGateway
    request: bytes
    response: bytes
    receipt: bytes

    @property
    def size(self) -> int:
        """The number of entries under the published checkpoint."""
        return int(fetch(f"{self.url}/checkpoint").split("\n")[1])

    def signed_by_the_auditor(self, size: int, root: bytes) -> str:
        """A checkpoint that the auditor's key signs, for a tree that the auditor never had."""
        seed = base64.b64decode(self.secret.split("+", 4)[4])[1:]
        text = f"{AUDITOR}\n{size}\n{base64.b64encode(root).decode()}\n"
        signature = Ed25519PrivateKey.from_private_bytes(seed).sign(text.encode())
        line = bytes.fromhex(self.aggregate_key.split("+")[1]) + signature
        return f"{text}\n— {AUDITOR} {base64.b64encode(line).decode()}\n"


def exchange(gateway: LocalGateway) -> tuple[bytes, bytes, bytes]:
    """One exchange of the tenant acme: the request, the answer and its receipt."""
    headers = {"Authorization": f"Bearer {KEYS['acme']}", "Content-Type": "application/json"}
    request = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
    with httpx.Client(base_url=gateway.base_url, headers=headers, timeout=PATIENCE) as client:
        answer = client.post("/chat/completions", content=request)
        receipt = client.get(f"/receipts/{answer.raise_for_status().headers['x-request-id']}").raise_for_status()
    return request, answer.content, receipt.content


@contextmanager
def explored(folder: Path) -> Iterator[Explored]:
    """Two shards, one of which has a sealed, a killed and a current log; the aggregate log covers all."""
    with local_gateway(folder, settings={"ledger": {"segmentBytes": 1 << 20}}) as gateway:
        secret, public = _core.generate_key(AUDITOR)
        (folder / "auditor-key").write_text(secret)
        audit = Audit(folder, gateway.verifying_key)
        with following(audit, "--new-aggregate") as (_, url):

            def accepted() -> None:
                wait_until(lambda: heads(url).get(gateway.origin) == signed(gateway), PATIENCE, "the head is accepted")

            def serve(rounds: int, shard: int = 0, stop: signal.Signals | None = signal.SIGTERM) -> None:
                for _ in range(rounds):
                    ask_and_wait(gateway, 3)
                    accepted()
                if stop is not None:
                    assert gateway.worker is not None
                    gateway.worker.stop(stop)
                    gateway.start_worker(shard=shard)

            serve(1)
            serve(1, stop=signal.SIGKILL)
            serve(1, shard=1)
            serve(1, shard=1)
            request, response, receipt = exchange(gateway)
            serve(1, shard=1, stop=None)
            origins = f"{url}/checkpoint"
            wait_until(lambda: int(fetch(origins).split("\n")[1]) >= 9, PATIENCE, "the log has nine entries")
            yield Explored(url, secret, public, gateway.verifying_key, gateway, request, response, receipt)


#: A function that changes the answer of a path.
Change = Callable[[bytes], bytes]


@dataclass
class StandIn:
    """A proxy that changes the answers of a path, or of all paths below one that ends in a slash."""

    url: str
    changes: dict[str, Change] = field(default_factory=dict)


@contextmanager
def standing_in(upstream: str) -> Iterator[StandIn]:
    """Forwards the answers of an auditor, with `changes` applied."""
    between = StandIn("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                headers = {name: value for name, value in self.headers.items() if name == "Authorization"}
                request = urllib.request.Request(f"{upstream}{self.path}", headers=headers)
                answer = urllib.request.urlopen(request, timeout=PATIENCE)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                body = answer.read()
            for path, change in between.changes.items():
                if self.path.partition("?")[0] == path or (path.endswith("/") and self.path.startswith(path)):
                    body = change(body)
            self.send_response(answer.status)
            for name in ("Content-Type", "Content-Security-Policy", "X-Content-Type-Options"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Logs nothing."""

    with loopback_server(Handler) as server:
        # The host name is random, because a browser keeps stored data by origin, and an earlier test may have had this
        # port.
        between.url = f"http://{secrets.token_hex(4)}.localhost:{server.server_port}"
        yield between
