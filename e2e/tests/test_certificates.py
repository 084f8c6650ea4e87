"""TLS at the load balancer: a certificate is renewed during requests and streams, and none of them fails."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from e2e.kubernetes import PATIENCE, Namespace, wait_until
from e2e.lab_network import certificate, inside
from e2e.load import SteadyLoad, steady_load
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.authority import Authority
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import wait_reachable

NAME = "secure.proofgate-e2e.svc"
KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


def served_serial(namespace: Namespace, gateway: str, authority: Path) -> int | None:
    """The serial number of the certificate on a new connection; None if there is none."""
    shown = inside(certificate, namespace.service_address(gateway), 443, NAME, authority)
    return None if shown is None else x509.load_der_x509_certificate(shown).serial_number


def test_a_certificate_is_renewed_unnoticed_and_without_replacing_a_pod(namespace: Namespace, tmp_path: Path) -> None:
    authority = Authority()
    ca = tmp_path / "ca.pem"
    ca.write_text(authority.pem)
    secret, first = authority.secret("secure-tls", NAME)
    namespace.apply(
        secret,
        *fleet.secrets(),
        fleet.gateway(
            "secure",
            1,
            TENANTS[:12],
            loadBalancer={"replicas": 2, "tls": {"certificateSecretRef": {"name": "secure-tls"}}},
        ),
    )
    secure = Gateway(namespace, "secure")
    try:
        secure.wait_settled(1)
        wait_reachable(namespace, "secure", 443)
        pods = secure.uids("load-balancer") | secure.uids("worker")

        def renew(load: SteadyLoad) -> None:
            assert served_serial(namespace, "secure", ca) == first
            renewed, second = authority.secret("secure-tls", NAME)
            namespace.apply(renewed)
            # Several connections in a row reach both load balancers, and all must get the new certificate.
            wait_until(
                lambda: all(served_serial(namespace, "secure", ca) == second for _ in range(6)),
                PATIENCE,
                "new connections are shown the new certificate",
            )
            load.goes_on(50)

        with steady_load(namespace, "secure", tmp_path, KEYS, ca=ca, server_name=NAME) as load:
            renew(load)
        report = load.report
        assert report.whole and not report.failed and not report.broken, (report.failed + report.broken)[:3]
        assert not report.lost and not report.repeated
        assert secure.uids("load-balancer") | secure.uids("worker") == pods
    finally:
        namespace.delete("ggw", "secure", wait=False)
