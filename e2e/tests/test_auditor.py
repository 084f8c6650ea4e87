"""The operator's auditor: a witness cosigns its log, it follows the ledger and reports changes to it, and a restarted
auditor does not start a new log.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from proofgate import _core

from e2e.kubernetes import IMAGES, PATIENCE, Namespace, Object, ledger_directory, volume_directory, wait_until
from e2e.lab_network import exchange, inside
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.night import looked_into
from e2e.tests.traffic import ask, wait_reachable

NAME = "audited"
AUDITOR = f"{NAME}-auditor"
ORIGIN = "audit.example.com/e2e"
KEY = key_of(TENANTS[0])
WITNESS = "witness"
WITNESS_NAME = "witness.example.com/e2e"
WITNESS_PORT = 9092


def secret(name: str, **entries: str) -> Object:
    data = {key.replace("_", "-"): text for key, text in entries.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def witness(signing_key: str, log: str) -> list[Object]:
    """A witness of one log, whose state is lost with its pod."""
    files = "/etc/witness"
    container = {
        "name": WITNESS,
        "image": IMAGES["workerImage"],
        "imagePullPolicy": "IfNotPresent",
        "command": [
            *("/opt/proofgate/bin/proofgate", "audit", "witness", "--listen", f"0.0.0.0:{WITNESS_PORT}"),
            *("--logs", f"{files}/logs", "--signing-key", f"{files}/signing-key"),
            *("--state", "/state/witness", "--new-state"),
        ],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": WITNESS_PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "files", "mountPath": files}, {"name": "state", "mountPath": "/state"}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": WITNESS, "labels": {"app": WITNESS}},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "files", "secret": {"secretName": WITNESS}}, {"name": "state", "emptyDir": {}}],
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": WITNESS},
        "spec": {"selector": {"app": WITNESS}, "ports": [{"port": WITNESS_PORT}]},
    }
    return [secret(WITNESS, signing_key=signing_key, logs=f"logs/v0\n\nvkey {log}\n"), pod, service]


@pytest.fixture
def audited(namespace: Namespace) -> Iterator[Gateway]:
    """A gateway of one worker with an auditor and a witness, both with new keys."""
    key, log = _core.generate_key(ORIGIN)
    witness_key, cosigner = _core.generate_witness_key(WITNESS_NAME)
    namespace.apply(fleet.secret(TENANTS[0]), secret("auditor-key", signing_key=key), *witness(witness_key, log))
    namespace.wait_ready("pod", WITNESS)
    url = f"http://{WITNESS}:{WITNESS_PORT}"
    auditor = {
        "signingKeySecretRef": {"name": "auditor-key"},
        "storage": {"storageClassName": "lab-shared"},
        "beatSeconds": 1,
        "witnesses": {
            "policy": f"log {log}\nwitness ours {cosigner} {url}\nquorum ours\n",
            "allowHttp": True,
            "deadlineSeconds": 10,
        },
        "cpu": "100m",
    }
    namespace.apply(fleet.gateway(NAME, 1, TENANTS[:1], auditor=auditor, loadBalancer=fleet.ONE_BALANCER))
    found = Gateway(namespace, NAME)
    try:
        yield found
    finally:
        found.delete()
        found.forget()
        for kind in ("pod", "service", "secret"):
            namespace.delete(kind, WITNESS)


def audit(gateway: Gateway) -> tuple[str, str]:
    """The status and reason of the condition Audited."""
    found = gateway.namespace.condition(gateway.name, "Audited")
    return found.get("status", ""), found.get("reason", "")


def cosigned(gateway: Gateway) -> int:
    """The size of the newest tree head that the witness has cosigned, from the status; 0 if it has not."""
    found = (gateway.namespace.get("ggw", gateway.name) or {}).get("status", {}).get("auditor", {})
    [standing] = found.get("witnesses") or [{}]
    return int(standing["size"]) if standing.get("lastResult") == "cosigned" else 0


def findings(gateway: Gateway) -> list[str]:
    """The messages of the findings' Events."""
    fields = f"reason=AuditFinding,involvedObject.name={gateway.name}"
    return [event["message"] for event in gateway.namespace.list("events", fields=fields)]


