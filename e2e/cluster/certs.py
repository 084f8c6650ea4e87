"""Certificates, tokens and kubeconfigs of one lab, which are deleted with it.

Clients authenticate with static tokens. So only servers need certificates; the apiserver also has one for its
requests to the kubelets.
"""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from .layout import CLUSTER_DOMAIN, CONTROL_PLANE, FIRST_SERVICE, NODES, kubeconfig_path, lab_folder
from .processes import run

_DAYS = "30"


@dataclass(frozen=True)
class Client:
    """A client of the apiserver: the user and groups that RBAC and the Node authorizer see."""

    name: str
    user: str
    groups: str = ""


ADMIN = Client("admin", "lab-admin", "system:masters")
CONTROLLER_MANAGER = Client("controller-manager", "system:kube-controller-manager")
SCHEDULER = Client("scheduler", "system:kube-scheduler")
PROXY = Client("proxy", "system:kube-proxy", "system:node-proxier")
KUBELETS = {node.name: Client(f"kubelet-{node.name}", f"system:node:{node.name}", "system:nodes") for node in NODES}
CLIENTS = (ADMIN, CONTROLLER_MANAGER, SCHEDULER, PROXY, *KUBELETS.values())


def folder() -> Path:
    return lab_folder() / "pki"


def certificate(name: str) -> Path:
    return folder() / f"{name}.crt"


def key(name: str) -> Path:
    return folder() / f"{name}.key"


def kubeconfig(client: Client) -> Path:
    return kubeconfig_path() if client is ADMIN else folder() / f"{client.name}.kubeconfig"


def create(port: int) -> None:
    """Create all files for an apiserver on `port` that is reached as 127.0.0.1 and at the control plane's address."""
    folder().mkdir(mode=0o700)
    _authority()
    in_cluster = [f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc")]
    in_cluster.append(f"kubernetes.default.svc.{CLUSTER_DOMAIN}")
    names = [f"DNS:{name}" for name in ("localhost", *in_cluster)]
    names += [f"IP:{address}" for address in ("127.0.0.1", CONTROL_PLANE.address, FIRST_SERVICE)]
    _signed("apiserver", "/CN=kube-apiserver", "serverAuth", names)
    _signed("apiserver-kubelet-client", "/O=system:masters/CN=apiserver-kubelet-client", "clientAuth", [])
    for node in NODES:
        subject = f"/O=system:nodes/CN=system:node:{node.name}"
        _signed(f"kubelet-{node.name}", subject, "serverAuth", [f"DNS:{node.name}", f"IP:{node.address}"])
    _new_key("service-accounts")
    _tokens(port)


def _new_key(name: str) -> None:
    run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key(name)])
    key(name).chmod(0o600)


def _authority() -> None:
    _new_key("ca")
    subject = ["-subj", "/CN=proofgate-lab", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
    request = ["openssl", "req", "-x509", "-new", "-key", str(key("ca")), "-days", _DAYS, *subject]
    certificate("ca").write_text(run(request).stdout)


def _signed(name: str, subject: str, usage: str, names: list[str]) -> None:
    _new_key(name)
    request = run(["openssl", "req", "-new", "-key", key(name), "-subj", subject]).stdout
    # Python's strict verification also requires the key identifiers.
    lines = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", f"extendedKeyUsage={usage}"]
    lines += ["subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid"]
    if names:
        lines.append(f"subjectAltName={','.join(names)}")
    extensions = folder() / f"{name}.ext"
    extensions.write_text("\n".join(lines) + "\n")
    authority = ["-CA", str(certificate("ca")), "-CAkey", str(key("ca")), "-CAcreateserial"]
    sign = ["openssl", "x509", "-req", *authority, "-days", _DAYS, "-extfile", str(extensions)]
    certificate(name).write_text(run(sign, text_in=request).stdout)
    extensions.unlink()


def token_file() -> Path:
    return folder() / "tokens.csv"


def _tokens(port: int) -> None:
    lines = []
    for client in CLIENTS:
        token = secrets.token_hex(24)
        lines.append(f'{token},{client.user},{client.user},"{client.groups}"')
        # On the machine and in the first node's namespace, the apiserver is on 127.0.0.1. From the second node's
        # namespace, it is at the first node's address.
        host = CONTROL_PLANE.address if client is PROXY or client is KUBELETS[NODES[1].name] else "127.0.0.1"
        _private(kubeconfig(client), kubeconfig_text(f"https://{host}:{port}", client.user, token))
    _private(token_file(), "\n".join(lines) + "\n")


def kubeconfig_text(server: str, user: str, token: str) -> str:
    """A kubeconfig as JSON, which is valid YAML. It references no files, so it can be copied into a pod."""
    authority = base64.b64encode(certificate("ca").read_bytes()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proofgate-lab",
        "clusters": [{"name": "proofgate-lab", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "proofgate-lab", "context": {"cluster": "proofgate-lab", "user": user}}],
    }
    return json.dumps(document, indent=2) + "\n"


def _private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
