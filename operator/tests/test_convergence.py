"""Any events in any order, and a kill at any point, lead to the same final state without further writes."""

import asyncio
import contextlib
import copy
import itertools
import logging
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proofgate_operator.build.naming import CONFIG_ANNOTATION
from proofgate_operator.handlers.apply_history import ApplyHistory
from proofgate_operator.handlers.reconcile import ReconcileResult, reconcile
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.workers.reports import WorkerReports
from tests.fake_cluster import FakeCluster, Key, Killed
from tests.gateways import DEFAULTS, NAMESPACE, UID, manifest, secret, user_secrets
from tests.properties import examples

LOG = logging.getLogger("test")
#: Each reconcile is later than the last by more than every waiting time.
CLOCK = itertools.count(1_900_000_000, 12)


class Running:
    """The memory of a running operator."""

    def __init__(self) -> None:
        self._now = 0.0
        self.workers = WorkerReports(clock=lambda: self._now, time_now=self._pass)

    def _pass(self) -> float:
        self._now = float(next(CLOCK))
        return self._now


def reconcile_once(
    cluster: FakeCluster, writes: ApplyHistory | None = None, running: Running | None = None
) -> ReconcileResult:
    """Reconcile as a new operator, or as one that is `running` or remembers its `writes`."""
    workers = (running or Running()).workers
    return asyncio.run(
        reconcile(cluster, NAMESPACE, "demo", UID, DEFAULTS, LOG, workers, writes or ApplyHistory())
    )


def settle(cluster: FakeCluster) -> None:
    """Reconcile repeatedly, as the loop does, until a reconcile writes nothing."""
    cluster.writes_left = None
    quiet, running = 0, Running()
    for _ in range(200):
        written = len(cluster.writes)
        reconcile_once(cluster, running=running)
        cluster.run_controllers()
        # Two quiet reconciles, because the controllers may have changed something after the first.
        quiet = quiet + 1 if len(cluster.writes) == written else 0
        if quiet == 2:
            return
    raise AssertionError(f"no end: {cluster.writes[-10:]}")


def new_cluster(**changes: Any) -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(manifest(**changes))
    for found in user_secrets().values():
        assert found
        cluster.put(found)
    return cluster


def comparable(cluster: FakeCluster) -> dict[Key, Any]:
    """Return the operator's objects without random values (keys and their digests), counters, and claims of
    workers that were scaled away."""
    random = {"demo-admin", "demo-ledger"}
    replicas = cluster.find("GovernanceGateway", "demo")["spec"]["replicas"]
    kept = {f"ledger-demo-worker-{number}" for number in range(replicas, 64)}
    result = {}
    for key, value in cluster.owned().items():
        if key[2] in kept:
            continue
        spec = value.get("spec", {})
        if "template" in spec:
            spec = {**spec, "template": spec["template"]["spec"]}
        data = {name: text for name, text in value.get("data", {}).items() if not name.startswith("routing.")}
        result[key] = (spec, value["metadata"]["labels"], None if key[2] in random else data)
    return result


def status(cluster: FakeCluster) -> dict[str, tuple[str, str]]:
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in conditions}


def test_a_new_gateway_becomes_ready() -> None:
    cluster = new_cluster()
    settle(cluster)
    assert status(cluster)["Ready"] == ("True", "Ready")
    assert status(cluster)["Progressing"] == ("False", "Settled")
    found = cluster.find("GovernanceGateway", "demo")["status"]
    assert found["replicas"] == found["readyReplicas"] == 2
    assert found["endpoint"] == "http://demo.team.svc.cluster.local/v1"
    assert found["ledger"]["verifyingKey"].startswith("proofgate.dev/team/demo+")


def test_a_settled_gateway_is_not_written_to() -> None:
    cluster = new_cluster()
    settle(cluster)
    before = list(cluster.writes)
    for _ in range(3):
        reconcile_once(cluster)
    assert cluster.writes == before


def test_killed_while_scaling_down_the_successor_goes_on_one_by_one() -> None:
    for count in range(6):
        cluster = new_cluster(replicas=5)
        settle(cluster)
        cluster.find("GovernanceGateway", "demo")["spec"]["replicas"] = 2
        seen = [5]

        def note(cluster: FakeCluster = cluster, seen: list[int] = seen) -> None:
            seen.append(cluster.find("StatefulSet", "demo-worker")["spec"]["replicas"])

        cluster.writes_left = count
        try:
            for _ in range(10):
                reconcile_once(cluster)
                note()
                cluster.run_controllers()
        except Killed:
            note()
        cluster.writes_left = None
        for _ in range(10):
            reconcile_once(cluster)
            note()
            cluster.run_controllers()
        steps = [before - after for before, after in itertools.pairwise(seen)]
        assert set(steps) <= {0, 1}
        assert seen[-1] == 2


