"""Ready means that requests are answered; conditions report obstacles before the first request."""

import base64
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.plan.decide import decide
from proofgate_operator.plan.observed_state import ObservedState, Ref
from proofgate_operator.plan.pods import pod_trouble
from proofgate_operator.plan.shards import Shard
from tests.certificates import write_certificate
from tests.gateways import DEFAULTS, SPEC, secret
from tests.test_attached_tenants import World as AttachedWorld
from tests.test_attached_tenants import tenant
from tests.world import PROVIDER, Manifest, World

#: 27 November 2026.
NOW = 1_795_737_600.0
PRICE = {"model": "*", "effectiveFrom": "2026-01-01", "input": "1", "output": "2"}
BUDGET = {"dollarsPerDay": "25.5"}


def running(**changes: Any) -> World:
    """Return a gateway whose pods are all ready."""
    world = World(**changes)
    world.settle()
    for kind, name in (("StatefulSet", "demo-worker"), ("Deployment", "demo-haproxy")):
        ready = {"readyReplicas": 2, "replicas": 2, "updatedReplicas": 2, "observedGeneration": 1}
        world.child(kind, name)["status"] = ready
    world.child("PersistentVolumeClaim", "demo-wal")["status"] = {"phase": "Bound"}
    return world


def said(world: World, now: float = NOW) -> dict[str, tuple[str, str, str]]:
    """Return all conditions at a time: status, reason, message."""
    seen = ObservedState(world.children, world.secrets, tuple(world.pods), tuple(world.balancers), now=now)
    found = decide(world.gateway, seen, DEFAULTS).status.conditions
    return {str(one.type): (one.status.value, one.reason, one.message) for one in found}


def at(url: str, **more: Any) -> Manifest:
    return {"providers": [{**PROVIDER, "baseURL": url}], **more}


def test_a_gateway_with_nothing_against_it_is_ready() -> None:
    found = said(running())
    assert found["Ready"][:2] == ("True", "Ready") and found["ResolvedRefs"][0] == "True"


def shown(folder: Path, days: float) -> World:
    """Return a gateway whose HAProxy has a certificate that started a day ago and ends in `days` days."""
    write_certificate(folder / "tls", days=days)
    world = running(loadBalancer={"tls": {"certificateSecretRef": {"name": "demo-tls"}}})
    texts = {"tls.crt": (folder / "tls").read_text(), "tls.key": (folder / "tls.key").read_text()}
    found = secret("demo-tls")
    found["data"] = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    world.secrets["demo-tls"] = found
    return world


def test_a_certificate_that_has_ended_is_told_and_the_gateway_is_not_ready(tmp_path: Path) -> None:
    world = shown(tmp_path, days=9)
    now = time.time()
    assert said(world, now)["Ready"][0] == "True" and said(world, now)["ResolvedRefs"][0] == "True"
    soon = said(world, now + 8.5 * 86400)
    assert soon["Ready"][0] == "True" and soon["ResolvedRefs"][:2] == ("False", "CertificateExpires")
    over = said(world, now + 9 * 86400 + 1)
    for kind in ("Ready", "Available", "ResolvedRefs"):
        assert over[kind][:2] == ("False", "CertificateExpired"), kind
        assert "demo-tls" in over[kind][2]


def test_it_is_known_when_time_alone_changes_what_is_told(tmp_path: Path) -> None:
    world, now = shown(tmp_path, days=9), time.time()
    seen = ObservedState(world.children, world.secrets, tuple(world.pods), tuple(world.balancers), now=now)

    def due(at: float) -> float:
        return decide(world.gateway, replace(seen, now=at), DEFAULTS).due_at

    assert due(now) == pytest.approx(now + 8 * 86400, abs=60)
    assert due(now + 8.5 * 86400) == pytest.approx(now + 9 * 86400, abs=60)
    assert due(now + 10 * 86400) == math.inf
    world.manifest["spec"]["tenants"][0]["apiKeys"][0]["notAfter"] = "2030-01-01T00:00:00Z"
    assert due(now + 10 * 86400) == 1893456000.0


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "0.0.0.0", "224.0.0.1"),
        *(
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[::ffff:169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:a9fe:a9fe::]",
        ),
        *("metadata.google.internal", "METADATA.google.internal.", "255.255.255.255"),
    ],
)
def test_a_provider_at_an_address_of_the_machine_is_told_and_nobody_is_served(host: str) -> None:
    found = said(running(**at(f"http://{host}/v1")))
    assert found["ResolvedRefs"][:2] == ("False", "AddressForbidden")
    assert "spec.providers[openai].baseURL" in found["ResolvedRefs"][2]
    for kind in ("Ready", "Available"):
        assert found[kind][:2] == ("False", "AddressForbidden"), kind
        assert "no provider can be reached" in found[kind][2]


