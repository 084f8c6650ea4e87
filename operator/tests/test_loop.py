"""A gateway's loop: no writes when settled, one reconcile per change, a pause after an error."""

import asyncio
import contextlib

import pytest

from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.handlers.loop import GatewayLoop
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.workers.reports import WorkerReports
from tests.fake_cluster import FakeCluster
from tests.gateways import NAMESPACE, UID, manifest, secret
from tests.operators import LOG, loop, operator
from tests.test_convergence import new_cluster


async def at_rest(cluster: FakeCluster, **environment: str) -> GatewayLoop:
    """Return a loop that has reconciled until nothing was left to do."""
    found = loop(operator(cluster, **environment))
    for _ in range(50):
        before = len(cluster.requests)
        await found.reconcile()
        cluster.run_controllers()
        if len(cluster.requests) == before:
            return found
    raise AssertionError(f"no rest: {cluster.requests[-10:]}")


async def requests_of(cluster: FakeCluster, found: GatewayLoop, times: int = 1) -> list[str]:
    before = len(cluster.requests)
    for _ in range(times):
        await found.reconcile()
    return cluster.requests[before:]


async def test_a_hundred_reconciles_of_a_settled_gateway_send_no_request() -> None:
    cluster = new_cluster()
    found = await at_rest(cluster)
    assert await requests_of(cluster, found, times=100) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"loadBalancer": {"replicas": 1}},
        {"paused": True},
        {"ledger": {"volume": {"existingClaim": "evidence"}, "signingKeySecretRef": {"name": "key"}}},
        {"ledger": {"volume": {"mode": "PerWorker"}}},
    ],
    ids=["without a budget", "paused", "with a claim of the user's", "with a volume for each worker"],
)
async def test_whatever_its_spec_a_settled_gateway_costs_nothing(changes: dict[str, object]) -> None:
    cluster = new_cluster(**changes)
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "evidence", "namespace": NAMESPACE}}
    cluster.put({**claim, "status": {"phase": "Bound"}})
    key = SigningKey("proofgate.dev/team/demo", bytes(32)).signing_text
    cluster.put(secret("key", signing_key=key))
    found = await at_rest(cluster)
    assert await requests_of(cluster, found, times=10) == []


async def test_the_echoes_of_the_last_reconcile_lead_to_no_write() -> None:
    cluster = new_cluster()
    await at_rest(cluster)
    before = list(cluster.writes)
    cluster.restart()
    await at_rest(cluster)
    assert cluster.writes == before


async def test_a_rotated_secret_is_read_once_and_then_nothing_is() -> None:
    cluster = new_cluster()
    found = await at_rest(cluster)
    cluster.put(secret("acme-keys", first="sk-test-acme-rotated-0123456789"))
    assert "GET Secret acme-keys" in await requests_of(cluster, found)
    for _ in range(5):
        cluster.run_controllers()
        await found.reconcile()
    assert await requests_of(cluster, found, times=10) == []


async def test_a_child_that_somebody_changed_is_set_right_by_one_write() -> None:
    cluster = new_cluster()
    found = await at_rest(cluster)
    cluster.find("Deployment", "demo-haproxy")["spec"]["replicas"] = 5
    sent = await requests_of(cluster, found, times=5)
    assert [text for text in sent if text.startswith("PATCH Deployment")] == ["PATCH Deployment demo-haproxy"]


async def test_a_child_that_lost_our_label_is_not_taken_for_absent() -> None:
    cluster = new_cluster()
    found = await at_rest(cluster)
    uid = cluster.find("Service", "demo")["metadata"]["uid"]
    del cluster.find("Service", "demo")["metadata"]["labels"]["app.kubernetes.io/managed-by"]
    for _ in range(5):
        await found.reconcile()
    live = cluster.find("Service", "demo")["metadata"]
    assert live["uid"] == uid and live["labels"]["app.kubernetes.io/managed-by"] == "proofgate-operator"


async def test_somebody_elses_object_is_seen_although_it_is_not_watched_and_never_written_to() -> None:
    cluster = new_cluster()
    theirs = {"kind": "Service", "metadata": {"name": "demo", "namespace": NAMESPACE}, "spec": {"own": 1}}
    cluster.put(theirs)
    found = loop(operator(cluster))
    for _ in range(5):
        await found.reconcile()
        cluster.run_controllers()
    assert cluster.find("Service", "demo")["spec"] == {"own": 1}
    assert not [text for text in cluster.writes if "StatefulSet" in text]


async def test_a_gateway_that_waits_is_reconciled_again_soon_and_then_ever_more_rarely() -> None:
    cluster = new_cluster()
    cluster.remove("Secret", "acme-keys")
    found = loop(operator(cluster, RECHECK_SECONDS="2", RESYNC_SECONDS="600"))
    pauses = [await found.reconcile() for _ in range(60)]
    waiting = [pause for pause in pauses if pause]
    assert waiting[0] == 2 and waiting[-1] == 15 and waiting == sorted(waiting)