def test_a_pod_that_only_looks_like_a_worker_stops_nothing_and_is_told() -> None:
    """A copy for debugging (`kubectl debug --copy-to`) has the workers' labels."""
    cluster = new_cluster()
    settle(cluster)
    made = copy.deepcopy(cluster.find("Pod", "demo-worker-0"))
    for name in ("demo-worker-0-debug", "demo-worker-7", "demo-worker-x"):
        cluster.put({**made, "metadata": {**made["metadata"], "name": name, "ownerReferences": []}})
    cluster.find("GovernanceGateway", "demo")["spec"]["replicas"] = 3
    reconcile_once(cluster)
    reconcile_once(cluster)
    assert cluster.find("StatefulSet", "demo-worker")["spec"]["replicas"] == 3
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    (message,) = [found["message"] for found in conditions if found["type"] == "WorkersAvailable"]
    assert "demo-worker-0-debug" in message and "demo-worker-7" in message
    assert status(cluster)["Progressing"][1] == "ScalingUp"


def test_a_refused_secret_is_told_and_the_rest_is_made() -> None:
    cluster = new_cluster()
    cluster.refuse["Secret"] = ApiError(403, "Forbidden", "exceeded quota: secrets")
    for _ in range(3):
        reconcile_once(cluster)
        cluster.run_controllers()
    assert status(cluster)["Progressing"] == ("False", "ApplyFailed")
    assert cluster.find("Service", "demo")
    cluster.refuse.clear()
    settle(cluster)
    assert status(cluster)["Ready"] == ("True", "Ready")


def test_a_missing_secret_heals_when_it_appears() -> None:
    cluster = new_cluster()
    cluster.remove("Secret", "acme-keys")
    settle(cluster)
    assert status(cluster)["ResolvedRefs"] == ("False", "SecretMissing")
    assert status(cluster)["Ready"] == ("True", "Ready"), "the other tenants are served"
    assert reconcile_once(cluster).settled, "a watch reports the Secret when it is created"
    cluster.put(user_secrets()["acme-keys"] or {})
    settle(cluster)
    assert status(cluster)["Ready"] == ("True", "Ready")


def test_a_refused_write_is_told_and_does_not_stop_the_others() -> None:
    cluster = new_cluster()
    cluster.refuse["PersistentVolumeClaim"] = ApiError(403, "Forbidden", "exceeded quota: storage")
    settle(cluster)
    assert status(cluster)["Progressing"] == ("False", "ApplyFailed")
    assert cluster.find("StatefulSet", "demo-worker")
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    message = next(item["message"] for item in conditions if item["type"] == "Progressing")
    assert message == "PersistentVolumeClaim demo-wal: Forbidden: exceeded quota: storage"


def test_a_refused_secret_is_not_quoted() -> None:
    cluster = new_cluster()
    settle(cluster)
    cluster.remove("Secret", "demo-tenants")
    cluster.refuse["Secret"] = ApiError(422, "Invalid", "data: sk-something-secret")
    reconcile_once(cluster)
    assert "sk-something-secret" not in str(cluster.find("GovernanceGateway", "demo")["status"])


def test_a_gateway_that_is_gone_or_going_is_left_alone() -> None:
    cluster = FakeCluster()
    assert not reconcile_once(cluster).exists
    going = manifest()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.put(going)
    assert not reconcile_once(cluster).exists
    assert cluster.writes == []


def test_a_transition_time_moves_only_with_the_status() -> None:
    cluster = new_cluster()
    settle(cluster)
    gateway = cluster.find("GovernanceGateway", "demo")
    for condition in gateway["status"]["conditions"]:
        condition["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    gateway["spec"]["paused"] = True
    gateway["metadata"]["generation"] = 2
    reconcile_once(cluster)
    for condition in cluster.find("GovernanceGateway", "demo")["status"]["conditions"]:
        assert condition["observedGeneration"] == 2
        assert condition["lastTransitionTime"] == "2020-01-01T00:00:00Z"


CHILDREN = st.sampled_from(
    [
        ("StatefulSet", "demo-worker"),
        ("Deployment", "demo-haproxy"),
        ("Service", "demo"),
        ("Service", "demo-workers"),
        ("ConfigMap", "demo-config"),
        ("ConfigMap", "demo-haproxy"),
        ("ConfigMap", "demo-addresses"),
        ("Secret", "demo-tenants"),
        ("Secret", "demo-admin"),
        ("PersistentVolumeClaim", "demo-wal"),
        ("PersistentVolumeClaim", "ledger-demo-worker-0"),
        ("PodDisruptionBudget", "demo-worker"),
    ]
)
SPOILT_FIELDS = {
    "StatefulSet": "revisionHistoryLimit",
    "Deployment": "replicas",
    "Service": "ports",
    "PodDisruptionBudget": "maxUnavailable",
}
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("delete"), CHILDREN),
        st.tuples(st.just("spoil"), CHILDREN),
        st.tuples(st.just("scale"), st.integers(1, 6)),
        st.tuples(st.just("balancers"), st.integers(1, 3)),
        st.tuples(st.just("pause"), st.booleans()),
        st.tuples(st.just("take secret"), st.sampled_from(["acme-keys", "openai"])),
        st.tuples(st.just("give secret"), st.sampled_from(["acme-keys", "openai"])),
        st.tuples(st.just("killed after"), st.integers(0, 6)),
        st.tuples(st.just("controllers"), st.none()),
        st.tuples(st.just("reconcile"), st.none()),
    ),
    max_size=12,
)


