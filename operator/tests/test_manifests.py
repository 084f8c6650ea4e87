"""The manifests of a gateway: their exact text, and rules for all of them.

`PROOFGATE_UPDATE_GOLDEN=1 pytest tests/test_manifests.py` rewrites the golden files; review the diff.
"""

import base64
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from proofgate_schema.limits import Limits
from proofgate_schema.timeouts import Timeouts
from pydantic import ValidationError

from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.build import haproxy, services
from proofgate_operator.build.haproxy import deployment, render_config
from proofgate_operator.build.owners import WorkerShares
from proofgate_operator.build.worker_config import worker_config
from proofgate_operator.plan.configuration import Configuration, ConfigurationDigests
from proofgate_operator.plan.decide import desired_manifests
from proofgate_operator.plan.haproxy_sidecar import desired_haproxy_state
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.tenants import read_tenant_keys
from tests.auditing import AUDITOR, WITNESSED
from tests.auditing import KEY as AUDITORS_KEY
from tests.gateways import ACME_KEY, DEFAULTS, GLOBEX_KEY, NAMESPACE, SPEC, api_keys, gateway, user_secrets
from tests.retention import KEEPING
from tests.retention import KEY as RETENTION_KEY

Manifest = dict[str, Any]
GOLDEN = Path(__file__).parent / "golden"
PER_WORKER = {"volume": {"mode": "PerWorker", "storageClassName": "lab-block", "size": "1Gi"}}


def manifests(
    replicas: int = 2, witness_ports: tuple[int, ...] = (), readers: str | None = None, **changes: Any
) -> list[Manifest]:
    subject = gateway(**changes)
    tenants = read_tenant_keys(subject, user_secrets(), {})
    assert not tenants.faults
    digests = ConfigurationDigests(
        *("digest-of-start", "digest-of-config", "digest-of-haproxy", "digest-of-certificate"),
        "digest-of-auditor",
    )
    configuration = Configuration(
        file_problems=(),
        worker_problems=(),
        balancer_problems=(),
        faults=(),
        keys=tenants.keys,
        routing_key="0123456789abcdef" * 2,
        missing_secrets=(),
        verifying_key="verifying-key",
        digests=digests,
        auditor_key=AUDITORS_KEY if subject.enabled_auditor else None,
        retention_key=RETENTION_KEY if subject.spec.keeping else None,
        witness_ports=witness_ports,
        readers=readers,
        auditor_token="auditor-token",
    )
    door = desired_haproxy_state(subject, configuration, replicas, WorkerShares(replicas))
    return desired_manifests(subject, ObservedState(), configuration, door, replicas, DEFAULTS)


def one(kind: str, name: str, **changes: Any) -> Manifest:
    return next(
        found for found in manifests(**changes) if found["kind"] == kind and found["metadata"]["name"] == name
    )


def file_name(found: Manifest) -> str:
    return f"{found['kind'].lower()}-{found['metadata']['name']}.yaml"


def file_names(found: list[Manifest]) -> set[str]:
    return {file_name(each) for each in found}


def golden_names(folder: str = ".") -> set[str]:
    return {path.name for path in (GOLDEN / folder).glob("*.yaml")}


def assert_is_golden(found: Manifest, folder: str = ".") -> None:
    """Compare a manifest with its golden file in a folder, or write the file."""
    path = GOLDEN / folder / file_name(found)
    text = yaml.safe_dump(found, sort_keys=False, width=110)
    if os.environ.get("PROOFGATE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text


def test_there_is_a_golden_file_for_every_manifest_and_no_other() -> None:
    names = file_names(manifests())
    assert golden_names() == names


@pytest.mark.parametrize("found", manifests(), ids=file_name)
def test_a_manifest_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found)


def of_own_volumes() -> list[Manifest]:
    """Return the manifests that differ if each worker has its own volume."""
    return [found for found in manifests(ledger=PER_WORKER) if found not in manifests()]


def test_volumes_of_their_own_change_the_set_and_the_claims_and_nothing_else() -> None:
    names = file_names(of_own_volumes())
    assert golden_names("per-worker") == names
    assert names == {
        "statefulset-demo-worker.yaml",
        "persistentvolumeclaim-ledger-demo-worker-0.yaml",
        "persistentvolumeclaim-ledger-demo-worker-1.yaml",
    }


