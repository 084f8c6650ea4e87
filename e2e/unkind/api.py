"""The operator with an API server that is slow and sometimes fails."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from e2e.cluster import certs
from e2e.cluster.layout import CONTROL_PLANE
from e2e.kubernetes import REPOSITORY, environment, install_operator
from e2e.programs import Program, start_ready

_MILLISECONDS, _PERCENT = 300, 2


@contextmanager
def slow(namespaces: Sequence[str]) -> Iterator[None]:
    """Connects the operator to the API server through a proxy that delays each request by 300 ms and fails 2 %."""
    with tempfile.TemporaryDirectory(prefix="proofgate-slow-api-") as folder:
        command = (sys.executable, "-m", "e2e.cluster", "inside", "--", sys.executable, "-m", "e2e.unkind.slow_api")
        arguments = [f"--listen={CONTROL_PLANE.address}", f"--upstream={CONTROL_PLANE.address}:{_port()}"]
        arguments += [f"--certificate={certs.certificate('apiserver')}", f"--key={certs.key('apiserver')}"]
        arguments += [f"--authority={certs.certificate('ca')}"]
        arguments += [f"--milliseconds={_MILLISECONDS}", f"--percent={_PERCENT}"]

        def start() -> Program:
            return Program.start("slow-api", Path(folder), arguments, command, env=environment(), cwd=REPOSITORY)

        program, port = start_ready(start, lambda program: program.wait_for_line(r"listening on port (\d+)")[1])
        try:
            told = [{"name": "KUBERNETES_SERVICE_HOST", "value": CONTROL_PLANE.address}]
            told.append({"name": "KUBERNETES_SERVICE_PORT", "value": port})
            install_operator(list(namespaces), {"extraEnv": told})
            yield
        finally:
            try:
                install_operator(list(namespaces))
            finally:
                program.stop()


def _port() -> int:
    """The API server's port, which is the same inside the lab and outside."""
    return int(certs.kubeconfig(certs.ADMIN).read_text().partition("127.0.0.1:")[2].partition('"')[0])
