"""The runbooks' commands during failures: each failure is caused on the cluster, and the alert's page must identify it.

The operator is a separate one in the namespace, so that the failures do not affect other tests.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core

from e2e.cluster.layout import volume_folder
from e2e.kubernetes import (
    IMAGES,
    MADE_BY_TESTS,
    PATIENCE,
    REPOSITORY,
    Namespace,
    Object,
    environment,
    install_operator,
    remove_volume,
    server,
    volume_directory,
    wait_until,
)
from e2e.lab_network import inside
from e2e.operations import Gateway, process_in
from e2e.tests import fleet
from e2e.tests.authority import Authority
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.night import answers, exposition, looked_into, scrapes_of
from e2e.tests.traffic import ask, wait_reachable

NIGHT = Namespace("proofgate-night")
NAME, FULL, REFUSED = "night", "night-full", "night-refused"
AUDITOR, WORKER, FULL_WORKER = f"{NAME}-auditor-0", f"{NAME}-worker-0", f"{FULL}-worker-0"
OPERATOR = "proofgate-proofgate-operator"
KEY = key_of(TENANTS[0])
NOBODY = "nobody-has-this-name"
STUB = "stub"
#: Answers each request with an invalid response of a provider.
_STUB = """
import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = b'{"choices": [{"message": '
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("", 9000), Answer).serve_forever()
"""


def secret(name: str, **entries: str) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": entries}


def stub() -> list[Object]:
    """A provider whose answers do not follow its protocol."""
    container = {
        "name": STUB,
        "image": IMAGES["workerImage"],
        "imagePullPolicy": "IfNotPresent",
        "command": ["/opt/proofgate/bin/python", "-c", _STUB],
        "readinessProbe": {"tcpSocket": {"port": 9000}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "1m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    metadata = {"name": STUB, "labels": {"app": STUB}}
    service = {"selector": {"app": STUB}, "ports": [{"port": 9000}]}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": STUB}, "spec": service},
    ]


def auditor(log: str) -> dict[str, Any]:
    """An auditor whose witness, mirror and SIEM do not exist."""
    _, cosigner = _core.generate_witness_key("witness.example.com/night")
    return {
        "signingKeySecretRef": {"name": "auditor-key"},
        "storage": {"storageClassName": "lab-shared"},
        "beatSeconds": 1,
        "cpu": "100m",
        "memory": "512Mi",
        "witnesses": {
            "policy": f"log {log}\nwitness ours {cosigner} http://{NOBODY}:9092\nquorum ours\n",
            "allowHttp": True,
            "deadlineSeconds": 10,
        },
        "mirrors": [
            {
                "bucket": "evidence",
                "endpoint": f"http://{NOBODY}:9000",
                "allowHttp": True,
                "objectLock": {"mode": "Compliance", "days": 1},
                "credentialsSecretRef": {"name": "mirror-credentials"},
            }
        ],
        "siem": [{"url": f"otlp+http://{NOBODY}:4318/v1/logs", "allowPlain": True}],
        "index": {"readersSecretRef": {"name": "readers", "key": "readers.json"}},
    }


def gateway(log: str) -> Object:
    """A gateway of one worker. One provider's answers are invalid; another one uses a cloud that is not reachable."""
    role = "arn:aws:iam::111122223333:role/llm"
    cloud = {
        "name": "bedrock",
        "type": "Bedrock",
        "region": "eu-west-1",
        "baseURL": f"https://{NOBODY}",
        "auth": {"type": "AWSWebIdentity", "roleARN": role, "stsURL": f"https://{NOBODY}"},
    }
    rule = {"id": "codename", "reason": "It names a project.", "target": "Response", "literals": ["bluebird"]}
    return fleet.gateway(
        NAME,
        1,
        TENANTS[:1],
        loadBalancer={"replicas": 1, "tls": {"certificateSecretRef": {"name": "night-tls"}}},
        providers=[{"name": STUB, "type": "OpenAI", "baseURL": f"http://{STUB}:9000/v1"}, cloud],
        models=[{"name": fleet.MODEL, "provider": STUB}, {"name": "claude", "provider": "bedrock"}],
        policy={"mode": "Enforce", "rules": [{**rule, "action": "Block"}]},
        auditor=auditor(log),
    )


