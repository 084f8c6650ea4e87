"""The manifests of a gateway: their exact text, and what must hold of all of them.

`PROOFGATE_UPDATE_GOLDEN=1 pytest tests/test_manifests.py` writes the golden files anew; read the difference.
"""

import base64
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from proofgate_operator.build import haproxy
from proofgate_operator.plan.configuration import Configuration, Digests
from proofgate_operator.plan.decide import wanted
from proofgate_operator.plan.tenants import read_tenant_keys
from tests.gateways import ACME_KEY, DEFAULTS, GLOBEX_KEY, NAMESPACE, gateway, user_secrets

Manifest = dict[str, Any]
GOLDEN = Path(__file__).parent / "golden"


def manifests(replicas: int = 2, **changes: Any) -> list[Manifest]:
    subject = gateway(**changes)
    tenants = read_tenant_keys(subject, user_secrets())
    assert not tenants.problems
    digests = Digests(start="digest-of-start", config="digest-of-config", haproxy="digest-of-haproxy")
    configuration = Configuration((), tenants.keys, (), "verifying-key", digests)
    return wanted(subject, configuration, replicas, DEFAULTS)


def one(kind: str, name: str, **changes: Any) -> Manifest:
    return next(
        found for found in manifests(**changes) if found["kind"] == kind and found["metadata"]["name"] == name
    )


def test_there_is_a_golden_file_for_every_manifest_and_no_other() -> None:
    names = {f"{found['kind'].lower()}-{found['metadata']['name']}.yaml" for found in manifests()}
    assert {path.name for path in GOLDEN.glob("*.yaml")} == names


@pytest.mark.parametrize("found", manifests(), ids=lambda m: f"{m['kind'].lower()}-{m['metadata']['name']}")
def test_a_manifest_is_as_its_golden_file(found: Manifest) -> None:
    path = GOLDEN / f"{found['kind'].lower()}-{found['metadata']['name']}.yaml"
    text = yaml.safe_dump(found, sort_keys=False, width=110)
    if os.environ.get("PROOFGATE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text


def pod_specs() -> list[Manifest]:
    return [
        found["spec"]["template"]["spec"]
        for found in manifests()
        if found["kind"] in ("StatefulSet", "Deployment")
    ]


def test_every_pod_is_restricted_and_has_no_token() -> None:
    for spec in pod_specs():
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}


def test_every_container_of_a_worker_is_guaranteed() -> None:
    pod = one("StatefulSet", "demo-worker", worker={"cpu": 2, "memory": "1Gi"})["spec"]["template"]["spec"]
    for container in pod["containers"]:
        assert container["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}
        assert container["resources"]["requests"] == container["resources"]["limits"]


def test_no_manifest_holds_a_key_in_clear() -> None:
    text = yaml.safe_dump_all(manifests())
    for key in (ACME_KEY, GLOBEX_KEY, "sk-upstream-0123456789"):
        assert key not in text
        assert base64.b64encode(key.encode()).decode() not in text


def test_the_tenant_map_holds_each_digest_with_its_tenant() -> None:
    data = one("Secret", "demo-tenants")["data"]
    lines = base64.b64decode(data["tenants.map"]).decode().splitlines()
    assert [line.split()[1] for line in lines].count("acme") == 2
    for line in lines:
        digest, tenant = line.split()
        assert digest in base64.b64decode(data[f"{tenant}.keys"]).decode().splitlines()


def test_everything_goes_with_the_gateway_except_a_retained_volume() -> None:
    ownerless = [m["kind"] for m in manifests() if not m["metadata"].get("ownerReferences")]
    assert ownerless == ["PersistentVolumeClaim"]


def test_a_volume_that_is_not_retained_goes_with_the_gateway() -> None:
    claim = one("PersistentVolumeClaim", "demo-wal", ledger={"volume": {"retainPolicy": "Delete"}})
    assert claim["metadata"]["ownerReferences"][0]["name"] == "demo"


def test_an_existing_claim_is_mounted_and_not_made() -> None:
    made = manifests(ledger={"volume": {"existingClaim": "evidence"}})
    assert "PersistentVolumeClaim" not in {found["kind"] for found in made}
    pod = one("StatefulSet", "demo-worker", ledger={"volume": {"existingClaim": "evidence"}})
    volumes = {volume["name"]: volume for volume in pod["spec"]["template"]["spec"]["volumes"]}
    assert volumes["ledger"]["persistentVolumeClaim"] == {"claimName": "evidence"}


def test_a_brought_signing_key_is_mounted_by_reference() -> None:
    pod = one("StatefulSet", "demo-worker", ledger={"signingKeySecretRef": {"name": "mine"}})
    sources = pod["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"]
    assert "mine" in {source["secret"]["name"] for source in sources if "secret" in source}


def test_every_file_of_a_worker_can_be_renewed_while_it_runs() -> None:
    """The kubelet never renews what is mounted by subPath."""
    pod = one("StatefulSet", "demo-worker")["spec"]["template"]["spec"]
    assert all("subPath" not in mount for mount in pod["containers"][0]["volumeMounts"])


def test_another_tenant_is_no_change_of_the_pods_template() -> None:
    alone = [{"name": "acme", "apiKeysSecretRef": {"name": "acme-keys"}}]
    assert one("StatefulSet", "demo-worker", tenants=alone) == one("StatefulSet", "demo-worker")


def test_one_haproxy_has_no_disruption_budget() -> None:
    names = {(m["kind"], m["metadata"]["name"]) for m in manifests(loadBalancer={"replicas": 1})}
    assert ("PodDisruptionBudget", "demo-haproxy") not in names
    assert ("PodDisruptionBudget", "demo-worker") in names


@pytest.mark.parametrize(("replicas", "lines"), [(1, 8), (8, 8), (9, 16), (33, 64), (64, 64)])
def test_server_lines_are_declared_ahead_of_need(replicas: int, lines: int) -> None:
    assert haproxy.server_lines(replicas) == lines


@pytest.mark.parametrize("response_seconds", [5, 300])
def test_a_worker_gives_up_before_haproxy_does(response_seconds: int) -> None:
    """Only the worker can record why an exchange ended."""
    timeouts = {"upstreamConnectSeconds": 5, "upstreamResponseSeconds": response_seconds}
    text = one("ConfigMap", "demo-haproxy", timeouts=timeouts)["data"]["haproxy.cfg"]
    client_idle_seconds = 75  # a worker's default
    for side in ("client", "server"):
        [seconds] = re.findall(rf"^    timeout {side} (\d+)s$", text.split("frontend")[0], re.MULTILINE)
        assert int(seconds) > max(client_idle_seconds, 5 + response_seconds)


def test_workers_expect_the_proxy_header_that_haproxy_sends() -> None:
    worker = yaml.safe_load(one("ConfigMap", "demo-config")["data"]["gateway.yaml"])
    assert worker["proxyProtocol"] is True
    assert "send-proxy-v2" in one("ConfigMap", "demo-haproxy")["data"]["haproxy.cfg"]


def test_scaling_within_the_declared_lines_changes_nothing_of_haproxy() -> None:
    def of_haproxy(replicas: int) -> list[Manifest]:
        return [m for m in manifests(replicas=replicas) if m["metadata"]["name"] == "demo-haproxy"]

    assert of_haproxy(2) == of_haproxy(3)


def test_every_object_is_in_the_gateways_namespace_and_labelled() -> None:
    for found in manifests():
        assert found["metadata"]["namespace"] == NAMESPACE
        assert found["metadata"]["labels"]["proofgate.dev/gateway"] == "demo"
        assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "proofgate-operator"
