"""The certificate authority of one gateway.

It issues one server certificate for the workers and one client certificate for HAProxy, so that neither can
act as the other. All certificates are renewed after two thirds of their lifetime. A new authority is trusted
for a day before it issues certificates, and the previous authority stays trusted until it expires. So a side
that has only the old or only the new files always trusts the other side.

Signatures and keys use ECDSA with P-256 (FIPS 186-5), extensions follow RFC 5280.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from proofgate_operator.build.internal_tls import AUTHORITIES, TlsEndpoint

AUTHORITY_LIFE = datetime.timedelta(days=5 * 365)
CERTIFICATE_LIFE = datetime.timedelta(days=90)
#: Time in which all sides receive a new authority before it issues certificates.
AUTHORITY_PROPAGATION = datetime.timedelta(days=1)
#: How far the clocks of nodes may be behind the operator's clock.
_CLOCK_SKEW = datetime.timedelta(hours=1)
_SIGNER, _NEXT = "authority", "next-authority"
#: All possible entries of the Secret.
SECRET_ENTRIES = frozenset(
    {AUTHORITIES}
    | {f"{name}.{end}" for name in (_SIGNER, _NEXT, "worker", "haproxy") for end in ("crt", "key")}
)
_EXTENDED_KEY_USAGE = {"worker": ExtendedKeyUsageOID.SERVER_AUTH, "haproxy": ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True, repr=False)
class _Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    @property
    def renew_at(self) -> datetime.datetime:
        """The time of its renewal: after two thirds of its lifetime."""
        begin, end = self.certificate.not_valid_before_utc, self.certificate.not_valid_after_utc
        return begin + (end - begin) * 2 / 3

    @property
    def chain_text(self) -> str:
        """The certificate as PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_text(self) -> str:
        """The key as PEM."""
        form = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        return self.key.private_bytes(*form).decode()

    def entries(self, name: str) -> dict[str, str]:
        """Return the Secret entries that contain the pair."""
        return {f"{name}.crt": self.chain_text, f"{name}.key": self.key_text}


def renew_entries(
    held: Mapping[str, str], sides: tuple[TlsEndpoint, TlsEndpoint], now: float, settled: bool = True
) -> dict[str, str]:
    """Return the desired entries of the Secret; equal to `held` if nothing is due.

    `now` is in seconds since 1970. `settled` means that all sides trust the authorities in `held`; before
    that, a new authority issues nothing. An unreadable entry is created again.
    """
    at = datetime.datetime.fromtimestamp(now, datetime.UTC)
    signer, following = _load_pair(held, _SIGNER), _load_pair(held, _NEXT)
    if signer is None or at >= signer.certificate.not_valid_after_utc:
        signer, following = following or _create_authority(at), None
    if following is None and at >= signer.renew_at:
        following = _create_authority(at)
    elif following is not None and settled and at >= _issued_at(following) + AUTHORITY_PROPAGATION:
        signer, following = following, None
    entries = signer.entries(_SIGNER)
    if following is not None:
        entries |= following.entries(_NEXT)
    entries[AUTHORITIES] = _trust_bundle(held, signer, following, at)
    for side in sides:
        shown = _load_pair(held, side.name)
        if shown is None or at >= shown.renew_at or not _is_issued_by(shown.certificate, signer, side):
            shown = _issue_certificate(signer, side, at)
        entries |= shown.entries(side.name)
    return entries


def _issued_at(pair: _Pair) -> datetime.datetime:
    return pair.certificate.not_valid_before_utc + _CLOCK_SKEW


def _trust_bundle(
    held: Mapping[str, str], signer: _Pair, following: _Pair | None, at: datetime.datetime
) -> str:
    """Return the authorities to trust, without expired ones, whose certificates have expired as well."""
    texts = [pair.chain_text for pair in (signer, following) if pair is not None]
    try:
        before = x509.load_pem_x509_certificates(held.get(AUTHORITIES, "").encode())
    except ValueError:
        before = []
    texts += [one.public_bytes(Encoding.PEM).decode() for one in before if one.not_valid_after_utc > at]
    return "".join(dict.fromkeys(texts))


def _load_pair(held: Mapping[str, str], name: str) -> _Pair | None:
    """Return the pair in the entries of a name; None if they are not a certificate and its key."""
    try:
        certificate = x509.load_pem_x509_certificate(held[f"{name}.crt"].encode())
        key = load_pem_private_key(held[f"{name}.key"].encode(), None)
    except (KeyError, ValueError, TypeError):
        return None
    if not isinstance(key, EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        return None
    return _Pair(certificate, key)


def _is_issued_by(certificate: x509.Certificate, signer: _Pair, side: TlsEndpoint) -> bool:
    """Return whether this authority issued a certificate for this side."""
    try:
        certificate.verify_directly_issued_by(signer.certificate)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except Exception:  # The library has no one class for what a certificate may have wrong.
        return False
    return found.get_values_for_type(x509.DNSName) == [side.host] and list(usage) == [
        _EXTENDED_KEY_USAGE[side.name]
    ]


def _create_authority(at: datetime.datetime) -> _Pair:
    key = generate_private_key(SECP256R1())
    # Authorities with the same name could only be distinguished by their keys.
    name = _name(f"proofgate internal {at:%Y-%m-%d} {x509.random_serial_number() & 0xFFFFFFFF:08x}")
    builder = (
        _builder(name, name, key, at, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(key_cert_sign=True), critical=True)
    )
    return _Pair(builder.sign(key, hashes.SHA256()), key)


def _issue_certificate(signer: _Pair, side: TlsEndpoint, at: datetime.datetime) -> _Pair:
    key = generate_private_key(SECP256R1())
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key())
    builder = (
        _builder(_name(f"proofgate {side.name}"), signer.certificate.subject, key, at, CERTIFICATE_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_EXTENDED_KEY_USAGE[side.name]]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(side.host)]), critical=False)
        .add_extension(authority, critical=False)
    )
    return _Pair(builder.sign(signer.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    at: datetime.datetime,
    life: datetime.timedelta,
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - _CLOCK_SKEW)
        .not_valid_after(at + life)
        .add_extension(identifier, critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
