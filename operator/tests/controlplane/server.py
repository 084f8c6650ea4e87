"""A control plane without nodes: etcd, kube-apiserver and the controllers that make and collect objects.

It answers what only the true API server can: the CRD's schema and CEL rules, server-side apply, the scale
subresource, PodSecurity, garbage collection. Pods are made and never run; tests report readiness in their
place.
"""

import http.client
import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from e2e.ports import free_ports

T = TypeVar("T")

#: Seconds that anything is waited for.
PATIENCE = 120
ADMIN_TOKEN = "control-plane-test-admin"
CONTROLLERS = (
    "garbage-collector-controller,statefulset-controller,deployment-controller,replicaset-controller,"
    "namespace-controller,serviceaccount-controller,disruption-controller,"
    "persistentvolumeclaim-protection-controller,cronjob-controller,job-controller"
)


def binary(name: str) -> str:
    """Return the path of a tool, from PROOFGATE_TOOLS_PATH (as PATH) or PATH; its absence is a failure."""
    search = os.pathsep.join(filter(None, [os.environ.get("PROOFGATE_TOOLS_PATH"), os.environ.get("PATH")]))
    found = shutil.which(name, path=search)
    if found is None:
        raise FileNotFoundError(
            f"{name} is not on PROOFGATE_TOOLS_PATH nor PATH: build the tools of e2e/cluster, and set"
            " PROOFGATE_TOOLS_PATH to their bin folders, joined by ':'"
        )
    return found


def wait_for(condition: Callable[[], T], what: str) -> T:
    """Return the first true value of `condition`, or fail naming `what`.

    How long it waits is no claim: a busy machine may take its time, and `make bench-operator` measures.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        time.sleep(0.05)


@dataclass
class Process:
    """A started program and the file it logs to."""

    popen: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self.popen.kill()
        self.popen.wait()

    def stop(self) -> None:
        """End it by SIGTERM, or by force after 15 s."""
        self.popen.terminate()
        try:
            self.popen.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


@dataclass
class ControlPlane:
    """A running control plane and how to reach it."""

    folder: Path
    url: str
    processes: list[Process] = field(default_factory=list)

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    def kubeconfig_for(self, token: str) -> Path:
        """Write a kubeconfig that logs in with `token`."""
        path = self.folder / f"{token[:8]}-{len(token)}.kubeconfig"
        cluster = {"server": self.url, "insecure-skip-tls-verify": True}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "test", "cluster": cluster}],
                    "users": [{"name": "test", "user": {"token": token}}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                    "current-context": "test",
                }
            )
        )
        return path

    def start(
        self, name: str, *arguments: str, environment: Mapping[str, str] | None = None, log_name: str = ""
    ) -> Process:
        """Start a program whose output goes to a file named after it, or as told."""
        log = self.folder / f"{log_name or Path(name).name}.log"
        sink: IO[bytes]
        with log.open("ab") as sink:
            popen = subprocess.Popen(
                [name, *arguments],
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, **(environment or {})},
            )
        process = Process(popen, log)
        self.processes.append(process)
        return process

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the admin."""
        result = subprocess.run(
            [binary("kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
        )
        if check and result.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {result.stderr}")
        return result

    def apply(self, *manifests: dict[str, Any], namespace: str = "default") -> None:
        """Apply manifests as a user does."""
        self.kubectl("apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump_all(manifests))

    def refusal(self, manifest: dict[str, Any], namespace: str = "default") -> str:
        """Apply a manifest that must be refused, and return what kubectl says."""
        result = self.kubectl(
            "apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(manifest), check=False
        )
        assert result.returncode != 0, f"accepted: {manifest}"
        return result.stderr

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        """Read an object; None if there is none."""
        result = self.kubectl("get", kind, name, "-n", namespace, "-o", "yaml", check=False)
        if result.returncode:
            assert "not found" in result.stderr, result.stderr
            return None
        loaded: dict[str, Any] = yaml.safe_load(result.stdout)
        return loaded

    def patch_status(self, kind: str, name: str, status: dict[str, Any], namespace: str = "default") -> None:
        """Report a status in place of the component that would; an object that is gone needs none."""
        result = self.kubectl(
            "patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": status}), check=False,
        )  # fmt: skip
        assert not result.returncode or "not found" in result.stderr, result.stderr


def _answers(url: str, path: str) -> bool:
    host = url.removeprefix("https://")
    connection = http.client.HTTPSConnection(host, timeout=2, context=ssl._create_unverified_context())
    with closing(connection):
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            return connection.getresponse().status == 200
        except OSError:
            return False


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """Run a control plane in `folder`, on free loopback ports, for the length of the block."""
    etcd_port, peer_port, api_port, manager_port = free_ports(4)
    plane = ControlPlane(folder, f"https://127.0.0.1:{api_port}")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "sa.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (folder / "tokens.csv").write_text(f"{ADMIN_TOKEN},admin,admin,system:masters\n")
    plane.kubeconfig_for(ADMIN_TOKEN).rename(plane.kubeconfig)
    try:
        plane.start(
            binary("etcd"),
            f"--data-dir={folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls=http://127.0.0.1:{etcd_port}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd_port}",
            f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer_port}",
            f"--initial-cluster=default=http://127.0.0.1:{peer_port}",
        )
        plane.start(
            binary("kube-apiserver"),
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
        )
        wait_for(lambda: _answers(plane.url, "/readyz"), f"kube-apiserver ready ({folder})")
        plane.start(
            binary("kube-controller-manager"),
            f"--kubeconfig={plane.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={manager_port}",
            "--leader-elect=false",
            f"--controllers={CONTROLLERS}",
            f"--service-account-private-key-file={folder / 'sa.key'}",
        )
        yield plane
    finally:
        for process in reversed(plane.processes):
            if process.popen.poll() is None:
                process.stop()
