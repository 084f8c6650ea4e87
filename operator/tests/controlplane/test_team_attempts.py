"""A team with `edit` in its own namespace tries to gain access to anything outside it."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.api import Manifest, Refused, secret
from tests.controlplane.namespaces import Namespace, gateway_manifest, role_binding
from tests.controlplane.server import wait_for
from tests.controlplane.test_attached_tenants import GOLD, shards
from tests.controlplane.test_may_not_look import Grants, text_of
from tests.gateways import GLOBEX_KEY

pytestmark = pytest.mark.controlplane

USER = "jane@team"
#: The roles of `edit`. No controller aggregates roles here, so each is bound separately.
EDIT = (
    "system:aggregate-to-edit",
    "system:aggregate-to-view",
    "proofgate-governancegateways-edit",
    "proofgate-governancegateways-view",
    "proofgate-gatewaytenants-edit",
    "proofgate-gatewaytenants-view",
)
ALL = {"namespaces": {"from": "All"}}
PLATINUM = {"name": "platinum", "limits": {"requestsPerMinute": 6000}, "models": ["gpt-4o-mini"]}


@pytest.fixture(scope="module")
def denied() -> tuple[tuple[str, str, str], ...]:
    """Verbs, resources, and the namespace: `home` is the gateway's, `own` is the team's."""
    home = [
        *(("get", "secrets"), ("list", "secrets"), ("create", "secrets"), ("patch", "secrets")),
        *(("get", "configmaps"), ("patch", "configmaps"), ("create", "pods"), ("create", "pods/exec")),
        *(
            ("get", "pods/log"),
            ("create", "pods/portforward"),
            ("delete", "pods"),
            ("create", "pods/eviction"),
        ),
        *(("delete", "persistentvolumeclaims"), ("patch", "statefulsets.apps"), ("patch", "services")),
        *(
            ("patch", "governancegateways.proofgate.dev"),
            ("update", "governancegateways.proofgate.dev/scale"),
        ),
        *(("create", "gatewaytenants.proofgate.dev"), ("get", "gatewaytenants.proofgate.dev")),
        *(
            ("create", "serviceaccounts/token"),
            ("impersonate", "serviceaccounts"),
            ("update", "leases.coordination.k8s.io"),
        ),
    ]
    own = [
        *(
            ("patch", "gatewaytenants.proofgate.dev/status"),
            ("update", "gatewaytenants.proofgate.dev/status"),
        ),
        *(
            ("patch", "governancegateways.proofgate.dev/status"),
            ("create", "rolebindings.rbac.authorization.k8s.io"),
        ),
        *(("create", "roles.rbac.authorization.k8s.io"), ("escalate", "roles.rbac.authorization.k8s.io")),
        *(("bind", "clusterroles.rbac.authorization.k8s.io"), ("patch", "namespaces")),
    ]
    return (*((*one, "home") for one in home), *((*one, "own") for one in own))


@pytest.fixture
def team(namespace: Namespace, grants: list[Manifest]) -> Iterator[Grants]:
    """A gateway with its own tenants, a tenant in its namespace, and a team's namespace."""
    found = Grants(namespace, grants)
    namespace.give_secrets()
    found.plane.apply(
        *(role_binding(name.replace(":", "-"), name, USER) for name in EDIT), namespace=found.team
    )
    found.start()
    mine = {**PLATINUM, "allowedNamespaces": {"names": [namespace.name]}}
    shared = {**GOLD, "perNamespace": {"tenants": 2}}
    namespace.apply(gateway_manifest(plans=[shared, mine], allowedTenants=ALL))
    namespace.apply(secret("near-keys", ci=text_of("near")))
    namespace.apply(tenant("near", namespace.name, plan="platinum"))
    namespace.settle()
    wait_for(lambda: found.keys() == [f"{namespace.name}/near"], "the neighbor's key is accepted")
    yield found


