"""The parsers: processes on separate loopback ports, which are ended after use."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.ports import free_port
from e2e.programs import Program, start_ready

HERE = Path(__file__).parent


class MissingTool(Exception):
    """A tool that an oracle needs is not installed."""


@dataclass(frozen=True)
class Oracle:
    """One parser and its port. A proxy is judged by the requests that it forwards to the Go server behind it."""

    name: str
    port: int
    is_proxy: bool = False


@dataclass(frozen=True)
class Built:
    """The compiled programs."""

    guard: Path
    upstream: Path
    hyper: Path
    go: Path


def build(cache: Path) -> Built:
    """Builds the guard and the compiled oracles."""
    target = cache / "target-garden"
    manifest = ["--manifest-path", str(HERE / "Cargo.toml")]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    # A release build takes several times as long, and a run sends only some thousand short requests.
    _run([_tool("cargo"), "build", "--locked", "--quiet", *manifest], environment)
    _run([_tool("go"), "build", "-o", str(target / "garden-go"), "."], None, HERE / "go")
    debug = target / "debug"
    return Built(debug / "garden-guard", debug / "garden-upstream", debug / "garden-hyper", target / "garden-go")


@contextlib.contextmanager
def running(built: Built, folder: Path) -> Iterator[list[Oracle]]:
    """All oracles, ready for requests."""
    with contextlib.ExitStack() as stack:

        def started(name: str, command: Sequence[str], **options: Any) -> Program:
            return Program.start(name, folder, command[1:], command[:1], **options)

        def server(name: str, *command: str) -> Oracle:
            program, line = start_ready(lambda: started(name, command), lambda new: new.wait_for_line(r"^(\d+)\n"))
            stack.callback(program.stop)
            return Oracle(name, int(line[1]))

        def proxy(name: str, template: str, backend: int, *command: str) -> Oracle:
            port = 0

            def start() -> Program:
                nonlocal port
                # Each attempt needs another port, because another process may have taken the first.
                port = free_port()
                text = (HERE / "proxies" / template).read_text()
                path = folder / template
                path.write_text(text.replace("@PORT@", str(port)).replace("@BACKEND@", str(backend)))
                return started(name, [*command, str(path)], cwd=folder)

            def wait(program: Program) -> bool:
                return program.wait_until(lambda: _listens(port), f"it listens on port {port}")

            program, _ = start_ready(start, wait)
            stack.callback(program.stop)
            return Oracle(name, port, is_proxy=True)

        python = HERE / "python"
        oracles = [
            server("hyper", str(built.hyper)),
            server("httptools", sys.executable, str(python / "httptools_server.py")),
            server("h11", sys.executable, str(python / "h11_server.py")),
            server("go", str(built.go)),
            server("node", _tool("node"), str(HERE / "node" / "server.mjs")),
        ]
        # Each proxy has a separate server, whose count of requests then belongs to this proxy.
        for name, template, *command in (
            ("nginx", "nginx.conf", _tool("nginx"), "-p", str(folder), "-c"),
            ("haproxy", "haproxy.cfg", _tool("haproxy"), "-db", "-f"),
        ):
            oracles.append(proxy(name, template, server(f"go-behind-{name}", str(built.go)).port, *command))
        yield oracles


def _run(command: list[str], environment: dict[str, str] | None, folder: Path | None = None) -> None:
    subprocess.run(command, env=environment, cwd=folder, check=True)


def _tool(name: str) -> str:
    # Debian installs servers in a folder that is only in root's PATH.
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")
    if path is None:
        raise MissingTool(f"missing: {name}; run ./setup/toolchain")
    return path


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