@pytest.mark.parametrize("found", of_own_volumes(), ids=file_name)
def test_with_volumes_of_their_own_a_manifest_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "per-worker")


def of_the_auditor() -> list[Manifest]:
    """Return the additional manifests of a gateway with an auditor."""
    return [found for found in manifests(auditor=AUDITOR) if found not in manifests()]


def test_an_auditor_is_told_whose_tombstones_hold() -> None:
    key = "audit.example.com/keeping+1a2b3c4d+cHVibGlj"
    made = one("StatefulSet", "demo-auditor", auditor=AUDITOR | {"keepingKey": key})
    command = made["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("--keeping-key") + 1] == key


def test_an_auditor_comes_beside_everything_else_and_changes_none_of_it() -> None:
    names = file_names(of_the_auditor())
    assert golden_names("auditor") == names
    assert all(found in manifests(auditor=AUDITOR) for found in manifests())


@pytest.mark.parametrize("found", of_the_auditor(), ids=file_name)
def test_a_manifest_of_the_auditor_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "auditor")


def of_an_auditor_of_workers() -> list[Manifest]:
    """Return the manifests that an auditor adds or changes if each worker has its own volume."""
    return [
        found
        for found in manifests(ledger=PER_WORKER, auditor=AUDITOR)
        if found not in manifests(ledger=PER_WORKER) and found not in manifests(auditor=AUDITOR)
    ]


def test_an_auditor_of_workers_mounts_whom_to_ask_and_may_ask_them() -> None:
    names = file_names(of_an_auditor_of_workers())
    assert golden_names("auditor-per-worker") == names
    assert names == {
        "statefulset-demo-auditor.yaml",
        "secret-demo-auditor.yaml",
        "networkpolicy-demo-auditor.yaml",
        "networkpolicy-demo-worker.yaml",
    }


@pytest.mark.parametrize("found", of_an_auditor_of_workers(), ids=file_name)
def test_of_an_auditor_of_workers_a_manifest_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "auditor-per-worker")


def of_witnesses() -> list[Manifest]:
    """Return the manifests that differ if the auditor has witnesses."""
    asked = {**WITNESSED, "witnesses": {**WITNESSED["witnesses"], "egress": {"allow": ["192.0.2.0/24"]}}}
    return [
        found
        for found in manifests(auditor=asked, witness_ports=(443, 8443))
        if found not in manifests(auditor=AUDITOR)
    ]


def test_witnesses_change_the_auditors_set_and_its_network_policy_and_nothing_else() -> None:
    names = file_names(of_witnesses())
    assert golden_names("witnesses") == names
    assert names == {"statefulset-demo-auditor.yaml", "networkpolicy-demo-auditor.yaml"}


@pytest.mark.parametrize("found", of_witnesses(), ids=file_name)
def test_with_witnesses_a_manifest_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "witnesses")


READERS = json.dumps({"9f" * 32: {"name": "officer", "all": True}})


def of_an_index() -> list[Manifest]:
    """Return the manifests that differ if the auditor has an index with readers."""
    named = {"name": "llm-readers", "key": "readers.json"}
    asked = {**AUDITOR, "memory": "512Mi", "index": {"retentionDays": 90, "readersSecretRef": named}}
    return [
        found
        for found in manifests(auditor=asked, readers=READERS)
        if found not in manifests(auditor=AUDITOR)
    ]


def test_an_index_changes_the_auditors_set_and_adds_its_readers_and_nothing_else() -> None:
    names = file_names(of_an_index())
    assert golden_names("index") == names
    assert names == {"statefulset-demo-auditor.yaml", "secret-demo-auditor.yaml"}


@pytest.mark.parametrize("found", of_an_index(), ids=file_name)
def test_with_an_index_a_manifest_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "index")