async def test_a_reconcile_that_the_api_server_refuses_for_now_waits_as_long_as_it_says() -> None:
    cluster = new_cluster()
    found = loop(operator(cluster))
    cluster.faults = [ApiError(429, "TooManyRequests", "", 30.0)]
    assert await found.reconcile() >= 30


async def test_refusals_in_a_row_are_waited_for_ever_longer() -> None:
    cluster = new_cluster()
    found = loop(operator(cluster))
    pauses = []
    for _ in range(8):
        cluster.faults = [ApiError(500, "InternalError", "")]
        pauses.append(await found.reconcile())
    assert pauses[0] < 2 and pauses[-1] >= 15


async def test_an_overloaded_api_server_is_no_condition_of_the_gateway() -> None:
    cluster = new_cluster()
    cluster.refuse["Service"] = ApiError(429, "TooManyRequests", "", 1.0)
    found = loop(operator(cluster))
    for _ in range(5):
        await found.reconcile()
    assert "ApplyFailed" not in str(cluster.find("GovernanceGateway", "demo"))
    del cluster.refuse["Service"]
    await at_rest(cluster)


async def test_what_the_api_server_fails_to_write_again_and_again_is_told_and_keeps_nothing_else_back() -> (
    None
):
    cluster = new_cluster()
    cluster.refuse["Service"] = ApiError(500, "InternalError", "no addresses are left")
    found = loop(operator(cluster))
    for _ in range(8):
        await found.reconcile()
    gateway = cluster.find("GovernanceGateway", "demo")
    told = {condition["type"]: condition for condition in gateway["status"]["conditions"]}["Progressing"]
    assert (told["status"], told["reason"]) == ("False", "ApplyFailed")
    assert "Service demo: InternalError: no addresses are left" in told["message"]
    assert cluster.find("StatefulSet", "demo-worker")
    del cluster.refuse["Service"]
    await at_rest(cluster)
    assert "ApplyFailed" not in str(cluster.find("GovernanceGateway", "demo"))


async def test_a_gateway_that_is_gone_costs_nothing_and_leaves_nothing_behind() -> None:
    cluster = new_cluster()
    shared = operator(cluster)
    found = loop(shared)
    for _ in range(10):
        await found.reconcile()
        cluster.run_controllers()
    cluster.remove("GovernanceGateway", "demo")
    await found.reconcile()
    assert await requests_of(cluster, found, times=5) == []
    found.clean_up()
    assert shared.secret_references.gateways_of(NAMESPACE, "acme-keys") == []


async def test_a_paused_gateway_that_goes_on_is_repaired() -> None:
    cluster = new_cluster(paused=True)
    found = await at_rest(cluster)
    cluster.find("GovernanceGateway", "demo")["spec"] = manifest()["spec"]
    cluster.find("GovernanceGateway", "demo")["metadata"]["generation"] = 2
    await found.reconcile()
    assert cluster.find("Service", "demo")


async def test_a_loop_leaves_a_gateway_alone_that_was_made_anew_under_its_name() -> None:
    cluster = new_cluster()
    found = loop(operator(cluster), uid="of-the-deleted-one")
    for _ in range(3):
        await found.reconcile()
    assert cluster.requests == []


async def test_a_loop_ends_although_a_reconcile_swallowed_its_cancellation() -> None:
    class Swallowing(GatewayLoop):
        async def reconcile(self) -> float:
            with contextlib.suppress(asyncio.CancelledError):
                reconciling.set()
                await asyncio.Event().wait()
            return 600

    reconciling = asyncio.Event()
    stopped = False
    found = operator(new_cluster())
    running = asyncio.create_task(Swallowing(found, NAMESPACE, "demo", UID, LOG).run(lambda: stopped))
    await reconciling.wait()
    stopped = True
    running.cancel()
    await asyncio.wait_for(running, 60)


async def test_a_settled_gateway_is_looked_at_when_its_last_key_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = new_cluster()
    live = cluster.find("GovernanceGateway", "demo")
    for tenant in live["spec"]["tenants"]:
        tenant["apiKeys"] = [{**key, "notAfter": "2030-01-01T00:00:00Z"} for key in tenant["apiKeys"]]
    ends = 1893456000.0
    now = [ends - 2.5]
    monkeypatch.setattr(WorkerReports, "now", lambda _: now[0])
    found = await at_rest(cluster)
    assert 0 < await found.reconcile() <= 2.5
    monkeypatch.setattr(found, "_due", 0.0)
    now[0] = ends
    await found.reconcile()
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    told = {condition["type"]: condition["reason"] for condition in conditions}
    assert told["Ready"] == told["ResolvedRefs"] == "KeysExpired"