@pytest.mark.parametrize(
    ("url", "allow", "reason"),
    [
        ("https://10.0.0.1/v1", ["192.0.2.0/24"], "AddressNotAllowed"),
        ("https://10.0.0.1/v1", ["192.0.2.0/24", "10.0.0.0/8"], "Resolved"),
        ("https://[2001:db8::1]/v1", ["192.0.2.0/24"], "AddressNotAllowed"),
        ("https://169.254.1.1/v1", ["169.254.0.0/16"], "Resolved"),
        ("http://169.254.169.254/v1", ["192.0.2.0/24"], "AddressForbidden"),
        ("https://api.example.com/v1", ["192.0.2.0/24"], "Resolved"),
    ],
)
def test_an_address_outside_of_what_is_allowed_is_told(url: str, allow: list[str], reason: str) -> None:
    found = said(running(**at(url, egress={"allow": allow})))
    assert found["ResolvedRefs"][1] == reason
    assert found["Ready"][:2] == (("True", "Ready") if reason == "Resolved" else ("False", reason))
    if reason != "Resolved":
        assert "spec.egress.allow" in found["Ready"][2]


def test_one_provider_that_cannot_be_reached_costs_its_models_alone() -> None:
    other = {**PROVIDER, "name": "other", "baseURL": "http://169.254.169.254/v1"}
    found = said(running(providers=[PROVIDER, other]))
    assert found["ResolvedRefs"][1] == "AddressForbidden" and found["Ready"][0] == "True"


@pytest.mark.parametrize(
    ("host", "public"),
    [
        *[("api.example.com", True), ("8.8.8.8", True), ("[2606:4700::1]", True)],
        *[("mock-upstream", False), ("mock.team.svc", False), ("mock.team.svc.cluster.local", False)],
        *[("10.1.2.3", False), ("127.0.0.1", False), ("llm.corp.internal", False)],
    ],
)
def test_plain_http_to_the_outside_is_told_and_served(host: str, public: bool) -> None:
    found = said(running(**at(f"http://{host}/v1")))
    assert found["Ready"][0] == found["Available"][0] == "True"
    assert found["ResolvedRefs"][:2] == (("False", "PlainHTTP") if public else ("True", "Resolved"))


def keys(**ends: str | None) -> list[Manifest]:
    """Return tenants with one key each, which expires at the given time."""
    return [
        {
            "name": name,
            "apiKeys": [{"name": "ci", "sha256": f"{number}" * 64} | ({"notAfter": end} if end else {})],
        }
        for number, (name, end) in enumerate(ends.items())
    ]


def test_a_tenant_whose_keys_have_all_expired_is_told_and_the_others_are_served() -> None:
    found = said(running(tenants=keys(acme="2021-01-31T00:00:00Z", globex=None)))
    status, reason, message = found["ResolvedRefs"]
    assert (status, reason) == ("False", "KeysExpired") and "spec.tenants[acme]" in message
    assert "globex" not in message and found["Ready"][0] == "True"


def test_a_gateway_all_of_whose_keys_have_expired_is_not_ready_unless_others_may_come() -> None:
    expired = keys(acme="2021-01-31T00:00:00Z")
    found = said(running(tenants=expired))
    assert found["Ready"][:2] == found["Available"][:2] == ("False", "KeysExpired")
    assert said(running(tenants=expired, allowedTenants={}, plans=[{"name": "a"}]))["Ready"][0] == "True"
    assert said(running(tenants=expired), now=1_600_000_000.0)["Ready"][0] == "True"


def test_budgets_that_no_price_can_meet_serve_nobody() -> None:
    tenants = [{**one, "limits": BUDGET} for one in keys(acme=None)]
    found = said(running(tenants=tenants))
    assert found["Ready"][:2] == found["Available"][:2] == ("False", "PriceUnknown")
    assert "has no price" in found["ConfigValid"][2]
    assert said(running(tenants=tenants, prices=[PRICE]))["Ready"][0] == "True"
    assert said(running(tenants=tenants, defaultPrices=True))["Ready"][0] == "True"
    other = keys(acme=None, globex=None)[1]
    assert said(running(tenants=[*tenants, other]))["Ready"][0] == "True"
    one = {**PRICE, "model": "gpt-4o"}
    assert said(running(tenants=tenants, prices=[one]))["Ready"][0] == "True", (
        "one of the tenant's models has a price"
    )