def of_sign_in() -> list[Manifest]:
    """Return the manifests that differ if readers sign in with an OpenID provider and exports are signed."""
    oidc = {
        "issuer": "https://login.example.com/realms/bank",
        "clientId": "proofgate-auditor",
        "clientSecretRef": {"name": "oidc-client", "key": "secret"},
        "redirectUri": "https://auditor.example.com/oidc/callback",
        "groups": [{"name": "officers", "all": True}, {"name": "acme-team", "tenant": "acme"}],
        "caConfigMapRef": {"name": "authorities", "key": "ca.crt"},
    }
    index = {"oidc": oidc, "exportKey": {"secretRef": {"name": "export-key"}}}
    asked = {**AUDITOR, "memory": "512Mi", "index": index}
    return [
        found for found in manifests(auditor=asked, readers="{}") if found not in manifests(auditor=AUDITOR)
    ]


def test_sign_in_changes_the_auditors_set_and_whom_it_may_call_and_nothing_else() -> None:
    names = file_names(of_sign_in())
    assert golden_names("sign-in") == names
    assert names == {
        *("statefulset-demo-auditor.yaml", "secret-demo-auditor.yaml"),
        "networkpolicy-demo-auditor.yaml",
    }


@pytest.mark.parametrize("found", of_sign_in(), ids=file_name)
def test_with_sign_in_a_manifest_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "sign-in")


def of_an_index_of_workers() -> list[Manifest]:
    """Return the manifests that an index adds if each worker has its own volume."""
    named = {"name": "llm-readers", "key": "readers.json"}
    asked = {**AUDITOR, "memory": "512Mi", "index": {"retentionDays": 90, "readersSecretRef": named}}
    return [
        found
        for found in manifests(ledger=PER_WORKER, auditor=asked, readers=READERS)
        if found not in manifests(ledger=PER_WORKER, auditor=AUDITOR)
    ]


def test_an_index_of_workers_adds_copies_to_the_set_and_readers_to_the_secret_and_nothing_else() -> None:
    names = file_names(of_an_index_of_workers())
    assert golden_names("index-per-worker") == names
    assert names == {"statefulset-demo-auditor.yaml", "secret-demo-auditor.yaml"}


@pytest.mark.parametrize("found", of_an_index_of_workers(), ids=file_name)
def test_with_an_index_of_workers_a_manifest_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "index-per-worker")


def of_the_retention_job() -> list[Manifest]:
    """Return the additional manifests of a gateway with a retention job."""
    return [found for found in manifests(keeping=KEEPING) if found not in manifests()]


def test_a_retention_job_comes_beside_everything_else_and_changes_none_of_it() -> None:
    names = file_names(of_the_retention_job())
    assert golden_names("keeping") == names
    assert all(found in manifests(keeping=KEEPING) for found in manifests())


@pytest.mark.parametrize("found", of_the_retention_job(), ids=file_name)
def test_a_manifest_of_the_retention_job_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "keeping")


def of_a_retention_job_that_waits() -> list[Manifest]:
    """Return the manifests that the retention job and an auditor have only in combination."""
    alone = [*manifests(keeping=KEEPING), *manifests(auditor=AUDITOR)]
    return [found for found in manifests(auditor=AUDITOR, keeping=KEEPING) if found not in alone]


def test_a_retention_job_and_an_auditor_know_of_each_other_and_change_nothing_else() -> None:
    names = file_names(of_a_retention_job_that_waits())
    assert golden_names("keeping-audited") == names
    assert names == {
        *("cronjob-demo-retention.yaml", "networkpolicy-demo-retention.yaml"),
        *("statefulset-demo-auditor.yaml", "networkpolicy-demo-auditor.yaml"),
    }


@pytest.mark.parametrize("found", of_a_retention_job_that_waits(), ids=file_name)
def test_a_manifest_of_a_retention_job_that_waits_is_as_its_golden_file(found: Manifest) -> None:
    assert_is_golden(found, "keeping-audited")


def pod_specs() -> list[Manifest]:
    found = manifests(auditor=AUDITOR, keeping=KEEPING)
    [job] = [each["spec"]["jobTemplate"] for each in found if each["kind"] == "CronJob"]
    sets = [each for each in found if each["kind"] in ("StatefulSet", "Deployment")]
    return [each["spec"]["template"]["spec"] for each in (*sets, job)]


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


def test_a_worker_is_ready_to_a_disruption_budget_only_once_the_operator_says_that_haproxy_found_it() -> None:
    pod = one("StatefulSet", "demo-worker")["spec"]["template"]["spec"]
    assert pod["readinessGates"] == [{"conditionType": "proofgate.dev/load-balanced"}]


