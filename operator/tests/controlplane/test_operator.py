"""The operator's process on a real API server, with exactly the chart's permissions."""

import itertools
import signal
from typing import Any

import pytest
from e2e.programs import Program

from proofgate_operator.build.naming import CONFIG_ANNOTATION
from tests.controlplane.api import Manifest, path_of, secret
from tests.controlplane.namespaces import ACCOUNT, Namespace, gateway_manifest, somebody_elses_service
from tests.controlplane.server import wait_for

pytestmark = pytest.mark.controlplane

OPENAI = {"name": "openai", "type": "OpenAI"}

MADE = {
    "configmap/demo-addresses",
    "configmap/demo-config",
    "configmap/demo-haproxy",
    "deployment.apps/demo-haproxy",
    "networkpolicy.networking.k8s.io/demo-haproxy",
    "networkpolicy.networking.k8s.io/demo-worker",
    "persistentvolumeclaim/demo-wal",
    "poddisruptionbudget.policy/demo-haproxy",
    "poddisruptionbudget.policy/demo-worker",
    "secret/demo-admin",
    "secret/demo-ledger",
    "secret/demo-tenants",
    "service/demo",
    "service/demo-workers",
    "serviceaccount/demo-haproxy",
    "serviceaccount/demo-worker",
    "statefulset.apps/demo-worker",
}


@pytest.fixture
def settled(namespace: Namespace) -> Namespace:
    """A namespace with a Ready gateway."""
    namespace.give_secrets()
    namespace.start()
    namespace.apply(gateway_manifest())
    namespace.settle()
    return namespace


def without_pods(objects: set[str]) -> set[str]:
    return {name for name in objects if not name.startswith("pod/")}


def test_a_gateway_becomes_ready_in_a_restricted_namespace(settled: Namespace) -> None:
    assert without_pods(settled.objects()) == MADE
    gateway = settled.there("ggw", "demo")
    status = gateway["status"]
    assert (status["replicas"], status["readyReplicas"]) == (2, 2)
    assert status["observedGeneration"] == gateway["metadata"]["generation"]
    assert status["endpoint"] == f"http://demo.{settled.name}.svc.cluster.local/v1"
    assert status["ledger"]["verifyingKey"].startswith(f"proofgate.dev/{settled.name}/demo+")
    assert settled.condition("CPUPinned")[0] == "Unknown"
    row = settled.kubectl("get", "ggw", "demo", "--no-headers").split()
    assert row[:3] == ["demo", "2", "2"], "wanted and actual replicas"
    assert settled.names("pod", status["selector"]) == ["demo-worker-0", "demo-worker-1"]
    assert settled.there("pod", "demo-worker-0")["status"]["qosClass"] == "Guaranteed"


def test_nothing_it_does_is_forbidden_and_no_key_is_logged(settled: Namespace) -> None:
    assert settled.operator
    log = settled.operator.log.read_text()
    assert "orbidden" not in log and "reconcile failed" not in log
    # Names of pods and tasks may end with "sk-", so the text searched for is longer.
    assert "sk-test-" not in log and "sk-upstream-" not in log