@pytest.mark.parametrize(
    ("size", "capacity", "ready", "words"),
    [
        ("1", None, False, "40Mi"),
        ("39Mi", None, False, "144Mi"),
        ("100Mi", None, True, "some workers will refuse requests with ledger_full"),
        ("144Mi", None, True, "is bound"),
        ("1", "1Gi", True, "is bound"),
        ("1Gi", "1Mi", False, "VolumeTooSmall"),
    ],
)
def test_a_volume_without_room_for_a_log_is_told(
    size: str, capacity: str | None, ready: bool, words: str
) -> None:
    world = running(ledger={"volume": {"size": size}})
    if capacity:
        world.child("PersistentVolumeClaim", "demo-wal")["status"]["capacity"] = {"storage": capacity}
    found = said(world)
    assert (found["Ready"][0] == "True") is (found["Available"][0] == "True") is ready
    assert words in " ".join(found["StorageBound"])
    if not ready:
        assert found["Ready"][1] == "VolumeTooSmall"


def test_a_small_volume_keeps_no_roll_back_that_heals_it() -> None:
    world = running(ledger={"volume": {"size": "1"}})
    world.manifest["spec"]["ledger"]["volume"]["size"] = "1Gi"
    world.settle()
    claim = world.child("PersistentVolumeClaim", "demo-wal")
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"


def test_the_silent_gateway_is_told_in_all_its_points() -> None:
    provider = {
        **{"name": "mock", "type": "OpenAI", "baseURL": "http://169.254.169.254/v1"},
        "auth": {"type": "APIKey", "apiKeySecretRef": {"name": "mock-upstream-key", "key": "api-key"}},
    }
    secret_ref = {"name": "acme-keys", "key": "first"}
    key = {"name": "ci", "secretRef": secret_ref, "notAfter": "2021-01-31T00:00:00Z"}
    world = World(
        providers=[provider],
        egress={"allow": ["192.0.2.0/24"]},
        models=[{"name": "m", "provider": "mock"}],
        tenants=[{"name": "acme", "apiKeys": [key], "limits": BUDGET}],
        ledger={"volume": {**SPEC["ledger"]["volume"], "size": "1"}},
    )
    world.secrets["mock-upstream-key"] = secret("mock-upstream-key", api_key="sk-upstream-0123456789")
    world.settle()
    for kind, name in (("StatefulSet", "demo-worker"), ("Deployment", "demo-haproxy")):
        world.child(kind, name)["status"] = {"readyReplicas": 2, "replicas": 2, "updatedReplicas": 2}
    world.child("PersistentVolumeClaim", "demo-wal")["status"] = {"phase": "Bound"}
    found = said(world)
    assert found["Ready"][0] == found["Available"][0] == "False"
    assert "every key in spec.tenants[acme].apiKeys has expired" in found["ResolvedRefs"][2]
    assert "169.254.169.254 is a link-local address" in found["ResolvedRefs"][2]
    assert "is not in a range of spec.egress.allow" in found["ResolvedRefs"][2]
    assert "m has no price at provider mock" in found["ConfigValid"][2]
    assert found["StorageBound"][1] == "VolumeTooSmall"


def pod(*init: Manifest, main: Manifest | None = None) -> Manifest:
    waiting = {"waiting": {"reason": "PodInitializing"}}
    return {
        "metadata": {"name": "demo-worker-0"},
        "status": {
            "initContainerStatuses": list(init),
            "containerStatuses": [main or {"name": "worker", "state": waiting}],
        },
    }


def container(name: str, restarts: int = 0, **state: Any) -> Manifest:
    return {"name": name, "image": f"registry.example.com/{name}:1", "restartCount": restarts, "state": state}


PULL = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "registry.example.com/worker:1"'}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (pod(container("signer", 3, waiting={"reason": "CrashLoopBackOff"})), ("CrashLoopBackOff", "signer")),
        (
            pod(container("signer", 1, terminated={"exitCode": 3, "reason": "Error"})),
            ("signer", "exited with 3"),
        ),
        (pod(container("signer", waiting=PULL)), ("ImagePullBackOff", "registry.example.com/signer:1")),
        (pod(main=container("worker", waiting=PULL)), ("ImagePullBackOff", "registry.example.com/worker:1")),
        (
            pod(main=container("worker", waiting={"reason": "ErrImagePull"})),
            ("ErrImagePull", "registry.example.com/worker:1"),
        ),
    ],
)
def test_a_container_that_does_not_start_is_told_at_once(found: Manifest, words: tuple[str, ...]) -> None:
    told = pod_trouble(found)
    assert told is not None and all(word in told for word in words), told
    assert Shard(found).failed, "waiting cannot help"