def test_haproxy_asks_no_name_server_and_sends_nothing_before_the_agent_sets_an_address() -> None:
    text = render_config(gateway(), DEFAULTS)
    assert "resolvers" not in text
    assert " init-addr last,203.0.113.1 disabled" in text


def test_haproxy_starts_from_the_file_that_the_agent_leaves_where_both_may_look() -> None:
    [path] = re.findall(r"server-state-file (.*)", haproxy_config())
    [haproxy, agent] = haproxy_pod()["containers"]
    assert f"--server-state {path}" in " ".join(agent["command"])
    for container in (haproxy, agent):
        assert path.rpartition("/")[0] in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_the_agent_alone_has_the_addresses_of_workers_and_no_token() -> None:
    pod: Manifest = one("Deployment", "demo-haproxy")["spec"]["template"]["spec"]
    agent = next(found for found in pod["containers"] if found["name"] == "haproxy-sidecar")
    haproxy = next(found for found in pod["containers"] if found["name"] == "haproxy")
    assert "--workers /etc/proofgate-workers/workers.map" in " ".join(agent["command"])
    assert "addresses" in [mount["name"] for mount in agent["volumeMounts"]]
    assert "addresses" not in [mount["name"] for mount in haproxy["volumeMounts"]]
    [volume] = [found for found in pod["volumes"] if found["name"] == "addresses"]
    assert volume["configMap"] == {"name": "demo-addresses", "optional": True}
    assert pod["automountServiceAccountToken"] is False


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
        file = base64.b64decode(data[f"{tenant}.keys"]).decode()
        assert digest in [entry.partition(" ")[0] for entry in file.splitlines()]


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
    """The kubelet never updates files that are mounted by subPath."""
    pod = one("StatefulSet", "demo-worker")["spec"]["template"]["spec"]
    assert all("subPath" not in mount for mount in pod["containers"][0]["volumeMounts"])


def test_another_tenant_is_no_change_of_the_pods_template() -> None:
    alone = [{"name": "acme", "apiKeys": api_keys("acme-keys", "first")}]
    assert one("StatefulSet", "demo-worker", tenants=alone) == one("StatefulSet", "demo-worker")


def test_one_haproxy_has_no_disruption_budget() -> None:
    names = {(m["kind"], m["metadata"]["name"]) for m in manifests(loadBalancer={"replicas": 1})}
    assert ("PodDisruptionBudget", "demo-haproxy") not in names
    assert ("PodDisruptionBudget", "demo-worker") in names


@pytest.mark.parametrize(("replicas", "lines"), [(1, 8), (8, 8), (9, 16), (33, 64), (64, 64)])
def test_server_lines_are_declared_ahead_of_need(replicas: int, lines: int) -> None:
    assert haproxy.server_line_count(replicas) == lines


@pytest.mark.parametrize("response_seconds", [5, 300])
def test_a_worker_gives_up_before_haproxy_does(response_seconds: int) -> None:
    """Only the worker can record the reason why an exchange ended."""
    timeouts = {"upstreamConnectSeconds": 5, "upstreamResponseSeconds": response_seconds}
    text = one("ConfigMap", "demo-haproxy", timeouts=timeouts)["data"]["haproxy.cfg"]
    client_idle_seconds = 75  # a worker's default
    for side in ("client", "server"):
        [seconds] = re.findall(rf"^    timeout {side} (\d+)s$", text.split("frontend")[0], re.MULTILINE)
        assert int(seconds) > max(client_idle_seconds, 5 + response_seconds)


def test_haproxy_waits_for_all_providers_of_a_model_one_by_one() -> None:
    patient = {"connectSeconds": 10, "firstByteSeconds": 500}
    providers = [{**SPEC["providers"][0], "name": name} for name in ("first", "second")]
    providers[1]["timeouts"] = patient
    models = [{"name": "m", "provider": "first", "fallbacks": [{"provider": "second"}]}]
    tenants = [{**SPEC["tenants"][0], "models": ["m"]}]
    times = {"upstreamConnectSeconds": 5, "upstreamResponseSeconds": 60, "upstreamFirstByteSeconds": 100}
    text = one(
        "ConfigMap", "demo-haproxy", providers=providers, models=models, tenants=tenants, timeouts=times
    )["data"]["haproxy.cfg"]
    assert f"timeout server {15 + 5 + 100 + 10 + 500}s" in text


