"""TLS at the load balancer: a certificate is renewed while requests and streams run, and nobody notices."""

from __future__ import annotations

import base64
import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from e2e.kubernetes import CommandError, Namespace, Object, inside, wait_until
from e2e.load import SteadyLoad, steady_load
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of

NAME = "secure.proofgate-e2e.svc"
KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "end-to-end tests")])
        self.certificate = self._sign(self._name, self._key, authority=True)

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if not authority:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def secret(self) -> tuple[Object, int]:
        """A fresh certificate as a Secret of type kubernetes.io/tls, and its serial number."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)]), key, authority=False)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        chain = certificate.public_bytes(serialization.Encoding.PEM)
        data = {"tls.crt": base64.b64encode(chain).decode(), "tls.key": base64.b64encode(pem).decode()}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data}
        return {**secret, "metadata": {"name": "secure-tls"}}, certificate.serial_number


def served_serial(namespace: Namespace, gateway: str, authority: Path) -> int | None:
    """The serial number of the certificate that a new connection is shown; None if there is none."""
    address = namespace.service_address(gateway)
    try:
        shown = inside(
            *("openssl", "s_client", "-connect", f"{address}:443", "-servername", NAME, "-CAfile", str(authority)),
            *("-verify_return_error", "-showcerts", "-no_ign_eof"),
        )
    except CommandError as error:
        shown = error.stderr
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    if begin not in shown:
        return None
    pem = begin + shown.partition(begin)[2].partition(end)[0] + end
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def test_a_certificate_is_renewed_unnoticed_and_without_replacing_a_pod(
    namespace: Namespace, gateway: str, tmp_path: Path
) -> None:
    authority = Authority()
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    secret, first = authority.secret()
    namespace.apply(
        secret,
        fleet.gateway(
            "secure",
            1,
            TENANTS[:12],
            worker={"cpu": "300m", "memory": "512Mi"},
            loadBalancer={"replicas": 2, "tls": {"certificateSecretRef": {"name": "secure-tls"}}},
        ),
    )
    secure = Gateway(namespace, "secure")
    try:
        secure.wait_settled(1)
        pods = secure.uids("load-balancer") | secure.uids("worker")

        def renew(load: SteadyLoad) -> None:
            assert served_serial(namespace, "secure", ca) == first
            renewed, second = authority.secret()
            namespace.apply(renewed)
            # Both load balancers: several connections in a row see the new one.
            wait_until(
                lambda: all(served_serial(namespace, "secure", ca) == second for _ in range(6)),
                120,
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
        namespace.kubectl("delete", "ggw", "secure", "--timeout=120s")