def test_a_settled_gateway_is_not_written_to(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.start(RESYNC_SECONDS="1")
    namespace.apply(gateway_manifest())
    namespace.settle()
    # Only the resync interval triggers these reconciles.
    namespace.rest(lambda: namespace.reconciled(namespace.reconciles()))


def test_a_missing_secret_costs_its_owner_alone_and_heals(namespace: Namespace) -> None:
    namespace.give_secrets("globex-keys", "openai")
    namespace.start()
    namespace.apply(gateway_manifest())
    message = namespace.wait_condition("ResolvedRefs", "False", "SecretMissing")
    assert "Secret acme-keys" in message and "spec.tenants[acme].apiKeys[first].secretRef" in message
    assert namespace.condition("ConfigValid")[0] == "True"
    wait_for(lambda: namespace.get("statefulset", "demo-worker"), "the others' workers are made")
    namespace.wait_event("SecretMissing")
    namespace.give_secrets("acme-keys")
    namespace.wait_condition("ResolvedRefs", "True", "Resolved")
    namespace.settle()


def test_a_deleted_child_comes_back_because_it_went(settled: Namespace) -> None:
    """The operator recreates it long before the next resync."""
    children = {
        "statefulset": "demo-worker",
        "deployment": "demo-haproxy",
        "service": "demo",
        "configmap": "demo-config",
        "secret": "demo-tenants",
        "poddisruptionbudget": "demo-worker",
        "networkpolicy": "demo-worker",
    }
    before = {kind: settled.there(kind, name)["metadata"]["uid"] for kind, name in children.items()}
    for kind, name in children.items():
        settled.delete(kind, name)

        def is_back(kind: str = kind, name: str = name) -> bool:
            now = settled.get(kind, name)
            return now is not None and now["metadata"]["uid"] != before[kind]

        wait_for(is_back, f"{kind} {name} is back")


def test_a_changed_child_is_set_right(settled: Namespace) -> None:
    settled.patch("deployment", "demo-haproxy", {"spec": {"replicas": 5}}, "scale")
    wait_for(
        lambda: settled.there("deployment", "demo-haproxy")["spec"]["replicas"] == 2, "two HAProxy replicas"
    )


def test_kubectl_scale_adds_at_once_and_removes_one_by_one(settled: Namespace) -> None:
    settled.kubectl("scale", "ggw/demo", "--replicas=5")
    settled.settle()
    assert settled.there("ggw", "demo")["status"]["replicas"] == 5
    balancer = generation(settled, "deployment", "demo-haproxy")
    settled.kubectl("scale", "ggw/demo", "--replicas=2")
    settled.settle()
    assert generation(settled, "statefulset", "demo-worker") >= 1 + 1 + 3, (
        "one write adds workers, three remove them"
    )
    pods = settled.names("pod", "app.kubernetes.io/component=worker")
    assert pods == ["demo-worker-0", "demo-worker-1"]
    assert generation(settled, "deployment", "demo-haproxy") == balancer, "HAProxy had no rollout"


def test_the_scale_subresource_has_what_an_autoscaler_needs(settled: Namespace) -> None:
    path = path_of("ggw", "demo", settled.name, "scale")
    scale = settled.plane.api.request("GET", path)
    assert scale["spec"]["replicas"] == 2
    assert scale["status"]["replicas"] == 2
    assert scale["status"]["selector"] == (
        "app.kubernetes.io/component=worker,app.kubernetes.io/name=proofgate,proofgate.dev/gateway=demo"
    )


def marks(namespace: Namespace) -> set[str]:
    """Return the configuration marks of the workers' pods; one value if all have the same configuration."""
    pods = namespace.find("pod", "app.kubernetes.io/component=worker")
    return {(pod["metadata"].get("annotations") or {}).get(CONFIG_ANNOTATION, "") for pod in pods}


def generation(namespace: Namespace, kind: str, name: str) -> int:
    number: int = namespace.there(kind, name)["metadata"]["generation"]
    return number


@pytest.fixture
def unhurried(namespace: Namespace) -> Namespace:
    """A namespace with a settled gateway, whose operator does not resync during the test."""
    namespace.give_secrets()
    namespace.start(RESYNC_SECONDS="3600")
    namespace.apply(gateway_manifest())
    namespace.settle()
    wait_for(
        lambda: len(marks(namespace)) == 1 and "" not in marks(namespace),
        "every pod has its configuration mark",
    )
    return namespace


@pytest.mark.parametrize(
    "rotated",
    [
        secret("acme-keys", first="sk-test-acme-rotated-0123456789"),
        secret("openai", api_key="sk-upstream-rotated-0123456789"),
    ],
    ids=["tenant", "provider"],
)
def test_a_rotated_key_is_seen_and_rolls_nothing(unhurried: Namespace, rotated: Manifest) -> None:
    workers = generation(unhurried, "statefulset", "demo-worker")
    balancers = generation(unhurried, "deployment", "demo-haproxy")
    before = marks(unhurried)
    unhurried.apply(rotated)

    def is_marked_anew() -> bool:
        found = marks(unhurried)
        return len(found) == 1 and found != before

    wait_for(is_marked_anew, "every pod is marked with the new key's configuration")
    assert generation(unhurried, "statefulset", "demo-worker") == workers
    assert generation(unhurried, "deployment", "demo-haproxy") == balancers


def test_a_secret_that_no_gateway_names_wakes_nobody(unhurried: Namespace) -> None:
    passwords = itertools.count()

    def change_and_reconcile() -> None:
        unhurried.apply(secret("somebody-elses", password=f"hunter{next(passwords)}"))
        # The operator receives changes of Secrets in order, so this reconcile comes after the first change.
        unhurried.reconcile()

    unhurried.rest(change_and_reconcile)


@pytest.mark.parametrize(
    ("changes", "reason", "named"),
    [
        ({"providers": [{**OPENAI, "baseURL": "https://10.0.0"}]}, "SpecInvalid", "spec.providers[openai]"),
        (
            {"policy": {"actions": [{"rules": ["no-such"], "action": "Ignore"}]}},
            "PolicyInvalid",
            "spec.policy.actions",
        ),
    ],
)
def test_what_no_schema_tells_is_a_condition_and_starts_no_worker(
    namespace: Namespace, changes: dict[str, Any], reason: str, named: str
) -> None:
    namespace.give_secrets()
    namespace.start()
    namespace.apply(gateway_manifest(**changes))
    assert namespace.wait_condition("ConfigValid", "False", reason).startswith(named)
    assert namespace.get("statefulset", "demo-worker") is None


def test_the_operator_killed_again_and_again_finishes_its_work(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.apply(gateway_manifest())
    # A gateway has more objects than these runs write in total.
    for writes in (1, 2, 3, 4):
        goal = len(namespace.writes()) + writes
        operator = namespace.start()

        def is_under_way(goal: int = goal) -> bool:
            # On a slow machine, the operator may already have written everything.
            return len(namespace.writes()) >= goal or without_pods(namespace.objects()) == MADE

        wait_for(is_under_way, f"{writes} writes", every=0.002)
        operator.stop(signal.SIGKILL)
    namespace.start()
    namespace.settle()
    assert without_pods(namespace.objects()) == MADE


def replica(namespace: Namespace, name: str, **settings: str) -> Program:
    """Start one of several operators with leader election."""
    lease = {"LEASE_NAME": ACCOUNT, "LEASE_NAMESPACE": namespace.name}
    return namespace.start(LEADER_ELECTION="true", POD_NAME=name, **{**lease, **settings})


def holder(namespace: Namespace) -> str:
    """Return the pod that holds the Lease; empty if no pod holds it."""
    lease = namespace.get("lease", ACCOUNT) or {"spec": {}}
    return str(lease["spec"].get("holderIdentity", "")).split("_")[0]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stop", "kill"])
def test_of_two_operators_one_acts_and_the_other_follows(namespace: Namespace, end: signal.Signals) -> None:
    namespace.give_secrets()
    first = replica(namespace, "first")
    wait_for(lambda: holder(namespace) == "first", "the first operator acts")
    second = replica(namespace, "second")
    namespace.apply(gateway_manifest())
    namespace.settle()
    assert holder(namespace) == "first" and second.process.poll() is None
    first.stop(end)
    namespace.delete("service", "demo")
    wait_for(lambda: holder(namespace) == "second", "the second operator acts")
    wait_for(lambda: namespace.get("service", "demo"), "the Service is back")


def test_of_two_releases_that_serve_one_namespace_one_does_nothing_and_says_so(namespace: Namespace) -> None:
    namespace.give_secrets()
    replica(namespace, "first")
    wait_for(lambda: holder(namespace) == "first", "the first release acts")
    namespace.apply(gateway_manifest())
    namespace.settle()
    # Another release has its own Lease and other images.
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace.name}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace.name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [account],
    }
    namespace.plane.apply(binding)
    second = replica(namespace, "second", LEASE_NAME="another", WORKER_IMAGE="worker:another")
    namespace.wait_event("ServedByAnother")
    wait_for(lambda: namespace.reconciles() >= 3, "the second release reconciles repeatedly")
    assert namespace.writes_of_the_last() == 0
    assert "is served by release" in second.printed