def test_workers_expect_the_proxy_header_that_haproxy_sends() -> None:
    worker = yaml.safe_load(one("ConfigMap", "demo-config")["data"]["gateway.yaml"])
    assert worker["proxyProtocol"] == {"routingKeyFile": "/etc/proofgate/routing.key"}
    assert "send-proxy-v2" in one("ConfigMap", "demo-haproxy")["data"]["haproxy.cfg"]


def test_haproxy_and_the_workers_share_a_key_that_stands_in_no_configmap() -> None:
    held = one("Secret", "demo-tenants")["data"]
    key = base64.b64decode(held["routing.key"]).decode()
    assert re.fullmatch("[0-9a-f]{32}", key)
    assert base64.b64decode(held["routing.map"]).decode() == f"routing-key {key}\n"
    assert not any(key in str(found) for found in manifests() if found["kind"] == "ConfigMap")


def test_traffic_may_come_from_anyone_until_the_spec_names_who() -> None:
    def traffic(**balancer: Any) -> Manifest:
        ingress = one("NetworkPolicy", "demo-haproxy", loadBalancer=balancer)["spec"]["ingress"]
        found: Manifest = ingress[0]
        return found

    port = [{"port": 8080, "protocol": "TCP"}]
    assert traffic() == {"ports": port}
    peers = [
        {"namespaceSelector": {"matchLabels": {"llm": "true"}}, "podSelector": {}},
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
    ]
    assert traffic(allowFrom=peers) == {"ports": port, "from": peers}


@pytest.mark.parametrize("tag", ["", ":0.1.0"])
def test_images_may_be_given_by_digest(tag: str) -> None:
    image = f"registry:5000/team/image{tag}@sha256:{'a' * 64}"
    [worker] = one("StatefulSet", "demo-worker", worker={"image": image})["spec"]["template"]["spec"][
        "containers"
    ]
    [balancer, _] = haproxy_pod(loadBalancer={"image": image})["containers"]
    assert worker["image"] == balancer["image"] == image
    for unfinished in (f"{image[:-40]}", f"{image}@sha256:{'b' * 64}", "image@"):
        with pytest.raises(ValidationError):
            gateway(worker={"image": unfinished})


def test_clients_inside_the_cluster_have_a_service_that_expects_no_proxy_header() -> None:
    assert not [found for found in manifests() if found["metadata"]["name"] == "demo-inside"]
    balancer: Manifest = {"acceptProxyProtocol": True, "service": {"type": "LoadBalancer", "port": 8443}}
    found = one("Service", "demo-inside", loadBalancer=balancer)["spec"]
    assert found["type"] == "ClusterIP"
    assert found["ports"] == [{"name": "http", "port": 8443, "targetPort": "inside", "protocol": "TCP"}]
    outside = one("Service", "demo", loadBalancer=balancer)["spec"]
    assert outside["selector"] == found["selector"] and outside["ports"][0]["targetPort"] == "http"
    [container, _] = haproxy_pod(loadBalancer=balancer)["containers"]
    assert {"name": "inside", "containerPort": 8081, "protocol": "TCP"} in container["ports"]
    text = haproxy_config(**balancer)
    assert "    bind :8080 accept-proxy\n    bind :8081\n" in text
    endpoint = services.endpoint(gateway(loadBalancer=balancer), "cluster.local")
    assert endpoint == "http://demo-inside.team.svc.cluster.local:8443/v1"


def test_who_may_come_from_inside_may_not_pretend_to_be_the_load_balancer() -> None:
    def ingress(**balancer: Any) -> list[Manifest]:
        balancer["acceptProxyProtocol"] = True
        found: list[Manifest] = one("NetworkPolicy", "demo-haproxy", loadBalancer=balancer)["spec"]["ingress"]
        return found[:2]

    outside, inside = ([{"port": number, "protocol": "TCP"}] for number in (8080, 8081))
    assert ingress() == [{"ports": outside}, {"ports": inside}]
    balancers, teams = (
        {"ipBlock": {"cidr": "10.0.0.0/8"}},
        {"namespaceSelector": {"matchLabels": {"llm": "true"}}},
    )
    assert ingress(allowFrom=[balancers]) == [
        {"ports": outside, "from": [balancers]},
        {"ports": inside, "from": [balancers]},
    ]
    assert ingress(allowFrom=[balancers], insideFrom=[teams]) == [
        {"ports": outside, "from": [balancers]},
        {"ports": inside, "from": [balancers, teams]},
    ]


