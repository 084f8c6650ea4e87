"""A certificate authority for the tests, and Secrets with its certificates."""

from __future__ import annotations

import base64
import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from e2e.kubernetes import Object


class Authority:
    """Signs certificates that are valid for a day."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "end-to-end tests")])
        own = self._sign(self._name, self._key, None)
        #: The authority's own certificate.
        self.pem = own.public_bytes(serialization.Encoding.PEM).decode()

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, host: str | None) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        )
        if host is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def secret(self, name: str, host: str) -> tuple[Object, int]:
        """A new certificate for `host` in a Secret of type kubernetes.io/tls, and its serial number."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), key, host)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        chain = certificate.public_bytes(serialization.Encoding.PEM)
        data = {"tls.crt": base64.b64encode(chain).decode(), "tls.key": base64.b64encode(pem).decode()}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data}
        return {**secret, "metadata": {"name": name}}, certificate.serial_number
