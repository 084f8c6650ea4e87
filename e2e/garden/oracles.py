"""The parsers of the garden: processes on loopback ports of their own, ended when they are no longer needed."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.ports import free_port

HERE = Path(__file__).parent
START_SECONDS = 20


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
    _run([_tool("cargo"), "build", "--locked", "--release", "--quiet", *manifest], environment)
    _run([_tool("go"), "build", "-o", str(target / "garden-go"), "."], None, HERE / "go")
    release = target / "release"
    return Built(release / "garden-guard", release / "garden-upstream", release / "garden-hyper", target / "garden-go")


@contextlib.contextmanager
def running(built: Built, folder: Path) -> Iterator[list[Oracle]]:
    """All oracles, ready to be asked."""
    with contextlib.ExitStack() as stack:

        def server(name: str, *command: str) -> Oracle:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(_end, process)
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.strip().isdigit():
                raise RuntimeError(f"{name} does not start")
            return Oracle(name, int(line))

        def proxy(name: str, template: str, backend: int, *command: str) -> Oracle:
            port = free_port()
            text = (HERE / "proxies" / template).read_text()
            path = folder / template
            path.write_text(text.replace("@PORT@", str(port)).replace("@BACKEND@", str(backend)))
            process = subprocess.Popen([*command, str(path)], cwd=folder)
            stack.callback(_end, process)
            _wait_for(name, process, port)
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
            oracles.append(proxy(name, template, server("go", str(built.go)).port, *command))
        yield oracles


def _run(command: list[str], environment: dict[str, str] | None, folder: Path | None = None) -> None:
    subprocess.run(command, env=environment, cwd=folder, check=True)


def _tool(name: str) -> str:
    # Debian keeps servers where only root's PATH looks.
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")
    if path is None:
        raise MissingTool(f"missing: {name}; run ./setup/toolchain")
    return path


def _wait_for(name: str, process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{name} does not start")


def _end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