def test_an_operator_that_lost_its_lease_ends(namespace: Namespace) -> None:
    process = replica(namespace, "first")
    wait_for(lambda: holder(namespace) == "first", "the operator acts")
    namespace.patch("lease", ACCOUNT, {"spec": {"holderIdentity": "somebody-else"}})
    wait_for(lambda: process.process.poll() is not None, "the operator has ended")
    assert process.process.returncode == 1
    assert holder(namespace) == "somebody-else"


def test_deleting_the_gateway_leaves_nothing_but_the_evidence_and_its_key(settled: Namespace) -> None:
    settled.delete_gateway()
    kept = {"persistentvolumeclaim/demo-wal", "secret/demo-ledger"}
    wait_for(lambda: settled.objects() == kept, "only the claim and the key are left")


def test_a_volume_that_is_not_retained_goes_too(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.start()
    volume = {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": "Delete"}
    namespace.apply(gateway_manifest(ledger={"volume": volume}))
    namespace.settle()
    namespace.delete_gateway()
    wait_for(lambda: namespace.objects() == set(), "no object is left")


def test_a_gateway_goes_also_while_no_operator_is_there(settled: Namespace) -> None:
    assert settled.operator
    settled.operator.stop(signal.SIGKILL)
    settled.delete_gateway()
    kept = {"persistentvolumeclaim/demo-wal", "secret/demo-ledger"}
    wait_for(lambda: without_pods(settled.objects()) == kept, "only the evidence and its key are left")


def test_the_namespace_of_operator_and_gateway_goes_within_a_minute(settled: Namespace) -> None:
    """Kubernetes deletes grants and gateway in any order, and the operator must not block the deletion."""
    settled.plane.api.delete("namespace", settled.name)
    wait_for(lambda: settled.plane.get("namespace", settled.name) is None, "the namespace is gone")


def test_a_namespace_that_is_gone_keeps_the_operator_from_no_other(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.start(WATCH_NAMESPACES=f"gone-long-ago,{namespace.name}")
    namespace.apply(gateway_manifest())
    namespace.settle()
    namespace.delete_gateway()
    wait_for(lambda: namespace.get("statefulset", "demo-worker") is None, "the gateway's objects are gone")


def test_a_gateway_made_again_takes_its_volume_and_its_key_up(settled: Namespace) -> None:
    before = {
        kind: settled.get(kind, name) for kind, name in (("pvc", "demo-wal"), ("secret", "demo-ledger"))
    }
    settled.delete_gateway()
    settled.apply(gateway_manifest())
    settled.settle()
    for kind, found in before.items():
        assert found
        again = settled.get(kind, found["metadata"]["name"])
        assert again and again["metadata"]["uid"] == found["metadata"]["uid"]


def test_what_the_api_server_leaves_out_is_no_drift(namespace: Namespace) -> None:
    """The operator once rewrote a field with its zero value (`omitempty`) at every reconcile."""
    mounts = [{"name": "ca", "mountPath": "/ca", "readOnly": False}]
    template = {"volumes": [{"name": "ca", "emptyDir": {}}], "volumeMounts": mounts}
    namespace.give_secrets()
    namespace.start()
    namespace.apply(gateway_manifest(worker={"podTemplate": template}))
    namespace.settle()
    namespace.rest()
    assert namespace.condition("Progressing")[:2] == ("False", "Settled")


def test_somebody_elses_object_is_not_taken(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.apply(somebody_elses_service("demo"))
    namespace.start()
    namespace.apply(gateway_manifest())
    message = namespace.wait_condition("ConfigValid", "False", "NameTaken")
    assert message.startswith("Service demo:")
    assert "ownerReferences" not in namespace.there("service", "demo")["metadata"]
    namespace.delete("service", "demo")
    namespace.settle()
