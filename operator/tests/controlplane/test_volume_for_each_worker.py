"""A volume for each worker on a real API server and StatefulSet controller, without conflicting writes."""

from typing import Any

import pytest

from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for

pytestmark = pytest.mark.controlplane

GROWING_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "block"},
    "provisioner": "example.com/block",
    "allowVolumeExpansion": True,
}
CLAIMS = ["ledger-demo-worker-0", "ledger-demo-worker-1"]


def gateway(replicas: int = 2, **volume: Any) -> dict[str, Any]:
    own = {"mode": "PerWorker", "storageClassName": "block", "size": "1024Mi", **volume}
    return gateway_manifest(replicas=replicas, ledger={"volume": own})


def claims(namespace: Namespace) -> dict[str, dict[str, Any]]:
    return {claim["metadata"]["name"]: claim for claim in namespace.find("pvc")}


def sizes(namespace: Namespace) -> dict[str, str]:
    return {
        name: claim["spec"]["resources"]["requests"]["storage"] for name, claim in claims(namespace).items()
    }


def uids(namespace: Namespace) -> dict[str, str]:
    return {name: claim["metadata"]["uid"] for name, claim in claims(namespace).items()}


@pytest.fixture
def settled(namespace: Namespace) -> Namespace:
    """A namespace with a Ready gateway and two workers, each with its own volume."""
    namespace.plane.apply(GROWING_CLASS)
    namespace.give_secrets()
    namespace.start()
    namespace.apply(gateway())
    namespace.settle()
    return namespace


def test_each_worker_mounts_the_claim_that_the_operator_made_for_it(settled: Namespace) -> None:
    found = claims(settled)
    assert sorted(found) == CLAIMS
    for number, name in enumerate(CLAIMS):
        claim = found[name]
        assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
        assert "ownerReferences" not in claim["metadata"]
        assert "proofgate.dev/applied" in claim["metadata"]["annotations"]
        pod = settled.there("pod", f"demo-worker-{number}")
        mounted = {volume["name"]: volume.get("persistentVolumeClaim") for volume in pod["spec"]["volumes"]}
        assert mounted["ledger"] == {"claimName": name}
    assert settled.condition("StorageBound")[:2] == ("True", "Bound")


def test_a_settled_gateway_with_a_volume_for_each_worker_is_not_written_to(settled: Namespace) -> None:
    settled.rest()


def test_every_claim_grows_and_the_set_stays_as_it_was_made(settled: Namespace) -> None:
    settled.apply(gateway(size="2Gi"))
    wait_for(lambda: sizes(settled) == dict.fromkeys(CLAIMS, "2Gi"), "both claims ask for more")
    settled.settle()
    [template] = settled.there("statefulset", "demo-worker")["spec"]["volumeClaimTemplates"]
    assert template["spec"]["resources"]["requests"]["storage"] == "1Gi"
    # The StatefulSet can still be written, and a new worker's claim has the new size.
    settled.scale(3)
    settled.settle()
    assert sizes(settled) == dict.fromkeys([*CLAIMS, "ledger-demo-worker-2"], "2Gi")
    pod = settled.there("pod", "demo-worker-2")
    assert {"claimName": "ledger-demo-worker-2"} in [
        volume.get("persistentVolumeClaim") for volume in pod["spec"]["volumes"]
    ]


def test_a_worker_that_was_scaled_away_finds_its_claim_again(settled: Namespace) -> None:
    before = uids(settled)
    settled.scale(1)
    settled.settle()
    wait_for(lambda: settled.get("pod", "demo-worker-1") is None, "the worker has left")
    assert uids(settled) == before
    settled.scale(2)
    settled.settle()
    assert uids(settled) == before


def test_deleting_the_gateway_leaves_the_claims_of_all_workers_there_ever_were(settled: Namespace) -> None:
    settled.scale(1)
    settled.settle()
    settled.delete_gateway()
    left = {"secret/demo-ledger", *(f"persistentvolumeclaim/{name}" for name in CLAIMS)}
    wait_for(lambda: settled.objects() == left, "only the claims and their ledger's key are left")


def test_claims_that_are_not_retained_go_too(settled: Namespace) -> None:
    settled.apply(gateway(retainPolicy="Delete"))
    owned = [{"GovernanceGateway"}, {"GovernanceGateway"}]

    def owners() -> list[set[str]]:
        found = claims(settled).values()
        return [{owner["kind"] for owner in claim["metadata"].get("ownerReferences", [])} for claim in found]

    wait_for(lambda: owners() == owned, "the gateway owns its claims")
    settled.settle()
    settled.scale(1)
    settled.settle()
    settled.delete_gateway()
    wait_for(lambda: settled.objects() == set(), "no object is left")
