"""Certificates for tests, generated on demand."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID


def write_certificate(
    path: Path,
    *,
    name: str = "test",
    key: str | None = None,
    private: CertificateIssuerPrivateKeyTypes | None = None,
    days: float = 2,
) -> None:
    """Write a self-signed certificate for 127.0.0.1 to `path`, and its key or another `key` to `<path>.key`.

    The certificate is valid from one day ago for the next `days` days.
    """
    private = private or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, None if isinstance(private, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    )
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.with_name(f"{path.name}.key").write_text(key or pem.decode())
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
