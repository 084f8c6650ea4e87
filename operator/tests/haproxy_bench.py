"""A real HAProxy on loopback in front of dummy workers that identify themselves."""

import hashlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from e2e.ports import free_ports
from e2e.programs import Program, start_ready

from proofgate_operator.build.haproxy_config import ConnectionLimits, HAProxySettings, Server, render
from proofgate_operator.build.haproxy_maps import start_command

#: The key that authenticates HAProxy to the workers.
ROUTING_KEY = "0123456789abcdef0123456789abcdef"

#: Timeout of every wait, in seconds.
PATIENCE = 120
#: Seconds between two pieces, enough for two separate reads on loopback.
_BETWEEN_PIECES = 0.001
#: Deadlines that a busy machine may miss and that no test checks.
_DEADLINES = {
    "timeout connect 2s": "timeout connect 600s",
    "timeout queue 5s": "timeout queue 600s",
    "timeout check 1s": "timeout check 600s",
    "timeout client-fin 30s": "timeout client-fin 600s",
    "tcp-request inspect-delay 10s": "tcp-request inspect-delay 600s",
    "timeout http-request 5s": "timeout http-request 600s",
}


def http_get(port: int, path: str) -> tuple[int, str]:
    """Return status and body of an answer on loopback; status 0 without an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""


def eventually(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        time.sleep(0.02)


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Ignore errors: HAProxy resets the connections of its health checks."""


