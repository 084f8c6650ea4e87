"""One operator process, started as the chart starts it, and its resource use."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")


class Replica:
    """A running operator. `plane` is the control plane that it serves, `server` the module that runs it; `settings`
    replace those of every run."""

    def __init__(self, server: ModuleType, plane: Any, name: str, **settings: str) -> None:
        [self._port] = server.free_ports(1)
        self.log = plane.folder / f"{name}.log"
        environment = {
            "KUBECONFIG": str(plane.kubeconfig),
            "WORKER_IMAGE": "worker:bench",
            "HAPROXY_IMAGE": "haproxy:bench",
            "HEALTH_HOST": "127.0.0.1",
            "HEALTH_PORT": str(self._port),
            "LOG_LEVEL": "warning",
            "LOG_FORMAT": "text",
            "LEADER_ELECTION": "true",
            "LEASE_NAMESPACE": "default",
            "POD_NAME": name,
            **settings,
        }
        command = [str(Path(sys.executable).parent / "proofgate-operator")]
        with self.log.open("wb") as sink:
            self.process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=sink, stderr=sink)

    def metric(self, name: str) -> float:
        """The sum of a metric's series; 0 while nothing answers. Raises `RuntimeError` if the process has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"the operator ended: {self.log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return 0.0
        found = (line for line in lines if line.split("{")[0].split(" ")[0] == name)
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def is_ready(self) -> bool:
        """Whether it has listed everything. Raises `RuntimeError` if the process has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"the operator ended: {self.log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def sockets(self) -> int:
        """The number of its open sockets, including that of its port."""
        links = (Path(f"/proc/{self.process.pid}/fd") / name for name in os.listdir(f"/proc/{self.process.pid}/fd"))
        return sum(1 for link in links if os.path.islink(link) and os.readlink(link).startswith("socket:"))

    def is_alive(self) -> bool:
        """Whether the liveness probe passes."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False

    def memory_mb(self) -> tuple[float, float]:
        """Current and maximum resident memory, in MB (proc(5), status)."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines)
        now, highest = (int(sizes[field].split()[0]) * 1024 / 1e6 for field in ("VmRSS", "VmHWM"))
        return round(now, 1), round(highest, 1)

    def cpu_seconds(self) -> float:
        """Processor time used so far (proc(5), stat: utime and stime)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it by SIGTERM."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
