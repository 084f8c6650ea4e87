"""The agent beside HAProxy, and the files that it reads."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from e2e.ports import free_port
from e2e.programs import Program, start_ready

from tests.haproxy_bench import PATIENCE, Bench, eventually, http_get, write_map, write_weights

NEW_KEY = "sk-new-key-of-a-tenant-0123456789"


class Agent:
    """A running agent."""

    def __init__(self, program: Program, port: int) -> None:
        self._program = program
        self._port = port

    def get(self, path: str) -> tuple[int, str]:
        return http_get(self._port, path)

    def ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def metric(self, name: str, **labels: str) -> float:
        text = ",".join(f'{key}="{value}"' for key, value in labels.items())
        sought = f"proofgate_haproxy_sidecar_{name}{{{text}}} "
        [line] = [line for line in self.get("/metrics")[1].splitlines() if line.startswith(sought)]
        return float(line.removeprefix(sought))

    def log(self) -> str:
        return self._program.printed

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the agent's process (SIGSTOP) for the duration of the block."""
        self._program.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._program.process.send_signal(signal.SIGCONT)


@contextmanager
def agent(
    haproxy: Bench,
    certificate: Path | None = None,
    *,
    client_certificate: Path | None = None,
    waits: bool = True,
    asks: bool = False,
) -> Iterator[Agent]:
    """Run the agent beside HAProxy, and wait until it is ready, or at least answers without `waits`."""
    arguments = ["gateway", "haproxy-sidecar", "--socket", str(haproxy.runtime_socket)]
    arguments += ["--weights", str(haproxy.weights)]
    for path in (haproxy.tenant_map, haproxy.owner_map, haproxy.folder / "routing.map"):
        arguments += ["--map", str(path)]
    if haproxy.named:
        arguments += ["--workers", str(haproxy.addresses), "--server-state", str(haproxy.server_state)]
    if haproxy.attached:
        arguments += ["--tenant-shards", str(haproxy.shards), "--kept-maps", str(haproxy.kept)]
    if certificate:
        arguments += ["--certificate", str(certificate)]
    if client_certificate:
        arguments += ["--client-certificate", str(client_certificate)]
    if asks:
        arguments += ["--ask", f"127.0.0.1:{haproxy.port}"]
    ports = []

    def begin() -> Program:
        ports.append(free_port())
        return Program.start("agent", haproxy.folder, [*arguments, "--listen", f"127.0.0.1:{ports[-1]}"])

    def wait(program: Program) -> bool:
        wanted = (200,) if waits else (200, 503)
        return program.wait_until(
            lambda: http_get(ports[-1], "/readyz")[0] in wanted, "the agent answers", PATIENCE
        )

    program, _ = start_ready(begin, wait)
    try:
        yield Agent(program, ports[-1])
    finally:
        assert program.stop() == 0, program.report


def tenant_of(haproxy: Bench, key: str) -> str:
    tenant: str = haproxy.ask(key)[2]["tenant"]
    return tenant


def replace_map(haproxy: Bench, keys: dict[str, list[str]]) -> None:
    """Replace the file atomically, as the kubelet does."""
    new = haproxy.folder / "new.map"
    write_map(new, keys)
    os.replace(new, haproxy.tenant_map)


def weights_of(haproxy: Bench) -> dict[str, int]:
    """Return every worker's weight from HAProxy's state."""
    with closing(socket.socket(socket.AF_UNIX)) as runtime:
        runtime.connect(str(haproxy.runtime_socket))
        runtime.sendall(b"show servers state workers\n")
        text = b""
        while piece := runtime.recv(65536):
            text += piece
    rows = [line.split() for line in text.decode().splitlines()[1:] if line]
    name, weight = rows[0].index("srv_name") - 1, rows[0].index("srv_uweight") - 1
    return {row[name]: int(row[weight]) for row in rows[1:]}


def use_weights(haproxy: Bench, weights: dict[int, int]) -> None:
    """Replace the weights file, and wait until HAProxy uses the new weights."""
    new = haproxy.folder / "new.map"
    write_weights(new, weights)
    os.replace(new, haproxy.weights)
    wanted = {f"worker-{ordinal}": weights.get(ordinal, 100) for ordinal in range(3)}
    eventually(lambda: weights_of(haproxy) == wanted, f"weights {wanted}")