def happen(cluster: FakeCluster, what: str, value: Any) -> None:
    gateway = cluster.find("GovernanceGateway", "demo")
    if what == "delete":
        cluster.remove(*value)
    elif what == "spoil":
        live = cluster.objects.get((value[0], NAMESPACE, value[1]))
        if live:
            live["metadata"]["labels"]["app.kubernetes.io/name"] = "spoiled"
        if live and value[0] in SPOILT_FIELDS:
            live["spec"][SPOILT_FIELDS[value[0]]] = 99
    elif what == "scale":
        gateway["spec"]["replicas"] = value
    elif what == "balancers":
        gateway["spec"]["loadBalancer"] = {"replicas": value}
    elif what == "pause":
        gateway["spec"]["paused"] = value
    elif what == "take secret":
        cluster.remove("Secret", value)
    elif what == "give secret":
        cluster.put(user_secrets()[value] or {})
    elif what == "controllers":
        cluster.run_controllers()
    else:
        cluster.writes_left = value
        with contextlib.suppress(Killed):
            reconcile_once(cluster)
        cluster.writes_left = None


@examples(30)
@given(st.sampled_from(["Shared", "PerWorker"]), HAPPENINGS)
def test_any_order_of_events_ends_where_the_spec_says(
    volumes: str, happenings: list[tuple[str, Any]]
) -> None:
    cluster = new_cluster(ledger={"volume": {"mode": volumes}})
    for what, value in happenings:
        happen(cluster, what, value)
    gateway = cluster.find("GovernanceGateway", "demo")
    gateway["spec"]["paused"] = False
    for name in ("acme-keys", "openai"):
        happen(cluster, "give secret", name)
    settle(cluster)

    reference = new_cluster()
    reference.find("GovernanceGateway", "demo")["spec"] = gateway["spec"]
    settle(reference)

    ours, theirs = comparable(cluster), comparable(reference)
    for name in ("demo-admin", "demo-ledger"):
        # Generated once, whatever happened to the labels since, so only the existence is compared.
        ours.pop(("Secret", NAMESPACE, name)), theirs.pop(("Secret", NAMESPACE, name))
    assert ours == theirs
    assert status(cluster) == status(reference)


@examples(15)
@given(HAPPENINGS)
def test_the_signing_key_is_never_replaced_while_it_is_there(happenings: list[tuple[str, Any]]) -> None:
    cluster = new_cluster()
    settle(cluster)
    key = cluster.find("Secret", "demo-ledger")["data"]
    for what, value in happenings:
        happen(cluster, what, value)
    settle(cluster)
    assert cluster.find("Secret", "demo-ledger")["data"] == key


def test_a_rotated_key_reaches_the_workers_and_replaces_none() -> None:
    cluster = new_cluster()
    settle(cluster)
    workers = cluster.find("StatefulSet", "demo-worker")
    mark = cluster.find("Pod", "demo-worker-0")["metadata"]["annotations"][CONFIG_ANNOTATION]
    cluster.put(secret("acme-keys", first="sk-test-acme-rotated-0123456789"))
    settle(cluster)
    assert cluster.find("StatefulSet", "demo-worker") == workers
    for name in ("demo-worker-0", "demo-worker-1"):
        assert cluster.find("Pod", name)["metadata"]["annotations"][CONFIG_ANNOTATION] != mark


def test_a_pod_that_cannot_be_marked_is_told() -> None:
    cluster = new_cluster()
    settle(cluster)
    cluster.put(secret("acme-keys", first="sk-test-acme-rotated-0123456789"))
    cluster.refuse["Pod"] = ApiError(403, "Forbidden", "pods is forbidden")
    for _ in range(3):
        reconcile_once(cluster)
    assert status(cluster)["Progressing"] == ("False", "ApplyFailed")


def test_a_spec_that_cannot_be_read_is_a_condition_and_changes_nothing() -> None:
    """The CRD of another version may accept a spec that this operator does not know."""
    cluster = new_cluster()
    settle(cluster)
    before = list(cluster.writes)
    gateway = cluster.find("GovernanceGateway", "demo")
    gateway["spec"]["providers"][0]["type"] = "anthropic"
    outcome = reconcile_once(cluster)
    assert outcome.exists and not outcome.changed
    assert cluster.writes == [*before, "PATCH GovernanceGateway demo/status"]
    assert status(cluster)["ConfigValid"] == status(cluster)["Ready"] == ("False", "SpecInvalid")
    assert status(cluster)["WorkersAvailable"][0] == "True"
    reconcile_once(cluster)
    assert len(cluster.writes) == len(before) + 1
    gateway["spec"]["providers"][0]["type"] = "OpenAI"
    settle(cluster)
    assert status(cluster)["Ready"] == ("True", "Ready")
