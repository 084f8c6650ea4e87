"""Traffic through a gateway's Service, sent from inside the cluster's network."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import Any

from e2e import evidence
from e2e.kubernetes import REPOSITORY, CommandError, Namespace, environment, inside, ledger_directory, wait_until
from e2e.tests.fleet import MODEL, TENANTS, key_of


def _inside(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "e2e.cluster", "inside", "--", sys.executable, "-m", module, *arguments]


def url(namespace: Namespace, gateway: str) -> str:
    """The base URL of a gateway inside the cluster."""
    return f"http://{namespace.service_address(gateway)}/v1"


def wait_reachable(namespace: Namespace, gateway: str, port: int = 80) -> None:
    """Waits until the Service of a gateway that became Ready takes connections.

    The operator and kube-proxy hear of the first endpoint at the same time, and kube-proxy has more to do.
    """
    connect = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"

    def connected() -> bool:
        try:
            inside(sys.executable, "-c", connect, namespace.service_address(gateway), str(port))
        except CommandError:
            return False
        return True

    wait_until(connected, 60, f"the Service {gateway} takes connections")


def ask(namespace: Namespace, gateway: str, key: str, text: str = "hi") -> int:
    """The status of one request through the Service, on a connection of its own; prints a body that is no answer."""
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]})
    arguments = ["--silent", "--max-time", "20", "--write-out", "\\n%{http_code}"]
    headers = ["--header", f"Authorization: Bearer {key}", "--data", body]
    printed = inside("curl", *arguments, *headers, f"{url(namespace, gateway)}/chat/completions")
    answer, _, status = printed.rpartition("\n")
    if status != "200":
        print(status, answer)
    return int(status)


def owners(namespace: Namespace, gateway: str, keys: dict[str, str]) -> dict[str, str]:
    """The worker that serves each key; a key that more or fewer than one worker served is an error."""
    pods = namespace.list("pods", f"app.kubernetes.io/component=worker,proofgate.dev/gateway={gateway}")
    workers = {
        pod["metadata"]["name"]: pod["status"]["podIP"]
        for pod in pods
        if pod["status"].get("podIP") and "deletionTimestamp" not in pod["metadata"]
    }
    secret = namespace.get("secret", f"{gateway}-admin")
    assert secret is not None
    token = base64.b64decode(secret["data"]["token"]).decode().strip()
    asked = json.dumps({"url": url(namespace, gateway), "keys": keys, "workers": workers, "admin_token": token})
    done = subprocess.run(
        _inside("e2e.tests.owners"), input=asked, capture_output=True, text=True, timeout=300,
        env=environment(), cwd=REPOSITORY,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    assert all(len(served) == 1 for served in found.values()), found
    return {label: served[0] for label, served in found.items()}


def settled_owners(namespace: Namespace, gateway: str, keys: dict[str, str]) -> dict[str, str]:
    """The owners once two looks in a row agree: every HAProxy has taken on what the operator wrote last."""
    last: dict[str, str] = {}

    def settled() -> dict[str, str] | None:
        nonlocal last
        now = owners(namespace, gateway, keys)
        same, last = now == last, now
        return now if same else None

    return wait_until(settled, 60, "the tenants have settled", every=1) or {}


def first_keys() -> dict[str, str]:
    """Each tenant's first key, under the tenant's name."""
    return {tenant: key_of(tenant) for tenant in TENANTS}


def records(namespace: Namespace, gateway: str) -> list[dict[str, Any]]:
    """Every record on a gateway's volume, each with its incarnation under `log`."""
    return evidence.records(ledger_directory(namespace, gateway))
