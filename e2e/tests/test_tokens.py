"""Tenants with JSON Web Tokens: a token leads where the tenant's keys lead."""

from __future__ import annotations

from e2e.kubernetes import Namespace
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.issuer import Issuer
from e2e.tests.traffic import ask, owners, settled_owners, wait_reachable

#: How a worker comes to trust an authority that its image does not know.
TRUST = {
    "env": [{"name": "SSL_CERT_FILE", "value": "/etc/authorities/ca.pem"}],
    "volumes": [{"name": "authorities", "configMap": {"name": "authorities"}}],
    "volumeMounts": [{"name": "authorities", "mountPath": "/etc/authorities", "readOnly": True}],
}


def test_a_tenant_with_tokens_of_an_issuer_of_the_house_always_reaches_one_worker(namespace: Namespace) -> None:
    issuer = Issuer(namespace)
    authorities = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "authorities"},
        "data": {"ca.pem": issuer.authority.pem},
    }
    namespace.apply(authorities, *issuer.manifests())
    namespace.wait_ready("pod", "issuer")
    tenants = TENANTS[:8]
    manifest = fleet.gateway("tokens", 2, tenants, worker={**fleet.WORKER, "podTemplate": TRUST}, jwt=issuer.section())
    namespace.apply(*fleet.secrets(), manifest)
    try:
        Gateway(namespace, "tokens").wait_settled(2)
        wait_reachable(namespace, "tokens")
        keys = settled_owners(namespace, "tokens", {tenant: key_of(tenant) for tenant in tenants})
        assert len(set(keys.values())) == 2, "both workers have tenants"
        asked = {f"{tenant} {turn}": issuer.token(tenant) for tenant in tenants for turn in range(3)}
        # Each token on a connection of its own.
        found = owners(namespace, "tokens", asked)
        assert found == {label: keys[label.split()[0]] for label in asked}
        assert ask(namespace, "tokens", Issuer(namespace).token(tenants[0])) == 401, "another signer is not believed"
    finally:
        namespace.delete("ggw", "tokens", wait=False)
        namespace.delete("pod", "issuer")
        namespace.delete("service", "issuer")