def test_a_gateway_may_have_no_network_policies_of_ours() -> None:
    assert not [found for found in manifests(networkPolicies="None") if found["kind"] == "NetworkPolicy"]


def test_the_service_says_what_a_cloud_asks() -> None:
    wanted = {
        "type": "LoadBalancer",
        "annotations": {"example.com/scheme": "internal"},
        "loadBalancerClass": "example.com/nlb",
        "loadBalancerSourceRanges": ["192.0.2.0/24"],
        "externalTrafficPolicy": "Local",
        "ipFamilyPolicy": "PreferDualStack",
    }
    found = one("Service", "demo", loadBalancer={"service": wanted})
    asked = wanted.pop("annotations")
    assert isinstance(asked, dict) and asked.items() <= found["metadata"]["annotations"].items()
    assert wanted.items() <= found["spec"].items()


def test_a_stopping_haproxy_has_the_time_that_the_spec_gives_it() -> None:
    balancer = {"terminationGracePeriodSeconds": 90}
    pod = haproxy_pod(loadBalancer=balancer, timeouts={"connectionAgeSeconds": 30})
    assert pod["terminationGracePeriodSeconds"] == 90
    assert "    hard-stop-after 60s\n" in haproxy_config(**balancer)


def test_where_pods_have_addresses_of_ipv6_everything_listens_there_too() -> None:
    both = replace(DEFAULTS, ipv6=True)
    text = render_config(gateway(), both)
    assert "    bind :::8080 v4v6\n" in text and "    bind :::8404 v4v6\n" in text
    worker = worker_config(gateway(), 512 << 20, both)
    assert (worker["listen"], worker["admin"]["listen"]) == ("[::]:8080", "[::]:9090")
    [agent] = [
        found
        for found in deployment(gateway(), both, "digest")["spec"]["template"]["spec"]["containers"]
        if found["name"] == "haproxy-sidecar"
    ]
    assert agent["command"][-1] == "[::]:8405"


def test_scaling_within_the_declared_lines_changes_nothing_of_haproxy() -> None:
    def of_haproxy(replicas: int) -> list[Manifest]:
        return [m for m in manifests(replicas=replicas) if m["metadata"]["name"] == "demo-haproxy"]

    assert of_haproxy(2) == of_haproxy(3)


def test_every_object_is_in_the_gateways_namespace_and_labelled() -> None:
    for found in manifests():
        assert found["metadata"]["namespace"] == NAMESPACE
        assert found["metadata"]["labels"]["proofgate.dev/gateway"] == "demo"
        assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "proofgate-operator"


def haproxy_config(**balancer: Any) -> str:
    return config_of_haproxy(loadBalancer=balancer)


def config_of_haproxy(**changes: Any) -> str:
    text: str = one("ConfigMap", "demo-haproxy", **changes)["data"]["haproxy.cfg"]
    return text


def haproxy_pod(**changes: Any) -> Manifest:
    pod: Manifest = one("Deployment", "demo-haproxy", **changes)["spec"]["template"]["spec"]
    return pod


def test_all_haproxies_together_send_a_worker_no_more_connections_than_it_accepts() -> None:
    for limits in ({}, {"connections": 256}, {"connections": 65_536}):
        accepts = limits.get("connections", Limits().connections)
        for replicas in (1, 2, 3, 16):
            text = config_of_haproxy(loadBalancer={"replicas": replicas}, limits=limits)
            [most] = re.findall(r"default-server .* maxconn (\d+) ", text)
            assert accepts - replicas < int(most) * replicas <= accepts


def test_haproxy_lets_in_as_many_clients_as_before_for_each_connection_of_a_worker() -> None:
    def clients(**changes: Any) -> int:
        [found] = re.findall(r"frontend gateway\n.*?maxconn (\d+)\n", config_of_haproxy(**changes), re.DOTALL)
        return int(found)

    assert clients() == 8 * 512
    assert clients(limits={"connections": 16_384}) == 8 * 2048
    assert clients(limits={"connections": 256}) == 8 * 32


