"""Before the operator removes a worker, it reads the remaining workers from the API server."""

from dataclasses import replace
from typing import Any

import pytest

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.handlers.worker_lifecycle import retire_and_replace_workers
from proofgate_operator.kube.failed_reads import FailedReads
from proofgate_operator.observe import observe
from proofgate_operator.plan.decide import decide
from proofgate_operator.workers.admin_port import AdminPort
from tests.fake_cluster import FakeCluster
from tests.gateways import DEFAULTS
from tests.test_convergence import new_cluster, settle

Manifest = dict[str, Any]


def breaks(cluster: FakeCluster) -> None:
    cluster.find("Pod", "demo-worker-1")["status"]["conditions"][0]["status"] = "False"


def goes(cluster: FakeCluster) -> None:
    cluster.remove("Pod", "demo-worker-1")


@pytest.fixture
def cluster() -> FakeCluster:
    found = new_cluster()
    settle(found)
    return found


async def replaced(cluster: FakeCluster) -> bool:
    """Replace the first worker based on the store; return whether its pod is deleted."""
    live = cluster.find("GovernanceGateway", "demo")
    gateway = Gateway.from_manifest(live)
    seen = await observe(cluster, gateway, live, FailedReads())
    pod = next(pod for pod in seen.worker_pods if pod["metadata"]["name"] == "demo-worker-0")
    plan = replace(decide(gateway, seen, DEFAULTS), pods_to_replace=(pod,))
    assert await retire_and_replace_workers(cluster, AdminPort(), gateway, seen, plan, lambda *_: None) == []
    return ("Pod", "team", "demo-worker-0") not in cluster.objects


async def test_a_worker_is_replaced_while_the_others_are_ready(cluster: FakeCluster) -> None:
    assert await replaced(cluster)


@pytest.mark.parametrize("happen", [breaks, goes])
async def test_nobody_is_replaced_while_another_one_has_gone_without_a_word(
    cluster: FakeCluster, happen: Any
) -> None:
    cluster.stale = True
    happen(cluster)
    assert not await replaced(cluster)