def tenant(name: str, gateway: str, **spec: Any) -> Manifest:
    key = {"name": "ci", "secretRef": {"name": f"{name}-keys", "key": "ci"}}
    return {
        "apiVersion": "proofgate.dev/v1alpha1",
        "kind": "GatewayTenant",
        "metadata": {"name": name},
        "spec": {
            "gatewayRef": {"name": "demo", "namespace": gateway},
            "plan": "gold",
            "apiKeys": [key],
            **spec,
        },
    }


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def conditions(team: Grants, name: str) -> dict[str, str]:
    found = team.plane.get("gwt", name, team.team) or {}
    return {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", [])}


def test_edit_in_a_namespace_gives_nothing_in_that_of_a_gateway_and_no_word_of_the_operators(
    team: Grants, denied: tuple[tuple[str, str, str], ...]
) -> None:
    may = team.plane.api.may
    assert may(USER, "create", "gatewaytenants.proofgate.dev", team.team), "the team may do its own work"
    allowed = [
        one for one in denied if may(USER, one[0], one[1], team.home.name if one[2] == "home" else team.team)
    ]
    assert allowed == []


@pytest.mark.parametrize(
    "spec",
    [
        {"apiKeys": [{"name": "ci", "secretRef": {"name": "near-keys", "key": "ci", "namespace": "home"}}]},
        {"apiKeys": [{"name": "ci", "secretRef": {"name": "../home/near-keys", "key": "ci"}}]},
        {"apiKeys": [{"name": "ci\n0 home/near ci", "sha256": "b" * 64}]},
        {"apiKeys": [{"name": "a b", "sha256": "b" * 64}]},
        {"apiKeys": [{"name": "ci", "sha256": f"{'b' * 64} home/near ci"}]},
        {"apiKeys": [{"name": f"k{number}", "sha256": f"{number:064x}"} for number in range(33)]},
        {"gatewayRef": {"name": "demo/../other"}},
        {"plan": "gold\nplatinum"},
        {"models": ["gpt-4o-mini"]},
        {"limits": {"requestsPerMinute": 1000000}},
        {"placement": {"shard": 0}},
        {"tenant": "acme"},
    ],
    ids=str,
)
def test_what_would_reach_beyond_a_tenant_is_not_let_in(team: Grants, spec: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        team.plane.api.apply(tenant("x", team.home.name, **spec), team.team)
    # A server-side apply refuses an unknown field with status 500.
    assert refused.value.status in {400, 422, 500}


def test_attempts_by_manifests_that_are_let_in_reach_nothing_and_leave_the_neighbours_as_they_were(
    team: Grants,
) -> None:
    before = sorted(shards(team.home).splitlines())
    stolen = {"name": "ci", "sha256": digest_of(text_of("near"))}
    known = {"name": "ci", "sha256": digest_of("test")}
    late = {"name": "ci", "sha256": digest_of("sk-late-0123456789abcdef"), "notAfter": "2021-01-01T00:00:00Z"}
    attempts = {
        "richest-plan": {"plan": "platinum"},
        "no-plan": {"plan": "none-of-that-name"},
        "other-gateway": {"gatewayRef": {"name": "none", "namespace": team.home.name}},
        "neighbours-secret": {"apiKeys": [{"name": "ci", "secretRef": {"name": "near-keys", "key": "ci"}}]},
        "neighbours-key": {"apiKeys": [stolen]},
        "gateways-key": {"apiKeys": [{"name": "ci", "sha256": digest_of(GLOBEX_KEY)}]},
        "well-known-key": {"apiKeys": [known]},
        "late-key": {"apiKeys": [late]},
        "zeros": {"apiKeys": [{"name": "ci", "sha256": "0" * 64}]},
        "lines": {},
    }
    lines = f"sk-lines\n{digest_of('sk-mine')} {team.home.name}/near ci"
    encoded = base64.b64encode(lines.encode()).decode()
    mine = {**secret("lines-keys"), "data": {"ci": encoded}}
    # The operator's labels and annotations have no effect on a team's objects.
    forged = secret("demo-tenants-00", keys=f"{digest_of('sk-forged')} {team.home.name}/near ci\n")
    forged["metadata"]["labels"] = {
        "app.kubernetes.io/managed-by": "proofgate-operator",
        "proofgate.dev/gateway": "demo",
    }
    team.plane.apply(mine, forged, namespace=team.team)
    for name, spec in attempts.items():
        team.plane.apply(tenant(name, team.home.name, **spec), namespace=team.team)
    told = {"Accepted": "False", "KeysValid": "False"}
    for name in attempts:
        wait_for(
            lambda name=name: conditions(team, name).items() & told.items(),
            f"the status of {name} reports the refusal",
        )
    # An expired key is written with its end, which the workers enforce.
    written = [line for line in shards(team.home).splitlines() if f"{team.team}/late-key " not in line]
    assert sorted(written) == before
    assert team.home.condition("Ready")[0] == "True"


def test_a_team_that_wants_more_than_its_share_of_tenants_keeps_those_that_it_had(team: Grants) -> None:
    names = [f"wish-{number}" for number in range(6)]
    for name in names:
        team.plane.apply(
            secret(f"{name}-keys", ci=text_of(name)), tenant(name, team.home.name), namespace=team.team
        )
        wait_for(
            lambda name=name: conditions(team, name).get("Accepted"), f"{name} has the condition Accepted"
        )
    mine = [f"{team.team}/{name}" for name in names[:2]]
    assert team.keys() == sorted([*mine, f"{team.home.name}/near"])
