"""Removed and restored grants on a real API server: keys stay, a condition reports it, it recovers."""

import json
import signal
from collections.abc import Iterator

import pytest

from tests.controlplane.api import Manifest, secret
from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import ControlPlane, wait_for
from tests.controlplane.test_attached_tenants import GOLD, shards

pytestmark = pytest.mark.controlplane

ALL = {"namespaces": {"from": "All"}}
ROLE = "proofgate-proofgate-operator"


def tenant(name: str, gateway: str) -> Manifest:
    return {
        "apiVersion": "proofgate.dev/v1alpha1",
        "kind": "GatewayTenant",
        "metadata": {"name": name},
        "spec": {
            "gatewayRef": {"name": "demo", "namespace": gateway},
            "plan": "gold",
            "apiKeys": [{"name": "ci", "secretRef": {"name": f"{name}-keys", "key": "ci"}}],
        },
    }


def text_of(name: str) -> str:
    return f"sk-test-{name}-0123456789abcdef"


class Grants:
    """A namespace with a gateway, a team's namespace, and the operator's permissions in both."""

    def __init__(self, home: Namespace, templates: list[Manifest]) -> None:
        self.home, self.team = home, f"{home.name}-team"
        self.plane: ControlPlane = home.plane
        self._templates = [found for found in templates if found["kind"] != "ServiceAccount"]
        self.plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.team}})
        for namespace in (self.team, home.name):
            self.give(namespace)

    def _rules(self, namespace: str) -> list[Manifest]:
        made: list[Manifest] = json.loads(json.dumps(self._templates).replace("NAMESPACE", namespace))
        for found in made:
            for subject in found.get("subjects", ()):
                subject["namespace"] = self.home.name
        return made

    def give(self, namespace: str) -> None:
        """Apply the chart's grants in a namespace, and wait until they take effect."""
        self.plane.apply(*self._rules(namespace), namespace=namespace)
        wait_for(lambda: self.may(namespace, "list", "secrets"), "the grants are effective")

    def take_all(self, namespace: str) -> None:
        """Delete the RoleBinding, as a tool does when it replaces it."""
        self.plane.api.delete("rolebinding", ROLE, namespace)
        wait_for(lambda: not self.may(namespace, "list", "secrets"), "the grants are gone")

    def take(self, namespace: str, verb: str, resource: str) -> None:
        """Remove one verb for one resource from the Role."""
        plural, _, group = resource.partition(".")
        roles = (found for found in self._rules(namespace) if found["kind"] == "Role")
        role = next(found for found in roles if found["metadata"]["name"] == ROLE)
        rules = []
        for rule in role["rules"]:
            if plural in rule["resources"] and rule["apiGroups"] == [group]:
                left = [verb_ for verb_ in rule["verbs"] if verb_ != verb]
                rules.append({**rule, "resources": [plural], "verbs": left})
                rule = {**rule, "resources": [other for other in rule["resources"] if other != plural]}
            rules += [rule] if rule["resources"] else []
        role["rules"] = rules
        self.plane.apply(role, namespace=namespace)
        wait_for(lambda: not self.may(namespace, verb, resource), f"{verb} {resource} is gone")

    def may(self, namespace: str, verb: str, resource: str) -> bool:
        return self.plane.api.may(self.home.account, verb, resource, namespace)

    def start(self) -> None:
        """Replace the running operator by a new one, which lists everything again."""
        if self.home.operator:
            self.home.operator.stop(signal.SIGKILL)
        self.home.start(WATCH_NAMESPACES=f"{self.home.name},{self.team}")

    def keys(self) -> list[str]:
        """Return the tenants that have an accepted key, as `<namespace>/<name>`."""
        return sorted(line.split()[1] for line in shards(self.home).splitlines())

    def condition(self, kind: str = "KeysValid") -> tuple[str, str]:
        found = self.plane.get("gwt", "away", self.team) or {}
        for one in found.get("status", {}).get("conditions", []):
            if one["type"] == kind:
                return one["status"], one["reason"]
        return "", ""

    def told(self, verb: str, resource: str, namespace: str) -> str:
        """Wait until the gateway's status reports what the operator may not do."""
        expected = f"cannot {verb} {resource} in namespace {namespace} (403 Forbidden)"
        message = self.home.wait_condition("ResolvedRefs", "Unknown", "MayNotLook")
        assert expected in message and f"--as={self.home.account}" in message
        return message

    def healed(self) -> None:
        self.home.wait_condition("ResolvedRefs", "True", "Resolved")