def full() -> Object:
    """A gateway of one worker that stores bodies, on a volume that a test can fill."""
    ledger = {
        "volume": {"storageClassName": FULL, "size": "1Gi", "retainPolicy": "Delete"},
        "shredKeys": {},
        "payloads": {"mode": "Stored"},
    }
    return fleet.gateway(FULL, 1, TENANTS[:1], ledger=ledger, loadBalancer=fleet.ONE_BALANCER)


@pytest.fixture(scope="module")
def volume(operator: Namespace) -> Iterator[Path]:
    """The root of a volume of 160 MiB in memory, which can really become full. It has its own storage class."""
    folder = volume_folder() / FULL
    # A killed run may have left a claim on it.
    if NIGHT.exists():
        NIGHT.delete_gateways()
        NIGHT.remove()
    remove_volume(FULL)
    folder.mkdir(exist_ok=True)
    while os.path.ismount(folder):
        subprocess.run(["umount", folder], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=0777", FULL, folder], check=True)
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": FULL},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": str(folder), "type": "Directory"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": FULL,
        },
    }
    server().apply(None, manifest)
    try:
        yield folder
    finally:
        remove_volume(FULL)
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


@pytest.fixture(scope="module")
def certificates() -> Authority:
    """An authority whose certificates expire in a day."""
    return Authority()


@pytest.fixture(scope="module")
def night(volume: Path, certificates: Authority) -> Iterator[Gateway]:
    """Both gateways, settled; yields the one whose auditor's services do not exist."""
    del volume
    NIGHT.create(**MADE_BY_TESTS)
    key, log = _core.generate_key("audit.example.com/night")
    readers = json.dumps({_core.hash_api_key("officer-reader-key-0123456789"): {"name": "officer", "all": True}})
    mirror = {"AWS_ACCESS_KEY_ID": "night", "AWS_SECRET_ACCESS_KEY": "night-secret-key"}
    try:
        # The CRD belongs to the other release.
        install_operator([], {"crds.enabled": False}, NIGHT)
        NIGHT.kubectl("apply", "-f", str(REPOSITORY / "examples" / "demo" / "20-mock-upstream.yaml"))
        NIGHT.apply(
            fleet.secret(TENANTS[0]),
            secret("auditor-key", **{"signing-key": key}),
            secret("mirror-credentials", **mirror),
            secret("readers", **{"readers.json": readers}),
            certificates.secret("night-tls", "night.example.com")[0],
            *stub(),
            gateway(log),
            full(),
        )
        found = Gateway(NIGHT, NAME)
        found.wait_settled(1)
        Gateway(NIGHT, FULL).wait_settled(1)
        wait_reachable(NIGHT, NAME, 443)
        wait_reachable(NIGHT, FULL)
        yield found
    finally:
        NIGHT.delete_gateways()
        NIGHT.remove()


def names(alert: str, *wanted: str, of: str = NAME, number: int = 0, **labels: str) -> None:
    """Waits until the commands of an alert's page print all these texts."""
    said = ""

    def told() -> bool:
        nonlocal said
        try:
            said = looked_into(alert, NIGHT, of, number, **labels)
        except AssertionError as error:
            # A starting container has no log yet.
            said = str(error)
            return False
        return all(text in said for text in wanted)

    try:
        wait_until(told, PATIENCE, f"the commands of {alert} print {wanted}", every=1)
    except TimeoutError as error:
        raise AssertionError(f"{error}\n{said}") from None


