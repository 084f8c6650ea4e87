"""A real HAProxy on loopback before dummy workers that say who they are."""

import hashlib
import http.client
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from proofgate_operator.build.haproxy_config import Balancer, Server, render


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def eventually(condition: Callable[[], Any], what: str, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """HAProxy resets the connections of its health checks: that is no error."""


class NameServer:
    """A DNS server on loopback: the names in `addresses` have an A record, every other name does not
    exist."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            query, client = self._socket.recvfrom(4096)
            if not query:
                return
            self._socket.sendto(self._answer(query), client)

    def _answer(self, query: bytes) -> bytes:
        labels, position = [], 12
        while length := query[position]:
            labels.append(query[position + 1 : position + 1 + length].decode())
            position += 1 + length
        question = query[12 : position + 5]
        record_type = int.from_bytes(query[position + 1 : position + 3], "big")
        address = self.addresses.get(".".join(labels))
        # QR, RD, RA; NXDOMAIN for an unknown name (RFC 1035, section 4.1.1).
        flags = 0x8180 if address is not None else 0x8183
        record = b""
        if address is not None and record_type == 1:
            record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x01\x00\x04" + socket.inet_aton(address)
        counts = (1).to_bytes(2, "big") + (1 if record else 0).to_bytes(2, "big") + bytes(4)
        return query[:2] + flags.to_bytes(2, "big") + counts + question + record

    def close(self) -> None:
        self._socket.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join(5)
        self._socket.close()


class Worker:
    """A dummy worker: answers with its number and the request's headers; /readyz as it is told."""

    def __init__(self, ordinal: int, host: str = "127.0.0.1", port: int = 0) -> None:
        self.ordinal = ordinal
        self.ready = True
        self.seen = 0
        self.release = threading.Event()
        worker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if not worker.ready:
                    self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                if self.path == "/readyz":
                    return self._answer(200 if worker.ready else 503, b"")
                worker.seen += 1
                if self.path == "/stream":
                    return self._stream()
                headers = {key.lower(): value for key, value in self.headers.items()}
                self._answer(200, json.dumps({"worker": worker.ordinal, "headers": headers}).encode())

            def do_POST(self) -> None:
                worker.seen += 1
                self.close_connection = True  # dies without an answer

            def _stream(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self._chunk(b"data: one\n\n")
                worker.release.wait(20)
                self._chunk(b"data: [DONE]\n\n")
                self.wfile.write(b"0\r\n\r\n")

            def _chunk(self, data: bytes) -> None:
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()

        self._server = _QuietServer((host, port), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Bench:
    """HAProxy, its workers, and what the tests ask of them."""

    workers: list[Worker]
    port: int
    metrics_port: int
    process: subprocess.Popen[bytes]
    _connection: http.client.HTTPConnection | None = field(default=None)

    def close(self) -> None:
        """Close the client's connection."""
        if self._connection is not None:
            self._connection.close()

    def ask(self, key: str | None, path: str = "/", **headers: str) -> tuple[int, dict[str, str], Any]:
        """Send a GET with a key; returns status, headers and parsed body."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        self._connection.request("GET", path, headers=sent)
        response = self._connection.getresponse()
        body = json.loads(response.read())
        found = {name.lower(): value for name, value in response.getheaders()}
        return response.status, found, body

    def worker_of(self, key: str) -> int:
        status, _, body = self.ask(key)
        assert status == 200, body
        number: int = body["worker"]
        return number

    def raw(self, request: bytes) -> bytes:
        """Send bytes and return everything until the connection is closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(request)
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
            return received

    def metrics(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=5)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def up(self) -> int:
        """Return how many workers HAProxy has on its ring."""
        lines = self.metrics("/metrics")[1].splitlines()
        states = [line for line in lines if line.startswith("haproxy_server_status{")]
        return sum(line.endswith(" 1") and 'state="UP"' in line for line in states)

    def set_ready(self, count: int) -> None:
        """Let the first `count` workers be ready, and wait until HAProxy knows."""
        for worker in self.workers:
            worker.ready = worker.ordinal < count
        eventually(lambda: self.up() == count, f"{count} workers up, not {self.up()}")


def keys_of(tenants: int) -> dict[str, list[str]]:
    """Return two keys for each tenant."""
    return {
        f"tenant-{number}": [f"sk-bench-{number}-{which}-0123456789" for which in "ab"]
        for number in range(tenants)
    }


def write_map(path: Path, keys: dict[str, list[str]]) -> None:
    lines = [
        f"{hashlib.sha256(key.encode()).hexdigest()} {tenant}\n" for tenant in keys for key in keys[tenant]
    ]
    path.write_text("".join(sorted(lines)))


@contextmanager
def bench(
    binary: str,
    folder: Path,
    workers: list[Worker],
    keys: dict[str, list[str]],
    *,
    names: list[str] | None = None,
    name_server: NameServer | None = None,
) -> Iterator[Bench]:
    """Run HAProxy with the rendered configuration before `workers`, and end it afterwards.

    With `names` and a `name_server` the server lines are those names, all on the first worker's port.
    """
    port, metrics_port = free_port(), free_port()
    tenant_map = folder / "tenants.map"
    write_map(tenant_map, keys)
    numbered = tuple(Server(worker.ordinal, "127.0.0.1", worker.port, worker.port) for worker in workers)
    named = tuple(
        Server(ordinal, name, workers[0].port, workers[0].port) for ordinal, name in enumerate(names or [])
    )
    text = render(
        Balancer(
            servers=named or numbered,
            traffic_bind=f"127.0.0.1:{port}",
            metrics_bind=f"127.0.0.1:{metrics_port}",
            tenant_map=str(tenant_map),
            silence_seconds=30,
            hard_stop_seconds=20,
            resolve=bool(named),
        )
    )
    if name_server:
        text = text.replace("parse-resolv-conf", f"nameserver test 127.0.0.1:{name_server.port}")
    config = folder / f"haproxy-{port}.cfg"
    config.write_text(text)
    with (folder / f"haproxy-{port}.log").open("wb") as log:
        process = subprocess.Popen([binary, "-db", "-f", str(config)], stdout=log, stderr=log)
    found = Bench(workers, port, metrics_port, process)
    try:
        eventually(lambda: found.metrics("/healthz")[0] == 200, "HAProxy listens")
        yield found
    finally:
        found.close()
        process.kill()
        process.wait()