@pytest.fixture
def granted(namespace: Namespace, grants: list[Manifest]) -> Iterator[Grants]:
    """A gateway with a tenant in its own namespace and a tenant in a team's namespace."""
    found = Grants(namespace, grants)
    namespace.give_secrets()
    namespace.apply(secret("near-keys", ci=text_of("near")), tenant("near", namespace.name))
    found.plane.apply(
        secret("away-keys", ci=text_of("away")), tenant("away", namespace.name), namespace=found.team
    )
    found.start()
    namespace.apply(gateway_manifest(plans=[GOLD], allowedTenants=ALL))
    namespace.settle()
    wait_for(lambda: len(found.keys()) == 2, "both tenants' keys are accepted")
    yield found


def test_a_binding_that_blinks_while_the_operator_starts_revokes_nothing_and_heals(granted: Grants) -> None:
    away, near = f"{granted.team}/away", f"{granted.home.name}/near"
    assert granted.keys() == [away, near]
    granted.take_all(granted.team)
    granted.start()
    granted.told("list", "gatewaytenants.proofgate.dev", granted.team)
    assert granted.keys() == [away, near]
    assert granted.home.condition("Ready")[0] == "True"
    granted.home.wait_event("MayNotLook")
    granted.home.delete("secret", "near-keys")
    wait_for(lambda: granted.keys() == [away], "the deleted Secret's key is revoked")
    granted.give(granted.team)
    granted.healed()
    assert granted.keys() == [away]
    wait_for(lambda: granted.condition() == ("True", "Valid"), "the tenant's status is updated")
    granted.plane.api.delete("gwt", "away", granted.team)
    wait_for(lambda: granted.keys() == [], "the deleted tenant's key is revoked")


def test_a_secret_that_may_not_be_read_keeps_its_key_and_is_read_when_it_may(granted: Grants) -> None:
    before = shards(granted.home)
    granted.take(granted.team, "get", "secrets")
    granted.plane.apply(secret("away-keys", ci=text_of("rotated")), namespace=granted.team)
    granted.told("get", "secrets", granted.team)
    # The operator updates the gateway's status before its tenants' statuses.
    wait_for(
        lambda: granted.condition() == ("Unknown", "MayNotLook"),
        "the tenant's status reports the failed read",
    )
    assert shards(granted.home) == before
    granted.give(granted.team)
    granted.healed()
    wait_for(lambda: granted.condition() == ("True", "Valid"), "the tenant's status is updated")
    assert shards(granted.home) != before and len(granted.keys()) == 2


@pytest.mark.parametrize("resource", ["secrets", "gatewaytenants.proofgate.dev"])
def test_a_list_that_is_refused_keeps_all_keys(granted: Grants, resource: str) -> None:
    before = shards(granted.home)
    granted.take(granted.team, "list", resource)
    granted.start()
    granted.told("list", resource, granted.team)
    assert shards(granted.home) == before
    granted.give(granted.team)
    granted.healed()
    assert shards(granted.home) == before


@pytest.mark.parametrize("resource", ["secrets", "gatewaytenants.proofgate.dev"])
def test_a_watch_that_is_refused_is_made_up_for_by_lists(granted: Grants, resource: str) -> None:
    granted.take(granted.team, "watch", resource)
    granted.start()
    granted.told("watch", resource, granted.team)
    if resource == "secrets":
        granted.plane.api.delete("secret", "away-keys", granted.team)
    else:
        granted.plane.api.delete("gwt", "away", granted.team)
    wait_for(lambda: granted.keys() == [f"{granted.home.name}/near"], "what is gone is seen all the same")


#: The resources of a gateway that the operator lists. Without gateways themselves it would not start.
OF_A_GATEWAY = (
    ("list", "configmaps"),
    ("list", "cronjobs.batch"),
    ("list", "deployments.apps"),
    ("list", "gatewaytenants.proofgate.dev"),
    ("list", "networkpolicies.networking.k8s.io"),
    ("list", "persistentvolumeclaims"),
    ("list", "poddisruptionbudgets.policy"),
    ("list", "pods"),
    ("list", "secrets"),
    ("list", "serviceaccounts"),
    ("list", "services"),
    ("list", "statefulsets.apps"),
    ("get", "configmaps"),
    ("get", "secrets"),
)


def test_whatever_is_refused_in_the_gateways_namespace_changes_nothing_and_is_named(granted: Grants) -> None:
    before = shards(granted.home), granted.home.objects()
    for verb, resource in OF_A_GATEWAY:
        granted.take(granted.home.name, verb, resource)
        granted.start()
        granted.told(verb, resource, granted.home.name)
        assert granted.home.condition("Ready")[0] == "True"
        assert (shards(granted.home), granted.home.objects()) == before, resource
        granted.give(granted.home.name)
        granted.healed()
        assert (shards(granted.home), granted.home.objects()) == before, resource