@pytest.mark.parametrize(
    "found",
    [
        pod(container("done", 1, terminated={"exitCode": 0})),
        pod(container("sidecar", running={})),
        pod(container("signer", waiting={"reason": "PodInitializing"})),
        pod(container("slow", running={})),
    ],
)
def test_a_pod_that_only_starts_is_waited_for(found: Manifest) -> None:
    assert pod_trouble(found) == "demo-worker-0 waits: PodInitializing"
    assert not Shard(found).failed


def test_conditions_name_what_init_containers_wait_for() -> None:
    world = running()
    world.child("StatefulSet", "demo-worker")["status"]["readyReplicas"] = 0
    world.pods = [pod(container("signer", waiting=PULL))]
    status, reason, message = said(world)[ConditionType.WORKERS_AVAILABLE]
    assert (status, reason) == ("False", "WorkersMissing") and "registry.example.com/signer:1" in message


def test_a_gateway_tenant_whose_keys_have_all_expired_is_told_when_they_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = AttachedWorld()
    monkeypatch.setattr("time.time", lambda: NOW)
    soon = {"name": "soon", "sha256": "a" * 64, "notAfter": "2026-12-31T00:00:00Z"}
    later = {**soon, "name": "later", "sha256": "b" * 64, "notAfter": "2027-01-31T00:00:00Z"}
    found.cluster.put(tenant("blue", apiKeys=[soon, later]))
    found.settle()
    assert found.condition("blue", "KeysValid")[:2] == ("True", "Valid")
    monkeypatch.setattr("time.time", lambda: NOW + 100 * 86_400)
    found.resync()
    found.settle()
    status, reason, message = found.condition("blue", "Ready")
    assert (status, reason) == ("False", "KeysExpired") and "later" in message
    writes = len(found.cluster.writes)
    found.resync()
    found.settle()
    assert len(found.cluster.writes) == writes


def test_a_volume_that_is_too_small_is_told_before_its_claim_is_there() -> None:
    world = running(ledger={"volume": {"size": "1"}})
    del world.children[Ref("PersistentVolumeClaim", "demo-wal")]
    found = said(world)
    assert found["StorageBound"][:2] == found["Ready"][:2] == ("False", "VolumeTooSmall")
    assert "spec.ledger.volume.size" in found["Ready"][2]


@pytest.mark.parametrize(
    ("balancer", "field"),
    [
        ({"allowFrom": [{"ipBlock": {"cidr": "10.0.0.0/33"}}]}, "allowFrom: 10.0.0.0/33 is not a range"),
        ({"allowFrom": [{"ipBlock": {"cidr": "10.0.0/8"}}]}, "allowFrom: 10.0.0/8 is not a range"),
        (
            {"allowFrom": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["192.0.2.0/24"]}}]},
            "allowFrom: except 192.0.2.0/24 is not a part of 10.0.0.0/8",
        ),
        (
            {"allowFrom": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["fd00::/64"]}}]},
            "allowFrom: except fd00::/64 is not a part of 10.0.0.0/8",
        ),
        (
            {"service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["1.2.3.4/99"]}},
            "service.loadBalancerSourceRanges: 1.2.3.4/99 is not a range",
        ),
    ],
)
def test_a_range_that_is_none_is_told_and_no_haproxy_begins_without_it(
    balancer: Manifest, field: str
) -> None:
    world = World(loadBalancer=balancer)
    seen = ObservedState(world.children, world.secrets, (), (), now=NOW)
    found = decide(world.gateway, seen, DEFAULTS)
    condition = found.status.condition(ConditionType.CONFIG_VALID)
    assert condition.reason == "SpecInvalid" and f"spec.loadBalancer.{field}" in condition.message
    assert "Deployment" not in {made["kind"] for made in found.manifests_to_apply}


def test_a_range_with_bits_of_a_host_is_one_as_kubernetes_takes_it() -> None:
    peers = [{"ipBlock": {"cidr": "10.1.2.3/8", "except": ["10.9.9.9/16"]}}]
    assert said(running(loadBalancer={"allowFrom": peers}))["ConfigValid"][0] == "True"
