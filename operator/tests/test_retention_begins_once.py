"""A retention job over time: it starts its state once, even if the operator is killed at any point."""

import contextlib
import copy
from typing import Any

from tests.auditing import AUDITOR, Asked, reconcile_with
from tests.auditing import key_secret as auditors_secret
from tests.fake_cluster import FakeCluster, Killed
from tests.gateways import NAMESPACE
from tests.retention import KEEPING, State, key_secret
from tests.test_convergence import comparable, new_cluster
from tests.test_faults import mortal

JOB = ("CronJob", NAMESPACE, "demo-retention")
KNOWN = ("ConfigMap", NAMESPACE, "demo-retention")


def kept_cluster(**changes: Any) -> FakeCluster:
    found = new_cluster(keeping=KEEPING, **changes)
    found.put(key_secret())
    found.put(auditors_secret())
    return found


def settle_with(cluster: FakeCluster, state: State) -> None:
    """Reconcile while the retention job runs each night, until only the status is written."""
    quiet = 0
    for _ in range(100):
        written = len(cluster.writes)
        reconcile_with(cluster, Asked())
        cluster.run_controllers()
        give_pods_their_template(cluster)
        pod = state.run(cluster.objects.get(JOB))
        if pod is not None:
            for key in [key for key in cluster.objects if key[0] == "Pod" and "demo-retention" in key[2]]:
                del cluster.objects[key]
            cluster.put(pod)
        news = [write for write in cluster.writes[written:] if "status" not in write]
        quiet = quiet + 1 if not news else 0
        if quiet == 3:
            return
    raise AssertionError(f"no end: {cluster.writes[-10:]}")


def give_pods_their_template(cluster: FakeCluster) -> None:
    pod = cluster.objects.get(("Pod", NAMESPACE, "demo-auditor-0"))
    if pod is not None:
        made_of = cluster.find("StatefulSet", "demo-auditor")["spec"]["template"]
        pod["spec"] = copy.deepcopy(made_of["spec"])


def kept(cluster: FakeCluster) -> tuple[str, str]:
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    [found] = [condition for condition in conditions if condition["type"] == "Kept"]
    return found["status"], found["reason"]


def test_a_state_is_begun_once_and_one_that_is_lost_later_is_no_beginning() -> None:
    cluster, state = kept_cluster(auditor=AUDITOR), State()
    settle_with(cluster, state)
    assert (state.beginnings, kept(cluster)) == (1, ("True", "Kept"))
    state.holds = None
    for _ in range(3):
        cluster.put(state.run(cluster.find("CronJob", "demo-retention")) or {})
        reconcile_with(cluster, Asked())
    assert (state.beginnings, kept(cluster)) == (1, ("False", "StateLost"))


def without_chance(cluster: FakeCluster) -> dict[Any, Any]:
    """Return the objects without the ledger's key, which is random."""
    found = copy.deepcopy(comparable(cluster))
    job = found.pop(JOB)[0]["jobTemplate"]["spec"]["template"]
    command = job["spec"]["containers"][0]["command"]
    assert command[command.index("--ledger-key") + 1].startswith("proofgate.dev/team/demo+")
    return found | {JOB: job["metadata"]}


def test_killed_at_any_write_the_successor_goes_on_and_a_lost_state_is_no_beginning() -> None:
    begin = kept_cluster()
    reference = mortal(begin)
    settle_with(reference, State())
    assert len(reference.fatal()) > 20
    for count in reference.fatal():
        cluster, state = mortal(begin), State()
        cluster.requests_left = count
        with contextlib.suppress(Killed):
            settle_with(cluster, state)
        cluster.requests_left = None
        cluster.restart()
        begun = state.beginnings
        known = KNOWN in cluster.objects
        if known:
            state.holds = None
        settle_with(cluster, state)
        assert state.beginnings == (begun if known else 1), f"killed at request {count}"
        assert kept(cluster) == (("False", "StateLost") if known else ("True", "Kept")), f"request {count}"
        assert without_chance(cluster) == without_chance(reference), f"killed at request {count}"


def test_at_a_gateway_at_rest_a_run_writes_the_status_and_nothing_else() -> None:
    cluster, state = kept_cluster(), State()
    settle_with(cluster, state)
    written = len(cluster.writes)
    cluster.put(state.run(cluster.find("CronJob", "demo-retention")) or {})
    reconcile_with(cluster, Asked())
    reconcile_with(cluster, Asked())
    assert cluster.writes[written:] == ["PATCH GovernanceGateway demo/status"]
