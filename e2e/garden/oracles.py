"""The parsers of the garden: processes on loopback ports of their own, ended when they are no longer needed."""

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
    """Something that an oracle is made with is not installed."""


@dataclass(frozen=True)
class Oracle:
    """One parser, and where it listens. A proxy is judged by what it passes on to the Go server behind it."""

    name: str
    port: int
    is_proxy: bool = False


@dataclass(frozen=True)
class Built:
    """What has to be compiled first."""

    guard: Path
    upstream: Path
    hyper: Path
    go: Path


def build(cache: Path) -> Built:
    """Builds the guard and the oracles that are compiled."""
    target = cache / "target-garden"
    manifest = ["--manifest-path", str(HERE / "Cargo.toml")]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    # Not for release: that takes several times as long, and a run asks some thousand short questions.
    _run([_tool("cargo"), "build", "--locked", "--quiet", *manifest], environment)
    _run([_tool("go"), "build", "-o", str(target / "garden-go"), "."], None, HERE / "go")
    debug = target / "debug"
    return Built(debug / "garden-guard", debug / "garden-upstream", debug / "garden-hyper", target / "garden-go")


@contextlib.contextmanager
def running(built: Built, folder: Path) -> Iterator[list[Oracle]]:
    """All oracles, ready to be asked."""
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
                # Another one for each attempt: somebody else may have taken the first.
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
        # A server of its own behind each proxy: its count of requests is then the proxy's.
        for name, template, *command in (
            ("nginx", "nginx.conf", _tool("nginx"), "-p", str(folder), "-c"),
            ("haproxy", "haproxy.cfg", _tool("haproxy"), "-db", "-f"),
        ):
            oracles.append(proxy(name, template, server(f"go-behind-{name}", str(built.go)).port, *command))
        yield oracles


def _run(command: list[str], environment: dict[str, str] | None, folder: Path | None = None) -> None:
    subprocess.run(command, env=environment, cwd=folder, check=True)


def _tool(name: str) -> str:
    # Debian keeps servers where only root's PATH looks.
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")
    if path is None:
        raise MissingTool(f"missing: {name}; run ./setup/toolchain")
    return path


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