def test_haproxy_waits_no_shorter_than_a_worker_does() -> None:
    text = config_of_haproxy(timeouts={"clientHeadSeconds": 120, "clientIdleSeconds": 9000})
    assert "tcp-request inspect-delay 120s" in text
    assert "timeout client 9015s" in text and "timeout server 9015s" in text
    text = config_of_haproxy(timeouts={"clientBodySeconds": 40_000})
    assert "timeout client 40015s" in text and "timeout server 40015s" in text
    own = Timeouts()
    assert f"tcp-request inspect-delay {own.client_head_seconds:.0f}s" in config_of_haproxy()


@pytest.mark.parametrize(("head", "buffer"), [(1024, 32_768), (16_384, 32_768), (65_536, 131_072)])
def test_haproxy_has_the_largest_head_that_a_worker_takes_in_view_and_memory_for_it(
    head: int, buffer: int
) -> None:
    limits = {"headBytes": head}
    text = config_of_haproxy(limits=limits)
    assert f"tune.bufsize {buffer}\n" in text and f"{{ req.len gt {head} }}" in text
    [container] = [one for one in haproxy_pod(limits=limits)["containers"] if one["name"] == "haproxy"]
    memory = parse_quantity(container["resources"]["limits"]["memory"])
    assert memory is not None and memory >= 8 * 512 * (2 * buffer + (36 << 10))


def test_haproxys_socket_is_a_file_that_its_pod_alone_can_open() -> None:
    [socket] = re.findall(r"stats socket (.*)", haproxy_config())
    assert socket == "/run/proofgate-haproxy/admin.sock mode 600 level admin"
    mounts = [
        {mount["name"] for mount in container["volumeMounts"]} for container in haproxy_pod()["containers"]
    ]
    assert all("runtime" in found for found in mounts)
    [volume] = [volume for volume in haproxy_pod()["volumes"] if volume["name"] == "runtime"]
    assert set(volume) == {"name", "emptyDir"}


def test_a_key_or_a_placement_more_replaces_no_pod() -> None:
    placed = [{"name": "acme", "apiKeys": api_keys("acme-keys", "first"), "placement": 1}]
    assert haproxy_pod(tenants=placed) == haproxy_pod()
    maps = one("Secret", "demo-tenants", tenants=placed)["data"]
    assert base64.b64decode(maps["owners.map"]).decode() == "acme worker-1\n"


def test_haproxy_and_the_agent_know_the_files_by_the_same_paths() -> None:
    text = haproxy_config(tls={"certificateSecretRef": {"name": "demo-tls"}})
    [agent] = [
        found
        for found in haproxy_pod(loadBalancer={"tls": {"certificateSecretRef": {"name": "demo-tls"}}})[
            "containers"
        ]
        if found["name"] == "haproxy-sidecar"
    ]
    followed = [word for word in agent["command"] if word.startswith("/etc/")]
    assert followed == [
        "/etc/proofgate-tenants/tenants.map",
        "/etc/proofgate-tenants/owners.map",
        "/etc/proofgate-tenants/routing.map",
        "/etc/proofgate-tenants/weights.map",
        "/etc/proofgate-workers/workers.map",
        "/etc/proofgate-tls/tls.pem",
    ]
    agents = ("/etc/proofgate-tenants/weights.map", "/etc/proofgate-workers/workers.map")
    assert all((path in text) != (path in agents) for path in followed), (
        "HAProxy and the agent use separate files"
    )


def test_with_tls_the_service_is_https_on_its_own_port() -> None:
    def port(**balancer: Any) -> tuple[str, int]:
        [found] = one("Service", "demo", loadBalancer=balancer)["spec"]["ports"]
        return found["name"], found["port"]

    tls = {"certificateSecretRef": {"name": "demo-tls"}}
    assert port() == ("http", 80)
    assert port(tls=tls) == ("https", 443)
    assert port(tls=tls, service={"port": 8443}) == ("https", 8443)
    encrypted = gateway(loadBalancer={"tls": tls})
    assert services.endpoint(encrypted, "cluster.local") == "https://demo.team.svc.cluster.local/v1"
