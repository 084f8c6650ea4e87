"""A control plane without nodes: etcd, kube-apiserver and the controllers that create and collect objects.

It tests behavior that only a real API server has: the CRD's schema and CEL rules, server-side apply, the
scale subresource, PodSecurity, garbage collection. Pods are created but never run; tests report their
readiness.
"""

import http.client
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from e2e.ports import free_ports
from e2e.programs import NotReadyError, Program

from tests.controlplane.api import Api

T = TypeVar("T")

#: Timeout of every wait, in seconds.
PATIENCE = 300
ADMIN_TOKEN = "control-plane-test-admin"
CONTROLLERS = (
    "garbage-collector-controller,statefulset-controller,deployment-controller,replicaset-controller,"
    "namespace-controller,serviceaccount-controller,disruption-controller,"
    "persistentvolumeclaim-protection-controller,cronjob-controller,job-controller"
)
#: Logs writes of service accounts, which operators are, before the API server executes them.
AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted, ResponseComplete, Panic]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
  verbs: [create, update, patch, delete, deletecollection]
- level: None
"""
_ATTEMPTS = 2


def binary(name: str) -> str:
    """Return the path of a tool from PROOFGATE_TOOLS_PATH or PATH; raises `FileNotFoundError` without it."""
    search = os.pathsep.join(filter(None, [os.environ.get("PROOFGATE_TOOLS_PATH"), os.environ.get("PATH")]))
    found = shutil.which(name, path=search)
    if found is None:
        raise FileNotFoundError(
            f"{name} is not on PROOFGATE_TOOLS_PATH nor PATH: build the tools of e2e/cluster, and set"
            " PROOFGATE_TOOLS_PATH to their bin folders, joined by ':'"
        )
    return found


def wait_for(condition: Callable[[], T], what: str, every: float = 0.05) -> T:
    """Return the first true value of `condition`; after the timeout, fail with `what` in the message.

    The timeout is no performance claim: a busy machine may be slow, and `make bench-operator` measures.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE} s: {what}; at last: {value!r}")
        time.sleep(every)


@dataclass
class ControlPlane:
    """A control plane and its address. A control plane of another process has no `processes` here."""

    folder: Path
    url: str
    processes: list[Program] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api = Api(self.url, ADMIN_TOKEN)

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """The writes of service accounts, one JSON object per line."""
        return self.folder / "audit.log"

    def write_kubeconfig(self, path: Path, token: str) -> Path:
        """Write a kubeconfig that logs in with `token`."""
        cluster = {"server": self.url, "insecure-skip-tls-verify": True}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path.write_text(yaml.safe_dump(content))
        return path

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the admin; `api` is faster for requests that are not themselves under test."""
        result = subprocess.run(
            [binary("kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
        )
        if check and result.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {result.stdout}{result.stderr}")
        return result

    def apply(self, *manifests: dict[str, Any], namespace: str = "default") -> None:
        """Apply manifests."""
        for manifest in manifests:
            self.api.apply(manifest, namespace)

    def refusal(self, manifest: dict[str, Any], namespace: str = "default") -> str:
        """Return the API server's message for a manifest that it must refuse."""
        return self.api.refusal(manifest, namespace)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        """Read an object; return None if it does not exist."""
        return self.api.get(kind, name, namespace)

    def start(self, name: str, *arguments: str) -> Program:
        """Start one of the control plane's programs."""
        program = Program.start(name, self.folder, arguments, (binary(name),), cwd=self.folder)
        self.processes.append(program)
        return program

    def stop(self) -> None:
        """Kill all programs and delete etcd's data."""
        self.api.close()
        for process in reversed(self.processes):
            process.stop(signal.SIGKILL)
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)


def _answers(port: int, path: str) -> bool:
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    with closing(connection):
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False


def _write_credentials(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "sa.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (folder / "tokens.csv").write_text(f"{ADMIN_TOKEN},admin,admin,system:masters\n")


def start(folder: Path, *, controllers: bool = True) -> ControlPlane:
    """Start a control plane in `folder`, on loopback, and return it when it is ready.

    If a program exits or does not answer, a second attempt uses other ports, because another process may have
    taken one. Raises `NotReadyError` with the programs' output.
    """
    reports = []
    for attempt in range(1, _ATTEMPTS + 1):
        own = folder / f"attempt-{attempt}"
        own.mkdir(parents=True)
        try:
            return _start(own, controllers)
        except NotReadyError as error:
            reports.append(f"attempt {attempt} of {_ATTEMPTS}: {error}")
            print(reports[-1], file=sys.stderr)
    raise NotReadyError("\n".join(reports))


def _start(folder: Path, controllers: bool) -> ControlPlane:
    etcd_port, peer_port, api_port, manager_port = free_ports(4)
    plane = ControlPlane(folder, f"https://127.0.0.1:{api_port}")
    _write_credentials(folder)
    plane.write_kubeconfig(plane.kubeconfig, ADMIN_TOKEN)
    (folder / "audit.yaml").write_text(AUDIT_POLICY)
    plane.audit_log.touch()
    try:
        plane.start(
            "etcd",
            f"--data-dir={folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls=http://127.0.0.1:{etcd_port}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd_port}",
            f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer_port}",
            f"--initial-cluster=default=http://127.0.0.1:{peer_port}",
        )
        plane.start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={api_port}",
            f"--cert-dir={folder / 'certificates'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=198.19.0.0/16",
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://proofgate.test",
            f"--service-account-key-file={folder / 'sa.key'}",
            f"--service-account-signing-key-file={folder / 'sa.key'}",
            f"--audit-policy-file={folder / 'audit.yaml'}",
            f"--audit-log-path={plane.audit_log}",
        )
        _wait(plane, lambda: _answers(api_port, "/readyz"), "kube-apiserver is ready")
        if controllers:
            plane.start(
                "kube-controller-manager",
                f"--kubeconfig={plane.kubeconfig}",
                "--bind-address=127.0.0.1",
                f"--secure-port={manager_port}",
                "--leader-elect=false",
                f"--controllers={CONTROLLERS}",
                f"--service-account-private-key-file={folder / 'sa.key'}",
            )
            _wait(plane, lambda: _answers(manager_port, "/healthz"), "kube-controller-manager is healthy")
    except BaseException:
        plane.stop()
        raise
    return plane


def _wait(plane: ControlPlane, condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition; raises `NotReadyError` if one of the programs exits."""

    def holds() -> bool:
        for process in plane.processes:
            if process.process.poll() is not None:
                raise NotReadyError(f"waited until {what}: {process.report}")
        return condition()

    plane.processes[-1].wait_until(holds, what, PATIENCE)


@contextmanager
def control_plane(folder: Path, *, controllers: bool = True) -> Iterator[ControlPlane]:
    """Run a control plane in `folder` for the duration of the block."""
    plane = start(folder, controllers=controllers)
    try:
        yield plane
    finally:
        plane.stop()