class _Health(BaseHTTPRequestHandler):
    """Answers health checks; a PROXY header before one would make it an invalid request."""

    server: "_HealthServer"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.worker.check_asked.set()
        self.server.worker.check_release.wait(PATIENCE)
        self.send_response(200 if self.server.worker.ready and self.path == "/readyz" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()


class _HealthServer(_QuietServer):
    worker: "Worker"


def _routed_tenant(stream: BinaryIO) -> str:
    """Read a PROXY v2 header and return its unique id (the PROXY protocol, sections 2.2 and 2.2.5)."""
    fixed = stream.read(16)
    assert fixed[:13] == b"\r\n\r\n\0\r\nQUIT\n\x21", f"no PROXY v2 header of a client: {fixed!r}"
    assert fixed[13] == 0x11, f"not TCP over IPv4: {fixed[13]:#x}"
    rest = stream.read(int.from_bytes(fixed[14:], "big"))[12:]
    fields = []
    while rest:
        length = int.from_bytes(rest[1:3], "big")
        fields.append((rest[0], rest[3 : 3 + length]))
        rest = rest[3 + length :]
    [unique_id] = [value for kind, value in fields if kind == 0x05]
    key, _, tenant = unique_id.decode().partition(":")
    assert key == ROUTING_KEY, f"not the gateway's HAProxy: {unique_id!r}"
    return tenant


class _Traffic(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "_TrafficServer"

    def log_message(self, *_: Any) -> None:
        pass

    def handle(self) -> None:
        self.tenant = _routed_tenant(self.rfile)
        if self.server.worker.verbatim:
            sent = self.rfile.read()
            self.close_connection = True
            self.request_version = "HTTP/1.1"
            return self._answer({"sent": sent.hex()})
        super().handle()

    def _answer(self, found: dict[str, Any]) -> None:
        body = json.dumps({"worker": self.server.worker.ordinal, "tenant": self.tenant, **found}).encode()
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.server.worker.seen += 1
        if self.path == "/stream":
            return self._stream()
        self._answer({})

    def do_POST(self) -> None:
        self.server.worker.seen += 1
        self.close_connection = True  # closes the connection without an answer

    def _stream(self) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._chunk(b"data: one\n\n")
        self.server.worker.release.wait(PATIENCE)
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


class _TrafficServer(_QuietServer):
    worker: "Worker"


class Worker:
    """A dummy worker: answers with its number and the tenant from the PROXY header.

    With `verbatim`, it reads a connection to its end, and its answer also contains the client's bytes. Health
    checks have their own port, without a PROXY header.
    """

    def __init__(self, ordinal: int, host: str = "127.0.0.1", ports: tuple[int, int] = (0, 0)) -> None:
        self.ordinal = ordinal
        self.ready = True
        self.verbatim = False
        self.seen = 0
        self.release = threading.Event()
        self.check_asked, self.check_release = threading.Event(), threading.Event()
        self.check_release.set()
        traffic, health = _TrafficServer((host, ports[0]), _Traffic), _HealthServer((host, ports[1]), _Health)
        traffic.worker = health.worker = self
        self._traffic, self._health = traffic, health
        self.ports: tuple[int, int] = (traffic.server_address[1], health.server_address[1])
        for server in (traffic, health):
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def refuse_connections(self) -> None:
        """Close the traffic port, as a dead process would; health checks still get answers."""
        self._end(self._traffic)

    def close(self) -> None:
        self.release.set()
        self.check_release.set()
        for server in (self._traffic, self._health):
            self._end(server)

    def _end(self, server: _QuietServer) -> None:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Arrival:
    """The bytes and metadata of a connection that a worker received."""

    worker: int
    tenant: str
    sent: bytes


@dataclass
class Bench:
    """HAProxy, its workers, and the requests and metrics that tests need."""

    workers: list[Worker]
    port: int
    metrics_port: int
    folder: Path
    runtime_socket: Path
    context: ssl.SSLContext | None = None
    program: Program | None = None
    #: Whether its server lines have host names, whose addresses the agent sets.
    named: bool = False
    #: Whether it starts from maps that the agent writes, with the tenants of shards.
    attached: bool = False

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self.program is not None
        return self.program.process

    @property
    def tenant_map(self) -> Path:
        return self.folder / "tenants.map"

    @property
    def owner_map(self) -> Path:
        return self.folder / "owners.map"

    @property
    def weights(self) -> Path:
        return self.folder / "weights.map"

    @property
    def addresses(self) -> Path:
        return self.folder / "workers.map"

    @property
    def server_state(self) -> Path:
        return self.folder / "servers.state"

    @property
    def kept(self) -> Path:
        return self.folder / "kept"

    @property
    def shards(self) -> Path:
        return self.folder / "shards"

    def start(self, binary: str) -> None:
        """Start HAProxy with the configuration in its folder, and wait until it answers."""
        command = [binary, "-db", "-f", "haproxy.cfg"]
        if self.attached:
            command = start_command(str(self.folder), str(self.kept), command)

        def begin() -> Program:
            return Program.start("haproxy", self.folder, command[1:], command[:1], cwd=self.folder)

        def wait(program: Program) -> bool:
            return program.wait_until(self.listens, "HAProxy listens", PATIENCE)

        self.program, _ = start_ready(begin, wait)

    def stop(self) -> None:
        if self.program is not None:
            self.program.stop(signal.SIGKILL)

    def restart(self, binary: str) -> None:
        self.stop()
        self.start(binary)

    def log(self) -> list[dict[str, Any]]:
        """Return the connections of the access log."""
        lines = (self.folder / "haproxy.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def connect(self) -> http.client.HTTPConnection:
        if self.context:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, key: str | None, *headers: str) -> tuple[int, dict[str, str], Any]:
        """Send a GET with a key on a new connection; returns status, headers and parsed body."""
        lines = [f"Authorization: Bearer {key}"] if key is not None else []
        with closing(self.connect()) as connection:
            connection.putrequest("GET", "/")
            for name, value in (line.split(": ", 1) for line in [*headers, *lines]):
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, json.loads(response.read())

    def worker_of(self, key: str) -> int:
        status, _, body = self.ask(key)
        assert status == 200, body
        number: int = body["worker"]
        return number

    def arrival(self, *pieces: bytes) -> Arrival:
        """Send bytes, piece by piece, on one connection; returns what its worker received."""
        self._set_verbatim(True)
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for number, piece in enumerate(pieces):
                    if number:
                        time.sleep(_BETWEEN_PIECES)
                    connection.sendall(piece)
                connection.shutdown(socket.SHUT_WR)
                response = http.client.HTTPResponse(connection)
                response.begin()
                assert response.status == 200, response.read()
                body = json.loads(response.read())
        finally:
            self._set_verbatim(False)
        return Arrival(body["worker"], body["tenant"], bytes.fromhex(body["sent"]))

    def _set_verbatim(self, verbatim: bool) -> None:
        for worker in self.workers:
            worker.verbatim = verbatim

    def metrics(self, path: str) -> tuple[int, str]:
        return http_get(self.metrics_port, path)

    def listens(self) -> bool:
        return self.metrics("/healthz")[0] == 200

    def up(self) -> int:
        """Return the number of workers on HAProxy's ring."""
        lines = self.metrics("/metrics")[1].splitlines()
        states = [line for line in lines if line.startswith('haproxy_server_status{proxy="workers"')]
        return sum(line.endswith(" 1") and 'state="UP"' in line for line in states)

    def set_ready(self, count: int) -> None:
        """Make exactly the first `count` workers ready, and wait until HAProxy has seen it."""
        for worker in self.workers:
            worker.ready = worker.ordinal < count
        eventually(lambda: self.up() == count, f"{count} workers up")


def keys_of(tenants: int) -> dict[str, list[str]]:
    """Return two keys for each tenant."""
    return {
        f"tenant-{number}": [f"sk-bench-{number}-{which}-0123456789" for which in "ab"]
        for number in range(tenants)
    }


TENANTS = 150
#: The keys of the `haproxy` fixture's tenants.
KEYS = keys_of(TENANTS)


def write_map(path: Path, keys: dict[str, list[str]]) -> None:
    lines = [
        f"{hashlib.sha256(key.encode()).hexdigest()} {tenant}\n" for tenant in keys for key in keys[tenant]
    ]
    path.write_text("".join(sorted(lines)))


def write_owners(path: Path, owners: Mapping[str, int], stand_ins: Mapping[str, int] | None = None) -> None:
    also = {tenant: f".worker-{ordinal}" for tenant, ordinal in (stand_ins or {}).items()}
    lines = [f"{tenant} worker-{owners[tenant]}{also.get(tenant, '')}\n" for tenant in sorted(owners)]
    path.write_text("".join(lines))


def write_weights(path: Path, weights: Mapping[int, int]) -> None:
    path.write_text("".join(f"worker-{ordinal} {weights[ordinal]}\n" for ordinal in sorted(weights)))


def write_addresses(path: Path, addresses: Mapping[int, str | None]) -> None:
    """Replace the file atomically, as the kubelet does."""
    new = path.with_suffix(".new")
    lines = (f"worker-{ordinal} {addresses[ordinal] or '-'}\n" for ordinal in sorted(addresses))
    new.write_text("".join(lines))
    new.replace(path)


@contextmanager
def bench(
    binary: str,
    folder: Path,
    workers: list[Worker],
    keys: dict[str, list[str]],
    *,
    names: list[str] | None = None,
    owners: Mapping[str, int] | None = None,
    stand_ins: Mapping[str, int] | None = None,
    certificate: Path | None = None,
    retries: int = 3,
    attached: bool = False,
    **changes: Any,
) -> Iterator[Bench]:
    """Run HAProxy with the rendered configuration in front of `workers`, and stop it afterwards.

    With `names`, the server lines have these host names and the first worker's ports; an agent must set their
    addresses. `changes` are fields of the configuration. Its files are in a new folder below `folder`. The
    socket is elsewhere: HAProxy accepts paths up to 97 bytes, and a test's folder may be that long.
    """
    port, metrics_port = free_ports(2)
    folder = folder / f"haproxy-{port}"
    folder.mkdir()
    context = ssl.create_default_context(cafile=str(certificate)) if certificate else None
    numbered = tuple(Server(worker.ordinal, "127.0.0.1", *worker.ports) for worker in workers)
    named = tuple(Server(ordinal, name, *workers[0].ports) for ordinal, name in enumerate(names or []))
    with TemporaryDirectory(prefix="haproxy-", dir="/tmp") as short:
        found = Bench(workers, port, metrics_port, folder, Path(short) / "admin.sock", context)
        found.named, found.attached = bool(named), attached
        found.kept.mkdir()
        maps = found.kept if attached else folder
        write_map(found.tenant_map, keys)
        write_owners(found.owner_map, owners or {}, stand_ins)
        write_weights(found.weights, {})
        (folder / "routing.map").write_text(f"routing-key {ROUTING_KEY}\n")
        text = render(
            HAProxySettings(
                servers=named or numbered,
                traffic_bind=f"127.0.0.1:{port}",
                metrics_bind=f"127.0.0.1:{metrics_port}",
                **{
                    "runtime_socket": str(found.runtime_socket),
                    "tenant_map": str(maps / "tenants.map"),
                    "owner_map": str(maps / "owners.map"),
                    "routing_map": str(folder / "routing.map"),
                    "connection_limits": ConnectionLimits(max_total=1000, max_per_server=500),
                    "server_timeout_seconds": 600,
                    "hard_stop_seconds": 600,
                    "server_state": str(found.server_state) if named else None,
                    "certificate": str(certificate) if certificate else None,
                    **changes,
                },
            )
        )
        # Unlike pods, the HAProxies of all tests share one network namespace, so the names must differ.
        for name in ("unavailable", "overloaded"):
            text = text.replace(f"abns@{name}", f"abns@{name}-{port}")
        for line, patient in (_DEADLINES | {" retries 3": f" retries {retries}"}).items():
            assert line in text, f"not in the rendered configuration: {line}"
            text = text.replace(line, patient)
        (folder / "haproxy.cfg").write_text(text)
        try:
            found.start(binary)
            yield found
        finally:
            found.stop()


@contextmanager
def dummy_workers(count: int = 3) -> Iterator[list[Worker]]:
    """Run this many workers, and stop them afterwards."""
    made = [Worker(ordinal) for ordinal in range(count)]
    try:
        yield made
    finally:
        for worker in made:
            worker.close()


@contextmanager
def ready_bench(binary: str, folder: Path, **changes: Any) -> Iterator[Bench]:
    """Run HAProxy in front of three ready workers."""
    with dummy_workers() as workers, bench(binary, folder, workers, KEYS, **changes) as running:
        running.set_ready(3)
        yield running