def told(gateway: Gateway, path: str) -> str:
    """The auditor's answer on its port, once its Service has the pod."""
    url = f"http://{gateway.namespace.service_address(AUDITOR)}:9091{path}"

    def answered() -> str:
        try:
            answer = inside(exchange, "GET", url)
        except OSError as error:
            print(f"{url}: {error}")
            return ""
        assert answer.status == 200, answer
        return answer.text

    return wait_until(answered, PATIENCE, f"{url} answers")


def accepted(gateway: Gateway) -> int:
    """The number of records under the newest accepted tree head of the worker's log."""
    heads: list[Object] = json.loads(told(gateway, "/heads"))["shards"]
    return sum(head["size"] for head in heads)


def is_emptied(folder: Path) -> bool:
    """Empties a folder while processes may write to it; returns whether it is empty."""
    for path in folder.iterdir():
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    return not list(folder.iterdir())


def test_an_auditor_follows_names_a_changed_segment_and_is_not_begun_anew(audited: Gateway) -> None:
    namespace = audited.namespace
    wait_until(lambda: audit(audited) == ("True", "NothingFound"), PATIENCE, "the ledger is audited")
    audited.wait_settled(1)
    wait_reachable(namespace, NAME)
    assert [ask(namespace, NAME, KEY) for _ in range(3)] == [200] * 3
    # The record `open`, and two records of each exchange.
    wait_until(lambda: accepted(audited) >= 7, PATIENCE, "the auditor has accepted what was recorded")
    wait_until(lambda: namespace.get("configmap", AUDITOR), PATIENCE, "a checkpoint of its log is held")
    assert f"\n— {WITNESS_NAME} " in told(audited, "/checkpoint"), "what is published is cosigned"
    wait_until(lambda: cosigned(audited), PATIENCE, "the status tells that the witness has cosigned")

    before = int(told(audited, "/checkpoint").split("\n")[1])
    [uid] = audited.uids("auditor").values()
    namespace.delete("pod", f"{AUDITOR}-0", wait=False)

    def another_is_ready() -> bool:
        ready = (namespace.get("statefulset", AUDITOR) or {}).get("status", {}).get("readyReplicas") == 1
        return ready and uid not in audited.uids("auditor").values()

    wait_until(another_is_ready, PATIENCE, "another auditor is ready")
    assert int(told(audited, "/checkpoint").split("\n")[1]) >= before > 0, "it goes on with its log"
    assert findings(audited) == []

    namespace.delete("pod", WITNESS)
    assert ask(namespace, NAME, KEY) == 200
    wait_until(lambda: audit(audited) == ("False", "NotCosigned"), PATIENCE, "the condition says that nobody cosigns")
    assert "ours (" in namespace.condition(NAME, "Audited")["message"]
    assert "witness ours: " in looked_into("ProofgateAuditorNotCosigned", namespace, NAME)

    segment = max(ledger_directory(namespace, NAME).glob("0/*/*.seg"))
    with segment.open("r+b") as file:
        file.seek(file.read().index(b'"completion"'))
        file.write(b"!")
    wait_until(
        lambda: audit(audited) == ("False", "LedgerInvalid"), PATIENCE, "the condition says that a record was changed"
    )
    wait_until(lambda: findings(audited), PATIENCE, "an Event names it")
    assert any(found.startswith("records_damaged (invalid): ") for found in findings(audited)), findings(audited)
    codes = {found["code"] for found in (namespace.get("ggw", NAME) or {})["status"]["auditor"]["findings"]}
    assert "records_damaged" in codes
    page = looked_into("ProofgateAuditorFinding", namespace, NAME, code="records_damaged")
    assert page.count("records_damaged") >= 2, "an Event and the auditor's port have it"
    assert "LedgerInvalid" in looked_into("ProofgateLedgerNotAudited", namespace, NAME)
    assert ask(namespace, NAME, KEY) == 200 and namespace.is_ready(NAME, 1), "the gateway serves all the same"

    # Its state is lost, so a new log with the same name must not be started.
    wait_until(lambda: is_emptied(volume_directory(namespace, AUDITOR)), PATIENCE, "nothing is left")
    namespace.delete("pod", f"{AUDITOR}-0", wait=False)
    wait_until(lambda: audit(audited) == ("False", "AuditorStateLost"), PATIENCE, "the lost state is told")
    assert "AuditorStateLost" in looked_into("ProofgateLedgerNotAudited", namespace, NAME)
