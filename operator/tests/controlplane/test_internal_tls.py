"""Certificates of HAProxy and the workers, and the Service for internal clients, on a real API server."""

import base64

import pytest

from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for

pytestmark = pytest.mark.controlplane

SECRET = "demo-internal-tls"


@pytest.fixture
def settled(namespace: Namespace) -> Namespace:
    """A namespace with a Ready gateway that has both."""
    namespace.give_secrets()
    namespace.start(RESYNC_SECONDS="1")
    namespace.apply(
        gateway_manifest(internalTLS={"mode": "Operator"}, loadBalancer={"acceptProxyProtocol": True})
    )
    namespace.settle()
    return namespace


def test_certificates_are_made_once_and_made_anew_where_they_are_spoilt(settled: Namespace) -> None:
    held = settled.there("secret", SECRET)
    assert held["metadata"]["ownerReferences"][0]["name"] == "demo"
    template = settled.there("statefulset", "demo-worker")["spec"]["template"]["spec"]
    assert SECRET in [volume.get("secret", {}).get("secretName") for volume in template["volumes"]]
    settled.rest(lambda: settled.reconciled(settled.reconciles()))
    assert settled.there("secret", SECRET)["data"] == held["data"]

    spoilt = {
        "worker.crt": base64.b64encode(b"nonsense").decode(),
        "notes": base64.b64encode(b"mine").decode(),
    }
    settled.patch("secret", SECRET, {"data": spoilt})
    wait_for(
        lambda: settled.there("secret", SECRET)["data"]["worker.crt"] not in (spoilt["worker.crt"],),
        "a new certificate is created",
    )
    after = settled.there("secret", SECRET)["data"]
    assert after["ca.crt"] == held["data"]["ca.crt"] and after["haproxy.crt"] == held["data"]["haproxy.crt"]
    assert after["notes"] == spoilt["notes"], "entries of other owners stay"
    settled.settle()
    settled.rest(lambda: settled.reconciled(settled.reconciles()))
    assert settled.operator
    log = settled.operator.log.read_text()
    assert "PRIVATE KEY" not in log and "orbidden" not in log


def test_clients_inside_have_a_service_while_others_come_with_a_proxy_header(settled: Namespace) -> None:
    assert settled.there("ggw", "demo")["status"]["endpoint"].startswith("http://demo-inside.")
    assert settled.there("service", "demo-inside")["spec"]["type"] == "ClusterIP"


def test_who_uses_the_service_of_clients_inside_is_served_when_nobody_comes_with_a_header_any_more(
    settled: Namespace,
) -> None:
    def target() -> str:
        port: str = settled.there("service", "demo-inside")["spec"]["ports"][0]["targetPort"]
        return port

    assert target() == "inside"
    settled.apply(gateway_manifest(internalTLS={"mode": "Operator"}))
    wait_for(lambda: target() == "http", "the Service targets the port for all clients")
    settled.settle()
    assert settled.there("ggw", "demo")["status"]["endpoint"].startswith("http://demo.")
