"""Many namespaces: the watches and connections of each, and a key in a namespace of tenants."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.api import Manifest, secret
from tests.controlplane.conftest import CHART, IMAGES, RELEASE
from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import ControlPlane, binary, wait_for
from tests.haproxy_bench import http_get

pytestmark = pytest.mark.controlplane

#: More than the streams of one connection; with all kinds watched, more than an early operator survived.
_TEAMS = 70
_GOLD = {"name": "gold", "models": ["gpt-4o-mini"]}
_KINDS = 13


class Spaces:
    """A gateway's namespace and many namespaces of tenants, with the chart's grants in each."""

    def __init__(self, home: Namespace) -> None:
        self.home = home
        self.teams = [f"{home.name}-team-{number}" for number in range(_TEAMS)]

    @property
    def plane(self) -> ControlPlane:
        return self.home.plane

    def prepare(self) -> None:
        for team in self.teams:
            self.plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}})
        for grant in self._grants():
            self.plane.apply(grant, namespace=grant["metadata"]["namespace"])
        wait_for(lambda: self.may("list", "secrets"), "the grants are effective")

    def _grants(self) -> list[Manifest]:
        own = ("--namespace", self.home.name, "--set", "crds.enabled=false")
        lists = ("--set-json", f"tenantNamespaces={json.dumps(self.teams)}")
        command = [binary("helm"), "template", RELEASE, str(CHART), *own, *lists, *IMAGES]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = [one for one in yaml.safe_load_all(done.stdout) if one]
        return [one for one in found if one["kind"] in ("Role", "RoleBinding")]

    def may(self, verb: str, resource: str) -> bool:
        return self.plane.api.may(self.home.account, verb, resource, self.teams[-1])

    def metric(self, name: str) -> Counter[str]:
        """Return a metric's values, by kind if it has that label."""
        text = http_get(self.home._health_port, "/metrics")[1]
        found: Counter[str] = Counter()
        for labels, value in re.findall(rf"(?m)^{name}(?:\{{(.*)\}})? (\S+)$", text):
            kind = re.search(r'kind="(\w+)"', labels)
            found[kind[1] if kind else ""] += int(float(value))
        return found

    def sockets(self) -> int:
        assert self.home.operator
        folder = Path(f"/proc/{self.home.operator.process.pid}/fd")
        links = (link.readlink() for link in folder.iterdir() if link.is_symlink())
        return sum(str(link).startswith("socket:") for link in links)


@pytest.fixture
def spaces(namespace: Namespace) -> Iterator[Spaces]:
    found = Spaces(namespace)
    found.prepare()
    yield found


def test_a_namespace_of_tenants_costs_two_watches_and_no_connection(spaces: Spaces) -> None:
    spaces.home.start(TENANT_NAMESPACES=",".join(spaces.teams))
    begun = _KINDS + 2 * _TEAMS
    wait_for(
        lambda: spaces.metric("proofgate_operator_watches_total").total() >= begun,
        "everything is watched",
    )
    watches = spaces.metric("proofgate_operator_watches_total")
    assert watches["GatewayTenant"] == watches["Secret"] == 1 + _TEAMS
    assert watches.total() == begun
    # The API server permits a hundred streams per connection.
    assert spaces.metric("proofgate_operator_watch_connections")[""] == 2
    # Also the connections for requests and the operator's port; without a gateway, kopf watches nothing more.
    assert spaces.sockets() < _TEAMS / 2


def test_a_namespace_with_all_kinds_costs_no_connection_either(spaces: Spaces) -> None:
    # The operator may not list the other kinds in these namespaces; it reports them and retries now and then.
    spaces.home.start(WATCH_NAMESPACES=",".join([spaces.home.name, *spaces.teams]))
    wait_for(
        lambda: spaces.metric("proofgate_operator_namespaces_barred")[""] == _TEAMS,
        "the unreadable namespaces are counted",
    )
    assert spaces.sockets() < _TEAMS / 2


def test_a_key_in_a_namespace_of_tenants_counts_and_nothing_is_made_there(spaces: Spaces) -> None:
    assert not any(spaces.may(verb, "secrets") for verb in ("create", "patch", "update", "delete"))
    spaces.home.start(TENANT_NAMESPACES=",".join(spaces.teams))
    spaces.home.give_secrets()
    allowed = {"namespaces": {"from": "All"}}
    spaces.home.apply(gateway_manifest(plans=[_GOLD], allowedTenants=allowed))
    team = spaces.teams[-1]
    spaces.plane.apply(secret("acme-keys", ci="sk-test-attached-0123456789abcdef"), namespace=team)
    key = {"name": "ci", "secretRef": {"name": "acme-keys", "key": "ci"}}
    tenant = {
        "apiVersion": "proofgate.dev/v1alpha1",
        "kind": "GatewayTenant",
        "metadata": {"name": "acme"},
        "spec": {
            "gatewayRef": {"name": "demo", "namespace": spaces.home.name},
            "plan": "gold",
            "apiKeys": [key],
        },
    }
    spaces.plane.apply(tenant, namespace=team)

    def holders() -> list[str]:
        found = spaces.plane.get("gwt", "acme", team) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return [one["status"] for one in conditions if one["type"] == "KeysValid"]

    wait_for(lambda: holders() == ["True"], "the tenant's status reports a valid key")