def _secured(address: str, body: str) -> tuple[int, str]:
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(address, 443, timeout=60, context=unverified)
    try:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Connection": "close"}
        connection.request("POST", "/v1/chat/completions", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


def ask_night(model: str = fleet.MODEL) -> tuple[int, str]:
    """The status and error code of a request to the first gateway."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]})
    status, text = inside(_secured, NIGHT.service_address(NAME), body)
    return status, json.loads(text)["error"]["code"]


def test_where_a_cloud_gives_no_credentials_the_runbook_has_its_endpoint_and_the_code(night: Gateway) -> None:
    assert ask_night("claude") == (503, "provider_key_missing")
    names(
        "ProofgateCredentialsNotRenewed",
        "unreachable",
        f"{NOBODY}: not reachable",
        "1 of 1 workers",
        provider="bedrock",
    )


def test_where_answers_cannot_be_read_the_runbook_names_tenant_model_and_provider(night: Gateway) -> None:
    scrapes = scrapes_of(NIGHT, NAME, WORKER)

    def denied() -> bool:
        assert ask_night() == (502, "response_malformed")
        scrapes.add(exposition(NIGHT, WORKER, 9090))
        faults, requests = answers("ProofgatePolicyFails", scrapes)
        named = f'model="{fleet.MODEL}", provider="{STUB}", tenant="{TENANTS[0]}"'
        return WORKER in faults and named in requests

    wait_until(denied, PATIENCE, "the queries name them", every=1)


def test_where_no_witness_answers_the_runbooks_name_it(night: Gateway) -> None:
    names("ProofgateAuditorNotCosigned", '"name":"ours"', "witness ours: it is not reachable [unreachable]")
    names("ProofgateLedgerNotAudited", "NotCosigned", "ours (unreachable)", f"pod/{AUDITOR}")


def test_where_a_siem_is_away_the_runbook_names_it(night: Gateway) -> None:
    url = f"otlp+http://{NOBODY}:4318/v1/logs"
    names("ProofgateSiemLags", f"{url}: it is not reachable", "[siem_unreachable]", sink=url)
    scrapes = scrapes_of(NIGHT, NAME, AUDITOR)
    scrapes.add(exposition(NIGHT, AUDITOR, 9091))
    behind, _ = answers("ProofgateSiemLags", scrapes, sink=url)
    assert behind and not behind.endswith(" 0E+00")


def test_where_haproxy_refuses_a_certificate_the_runbook_says_why(night: Gateway, certificates: Authority) -> None:
    [balancer] = night.uids("load-balancer")
    names("ProofgateCertificateExpires", "notAfter=", target="certificate")
    right = certificates.secret("night-tls", "night.example.com")[0]
    wrong = certificates.secret("night-tls", "night.example.com")[0]
    wrong["data"]["tls.crt"] = right["data"]["tls.crt"]
    scrapes = scrapes_of(NIGHT, NAME, balancer)
    scrapes.add(exposition(NIGHT, balancer, 8405))
    NIGHT.apply(wrong)
    refused = "certificate: HAProxy refuses it: inconsistencies between private key and certificate"
    names("ProofgateKeysNotTaken", refused, pod=balancer, target="certificate")
    stale = 'proofgate_haproxy_sidecar_up_to_date{target="certificate"} 0\n'
    assert stale in exposition(NIGHT, balancer, 8405), "the alert fires"
    scrapes.add(exposition(NIGHT, balancer, 8405))
    [failures] = answers("ProofgateKeysNotTaken", scrapes)
    assert re.search(r'reason="refused", target="certificate"} [1-9]', failures), failures
    NIGHT.apply(right)


def test_where_the_auditor_cannot_write_its_state_the_runbook_names_the_file(night: Gateway) -> None:
    state = volume_directory(NIGHT, f"{NAME}-auditor")
    folders = {path: path.stat().st_mode for path in (state, *state.rglob("*")) if path.is_dir()}
    try:
        for path, mode in folders.items():
            path.chmod(mode & ~0o222)
        assert ask_night()[0] == 502
        names("ProofgateAuditorStalls", "the poll failed", "in the auditor's state: Permission denied")
        scrapes = scrapes_of(NIGHT, NAME, AUDITOR)
        scrapes.add(exposition(NIGHT, AUDITOR, 9091))
        [failures] = answers("ProofgateAuditorStalls", scrapes)
        assert failures and not failures.endswith(" 0E+00")
    finally:
        for path, mode in folders.items():
            path.chmod(mode)


def test_where_the_index_is_no_database_any_more_the_runbook_has_problem_and_file(night: Gateway) -> None:
    index = volume_directory(NIGHT, f"{NAME}-auditor") / "index"
    # The change also removes the witness, because nothing is accepted without its cosignature. It replaces the pod,
    # which then opens the file again.
    damaged = index / "catalogue.sqlite"
    damaged.write_bytes(bytes(damaged.stat().st_size))
    for beside in index.glob("catalogue.sqlite-*"):
        beside.unlink()
    night.patch({"auditor": {"witnesses": None}})
    names("ProofgateAuditorIndexStands", '"problem":"index_io"', "catalogue.sqlite", "file is not a database")


def test_where_a_mirrors_store_is_away_the_runbook_names_it(night: Gateway) -> None:
    # Only an ended log is mirrored.
    night.kill(WORKER, b"serve")
    names("ProofgateMirrorLags", "s3://evidence: it is not reachable", "[mirror_unreachable]", mirror="s3://evidence")
    night.wait_settled(1)


def test_where_an_object_is_refused_the_runbook_names_object_and_reason(night: Gateway) -> None:
    NIGHT.kubectl("create", "quota", NAME, "--hard=count/deployments.apps=1")
    try:
        NIGHT.apply(fleet.gateway(REFUSED, 1, TENANTS[:1], loadBalancer=fleet.ONE_BALANCER))
        names(
            "ProofgateOperatorFails",
            f"{NIGHT.name}/{REFUSED} ApplyFailed",
            f"refused: Deployment {REFUSED}-haproxy",
            "exceeded quota",
            pod=leader(),
        )
    finally:
        NIGHT.kubectl("delete", "quota", NAME)
        NIGHT.delete("ggw", REFUSED)


def leader() -> str:
    """The operator pod that holds the lease."""
    held = "jsonpath={.spec.holderIdentity}"
    return NIGHT.kubectl("get", "lease", OPERATOR, "--output", held).partition("_")[0]


def test_where_another_tool_writes_what_the_operator_does_the_runbook_names_it(night: Gateway) -> None:
    told = ("--field-manager=argocd", "--overwrite")
    NIGHT.kubectl("label", *told, f"deployment/{NAME}-haproxy", "argocd.example.com/instance=night")
    found = looked_into("ProofgateOperatorNeverSettles", NIGHT, NAME)
    [line] = [line for line in found.splitlines() if line.startswith(f"Deployment/{NAME}-haproxy:")]
    assert "argocd" in line.split()


@contextmanager
def without_secrets() -> Iterator[None]:
    """During the block, the operator may list the namespace's Secrets but not read them."""
    role = json.loads(NIGHT.kubectl("get", "role", OPERATOR, "--output", "json"))
    rules = []
    for rule in role["rules"]:
        others = [resource for resource in rule["resources"] if resource != "secrets"]
        if len(others) < len(rule["resources"]):
            rules.append({**rule, "resources": ["secrets"], "verbs": [verb for verb in rule["verbs"] if verb != "get"]})
        rules += [{**rule, "resources": others}] if others else []
    change_role(rules)
    try:
        yield
    finally:
        change_role(role["rules"])


def change_role(rules: list[dict[str, Any]]) -> None:
    NIGHT.kubectl("patch", "role", OPERATOR, "--type=merge", "--patch", json.dumps({"rules": rules}))


def refs() -> str:
    """The reason of the condition ResolvedRefs."""
    reason: str = NIGHT.condition(FULL, "ResolvedRefs").get("reason", "")
    return reason


def test_where_the_operator_may_not_read_the_runbooks_have_what_and_who(night: Gateway) -> None:
    with without_secrets():
        # A changed Secret is read again.
        NIGHT.kubectl("label", "secret", f"{TENANTS[0]}-keys", "night=yes")
        names("ProofgateReadsHeld", "cannot get secrets", f"in namespace {NIGHT.name}", "kubectl auth can-i ", of=FULL)
        page = looked_into("ProofgateReadsHeld", NIGHT, FULL)
        command = re.findall(r"`(kubectl auth can-i [^`]+)`", page)[0]
        may = subprocess.run(command.split(), env=environment(), capture_output=True, text=True, timeout=PATIENCE)
        assert may.stdout.strip() == "no", may
    wait_until(lambda: refs() == "Resolved", PATIENCE, "it reads again")


def fill(folder: Path) -> Path:
    """Fills the file system to the last byte, and returns the file that does so."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 20)):
            pass
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(512)):
            pass
    return filler


def test_where_a_volume_is_full_the_runbooks_show_it_and_what_is_not_signed(night: Gateway, volume: Path) -> None:
    scrapes = scrapes_of(NIGHT, FULL, FULL_WORKER)
    assert ask(NIGHT, FULL, KEY) == 200
    fill(volume)
    wait_until(lambda: ask(NIGHT, FULL, KEY) == 503, PATIENCE, "requests are refused", every=1)
    # Refused keys are recorded while there is allocated space.
    for _ in range(3):
        assert ask(NIGHT, FULL, "sk-nobodys-key-0123456789abcdef") == 401
        assert ask(NIGHT, FULL, KEY) == 503
        scrapes.add(exposition(NIGHT, FULL_WORKER, 9090))
    for alert in (
        "ProofgateLedgerRefuses",
        "ProofgateLedgerNotSigned",
        "ProofgateCheckpointIsOld",
        "ProofgatePayloadsNotStored",
    ):
        names(alert, "100%", of=FULL)
    names("ProofgateVolumeFills", "100%", "Bound", of=FULL, persistentvolumeclaim=f"{FULL}-wal")
    codes, _ = answers("ProofgateLedgerRefuses", scrapes)
    assert re.search(r'{code="ledger_full"} [1-9]', codes), codes
    _, refusals, _ = answers("ProofgatePayloadsNotStored", scrapes)
    assert refusals and not refusals.endswith(" 0E+00")
    refused = answers("ProofgateRefusalsNotRecorded", scrapes)[0]
    assert '{code="invalid_api_key", status="401"}' in refused

    def not_signed() -> bool:
        scrapes.add(exposition(NIGHT, FULL_WORKER, 9090))
        return not answers("ProofgateLedgerNotSigned", scrapes)[0].endswith(" 0E+00")

    wait_until(not_signed, PATIENCE, "synced records have no checkpoint", every=1)
    age, unsynced, unsigned = answers("ProofgateCheckpointIsOld", scrapes)
    assert unsynced.endswith(" 0E+00") and not unsigned.endswith(" 0E+00") and age


def test_where_no_operator_runs_and_records_are_lost_the_runbooks_say_so(night: Gateway, volume: Path) -> None:
    NIGHT.kubectl("scale", f"deployment/{OPERATOR}", "--replicas=0")
    NIGHT.wait_gone("pod", selector="app.kubernetes.io/instance=proofgate")
    found = looked_into("ProofgateOperatorHasNoLeader", NIGHT, NAME)
    ours = [line.split() for line in found.splitlines() if line.startswith(NIGHT.name)]
    assert [line[1] for line in ours if line[1].startswith(OPERATOR)] == [OPERATOR], "a Lease, and no pod"

    # A stopped worker that is killed does not seal its log. No other worker starts in the meantime.
    process = process_in(NIGHT, FULL_WORKER, b"serve")
    os.kill(process, signal.SIGSTOP)
    NIGHT.kubectl("scale", f"statefulset/{FULL}-worker", "--replicas=0")
    wait_until(
        lambda: "deletionTimestamp" in (NIGHT.get("pod", FULL_WORKER) or {}).get("metadata", {}), PATIENCE, "it leaves"
    )
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: NIGHT.get("pod", FULL_WORKER) is None, PATIENCE, "it is gone")
    (volume / "filler").unlink()
    segment = max(volume.glob("0/*/*.seg"))
    with segment.open("r+b") as file:
        last = file.read().rindex(b'{"v":')
        file.seek(last)
        file.write(bytes(1024))
    NIGHT.kubectl("scale", f"deployment/{OPERATOR}", "--replicas=2")
    Gateway(NIGHT, FULL).wait_settled(1)
    names("ProofgateLedgerLostRecords", "records that followed are missing", of=FULL)
    scrapes = scrapes_of(NIGHT, FULL, FULL_WORKER)
    scrapes.add(exposition(NIGHT, FULL_WORKER, 9090))
    [lost] = answers("ProofgateLedgerLostRecords", scrapes)
    assert lost and not lost.endswith(" 0E+00")
