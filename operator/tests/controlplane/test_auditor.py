"""An auditor on a real API server and StatefulSet controller, with the chart's permissions."""

import pytest

from tests.auditing import AUDITOR, KEY, POLICY, WITNESSED
from tests.controlplane.api import secret
from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for
from tests.controlplane.test_operator import MADE, without_pods

pytestmark = pytest.mark.controlplane

MADE_FOR_IT = {
    "networkpolicy.networking.k8s.io/demo-auditor",
    "persistentvolumeclaim/demo-auditor",
    "service/demo-auditor",
    "serviceaccount/demo-auditor",
    "statefulset.apps/demo-auditor",
}


@pytest.fixture
def audited(namespace: Namespace) -> Namespace:
    """A namespace with a Ready gateway and an auditor whose pod never runs."""
    namespace.give_secrets()
    namespace.apply(secret("auditor-key", signing_key=KEY.signing_text))
    namespace.start()
    namespace.apply(gateway_manifest(auditor=AUDITOR))
    namespace.settle()
    return namespace


def has_pod(namespace: Namespace) -> bool:
    return "pod/demo-auditor-0" in namespace.objects()


def test_an_auditor_comes_beside_the_gateway_and_is_not_written_to_again(audited: Namespace) -> None:
    wait_for(lambda: has_pod(audited), "the auditor has its pod")
    assert without_pods(audited.objects()) == MADE | MADE_FOR_IT
    assert audited.there("pod", "demo-auditor-0")["status"]["qosClass"] == "Guaranteed"
    # The auditor's pod has no address, so the operator cannot reach it.
    audited.wait_condition("Audited", "Unknown", "AuditorUnreachable")
    audited.rest()
    assert audited.operator
    log = audited.operator.log.read_text()
    assert "orbidden" not in log and "reconcile failed" not in log
    assert KEY.signing_text.split("+", 4)[4] not in log


def test_one_that_is_not_wanted_any_more_is_stopped_and_comes_back(audited: Namespace) -> None:
    wait_for(lambda: has_pod(audited), "the auditor has its pod")
    audited.patch("ggw", "demo", {"spec": {"auditor": {"enabled": False}}})
    audited.delete("pod", "demo-auditor-0", grace=0)

    def asked() -> int:
        return int(audited.there("statefulset", "demo-auditor")["spec"]["replicas"])

    wait_for(lambda: asked() == 0, "no auditor replica is wanted")
    wait_for(lambda: audited.condition("Audited") == ("", "", ""), "the condition Audited is removed")
    assert "persistentvolumeclaim/demo-auditor" in audited.objects()
    audited.patch("ggw", "demo", {"spec": {"auditor": {"enabled": True}}})
    wait_for(lambda: asked() == 1 and has_pod(audited), "the auditor is restored")


def policy_of(namespace: Namespace) -> str:
    found = namespace.there("statefulset", "demo-auditor")
    annotations = found["spec"]["template"]["metadata"]["annotations"]
    return str(annotations.get("proofgate.dev/witness-policy", ""))


def test_witnesses_come_with_their_policy_are_settled_and_a_broken_policy_changes_nothing(
    audited: Namespace,
) -> None:
    audited.apply(gateway_manifest(auditor=WITNESSED))
    wait_for(lambda: policy_of(audited) == POLICY, "the pod's template has the policy")
    egress = audited.there("networkpolicy", "demo-auditor")["spec"]["egress"]
    assert [rule["port"] for rule in egress[1]["ports"]] == [443, 8443]
    wait_for(lambda: audited.condition("Progressing")[1] == "Settled", "the gateway is settled")
    audited.rest()
    audited.apply(gateway_manifest(auditor={**AUDITOR, "witnesses": {"policy": "quorum both\n"}}))
    told = audited.wait_condition("Audited", "False", "WitnessPolicyInvalid")
    assert told == "spec.auditor.witnesses.policy: line 1: no line above defines both"
    assert policy_of(audited) == POLICY and audited.condition("Ready")[0] == "True"
    audited.apply(gateway_manifest(auditor=AUDITOR))
    wait_for(lambda: policy_of(audited) == "", "the witness policy is removed")
    assert "egress" not in audited.there("networkpolicy", "demo-auditor")["spec"]


def test_without_network_policies_its_own_goes_as_well(audited: Namespace) -> None:
    policies = {"networkPolicies": "None"}
    audited.apply(gateway_manifest(auditor=AUDITOR, **policies))
    kept = MADE | MADE_FOR_IT
    without = {name for name in kept if not name.startswith("networkpolicy")}
    wait_for(lambda: without_pods(audited.objects()) == without, "the network policies are removed")
