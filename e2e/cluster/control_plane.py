"""etcd, apiserver, controller manager, scheduler, and the forwarder, the only access from the machine to the lab.

All except the forwarder run in the first node's network namespace. The forwarder listens on 127.0.0.1 of the machine,
on the apiserver's port, so one kubeconfig works on both sides.
"""

from __future__ import annotations

import json
import socket
import sys

from . import certs, kubectl
from .cgroups import CONTROL_PLANE_GROUP
from .console import say, wait_until
from .layout import CONTROL_PLANE, PACKAGE, POD_RANGE, SERVICE_RANGE, lab_folder
from .processes import Daemon, alive, blame, require, start
from .toolchain import binary

FIRST_PORT = 16443
_ETCD = "http://127.0.0.1:2379"
_ETCD_PEERS = "http://127.0.0.1:2380"


def open_door() -> socket.socket:
    """Listen on the first free port of 127.0.0.1, starting at 16443."""
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("127.0.0.1", port))
            door.listen(128)
        except OSError:
            door.close()
            continue
        return door
    raise OSError(f"no free port on 127.0.0.1 from {FIRST_PORT} on")


def start_all(door: socket.socket) -> None:
    """Start the control plane and return when the apiserver is ready. The forwarder inherits the listening socket."""
    port = int(door.getsockname()[1])
    certs.create(port)
    _start_etcd()
    apiserver = _start_apiserver(port)
    with door:
        forwarder = [sys.executable, str(PACKAGE / "forwarder.py"), str(door.fileno()), str(port)]
        start(
            "forwarder", forwarder, group=CONTROL_PLANE_GROUP, namespace=CONTROL_PLANE.namespace,
            inherit=(door.fileno(),),
        )  # fmt: skip

    def apiserver_answers() -> bool:
        require(apiserver)
        return kubectl.ready()

    wait_until("the apiserver to be ready", apiserver_answers, 300, lambda: blame(apiserver))
    say(f"apiserver ready on https://127.0.0.1:{port}")
    # The controller manager starts last, because it exits if the apiserver does not have its roles yet.
    _start_controller_manager()
    _start_scheduler()


def healthy() -> bool:
    """Whether every part runs and the apiserver answers."""
    return all(alive(name) for name in DAEMONS) and kubectl.ready()


DAEMONS = ("etcd", "apiserver", "controller-manager", "scheduler", "forwarder")


def _control_plane(name: str, command: list[str]) -> Daemon:
    return start(name, command, group=CONTROL_PLANE_GROUP, namespace=CONTROL_PLANE.namespace)


def _start_etcd() -> Daemon:
    return _control_plane(
        "etcd",
        [
            str(binary("etcd")),
            "--name=lab",
            f"--data-dir={lab_folder() / 'etcd'}",
            # The cluster is temporary, so it may lose its data in a power failure.
            "--unsafe-no-fsync",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            f"--listen-peer-urls={_ETCD_PEERS}",
            f"--initial-advertise-peer-urls={_ETCD_PEERS}",
            f"--initial-cluster=lab={_ETCD_PEERS}",
            "--log-level=warn",
        ],
    )


def _start_apiserver(port: int) -> Daemon:
    return _control_plane(
        "apiserver",
        [
            str(binary("kube-apiserver")),
            f"--etcd-servers={_ETCD}",
            f"--secure-port={port}",
            f"--advertise-address={CONTROL_PLANE.address}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--cert-dir={certs.folder()}",
            f"--tls-cert-file={certs.certificate('apiserver')}",
            f"--tls-private-key-file={certs.key('apiserver')}",
            f"--client-ca-file={certs.certificate('ca')}",
            f"--token-auth-file={certs.token_file()}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            # Logs, exec and port-forward need these three options.
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-client-certificate={certs.certificate('apiserver-kubelet-client')}",
            f"--kubelet-client-key={certs.key('apiserver-kubelet-client')}",
            f"--kubelet-certificate-authority={certs.certificate('ca')}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={certs.key('service-accounts')}",
            f"--service-account-signing-key-file={certs.key('service-accounts')}",
        ],
    )


def _start_controller_manager() -> Daemon:
    return _control_plane(
        "controller-manager",
        [
            str(binary("kube-controller-manager")),
            f"--kubeconfig={certs.kubeconfig(certs.CONTROLLER_MANAGER)}",
            f"--authentication-kubeconfig={certs.kubeconfig(certs.CONTROLLER_MANAGER)}",
            f"--authorization-kubeconfig={certs.kubeconfig(certs.CONTROLLER_MANAGER)}",
            f"--cert-dir={certs.folder()}",
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={certs.key('service-accounts')}",
            f"--root-ca-file={certs.certificate('ca')}",
            f"--cluster-cidr={POD_RANGE}",
            f"--flex-volume-plugin-dir={lab_folder() / 'flex-volumes'}",
            # A lost node is detected within seconds.
            "--node-monitor-grace-period=8s",
            "--node-monitor-period=2s",
            # An autoscaler also checks every two seconds.
            "--horizontal-pod-autoscaler-sync-period=2s",
        ],
    )


def _start_scheduler() -> Daemon:
    configuration = lab_folder() / "scheduler.json"
    configuration.write_text(scheduler_configuration(str(certs.kubeconfig(certs.SCHEDULER))))
    return _control_plane(
        "scheduler",
        [
            str(binary("kube-scheduler")),
            f"--config={configuration}",
            f"--authentication-kubeconfig={certs.kubeconfig(certs.SCHEDULER)}",
            f"--authorization-kubeconfig={certs.kubeconfig(certs.SCHEDULER)}",
            f"--cert-dir={certs.folder()}",
        ],
    )


def scheduler_configuration(kubeconfig: str) -> str:
    """Prefer the fullest node for each pod, so that one node stays free for workers that need whole cores.

    The fullest node wins by at least 2 of 100 points for every 50m of cpu. Multiplied by 1000, this outweighs the sum
    of the other plugins (soft anti-affinity, spreading, balance: at most about 1100 points).
    """
    packing = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeResourcesFitArgs",
        "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]},
    }
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "score": {
                "disabled": [{"name": "NodeResourcesFit"}],
                "enabled": [{"name": "NodeResourcesFit", "weight": 1000}],
            }
        },
        "pluginConfig": [{"name": "NodeResourcesFit", "args": packing}],
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig},
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    return json.dumps(document, indent=2)
