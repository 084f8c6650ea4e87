"""Checks certificates before HAProxy gets them: HAProxy does not start with a certificate that does not match
its key.

The input comes from anyone who may write the Secret, and is checked between the reconciles of all gateways,
so each check must be fast. Therefore primes are not checked, and the lengths of texts and the types of keys
are limited.
"""

import base64
import math
import re
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

#: The maximum length of a chain in characters.
MAX_CHAIN = 64 << 10
#: The maximum length of a private key in characters: an RSA key of the maximum size takes 6400.
MAX_KEY = 8 << 10
MAX_RSA_BITS = 8192
#: The maximum length of chain and key together in characters: HAProxy's agent transmits no more in one
#: command.
MAX_PRESENTED = 30_000
_MAX_WARNING_SECONDS = 14 * 86400
#: Divisor of a certificate's lifetime: its last tenth is the time in which to warn. Renewal at two thirds
#: avoids the warning.
_WARNING_DIVISOR = 10
_UNREADABLE = "has no readable private key without a passphrase under tls.key"
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..)"
#: The algorithms (RFC 5958) RSA, RSA-PSS, elliptic curves, Ed25519 and Ed448. A key of another algorithm
#: (DSA, Diffie-Hellman) may lack its public half, which would have to be computed for a key of any length.
_ALGORITHMS = (
    rb"\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01[\x01\x0a]",
    rb"\x07\x2a\x86\x48\xce\x3d\x02\x01",
    rb"\x03\x2b\x65[\x70\x71]",
)
_SUPPORTED = re.compile(
    rb"0%b\x02\x01[\x00\x01]0%b\x06(?:%b)" % (_LENGTH, _LENGTH, b"|".join(_ALGORITHMS)), re.DOTALL
)


@dataclass(frozen=True)
class Lifetime:
    """When to warn about the end of a certificate, and when the certificate expires, in seconds since
    1970."""

    warn_at: float = math.inf
    expires_at: float = math.inf


def lifetime(chain: str) -> Lifetime:
    """Return the lifetime of the first certificate of a chain; infinite if it cannot be parsed.

    The warning starts with the last tenth of the lifetime, at most 14 days before its end. Clients may have
    newer copies of the other certificates.
    """
    try:
        found = x509.load_pem_x509_certificates(chain.encode()) if 0 < len(chain) <= MAX_CHAIN else []
    except ValueError:
        return Lifetime()
    if not found:
        return Lifetime()
    begins, ends = (
        time.timestamp() for time in (found[0].not_valid_before_utc, found[0].not_valid_after_utc)
    )
    return Lifetime(ends - min((ends - begins) / _WARNING_DIVISOR, _MAX_WARNING_SECONDS), ends)


def authorities_fault(text: str) -> str | None:
    """Return what is wrong with the PEM certificates of certificate authorities; None if they are valid."""
    try:
        x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        return "has no readable certificate"
    return None


def certificate_fault(chain: str, key: str) -> str | None:
    """Return what is wrong with a PEM chain (RFC 7468) and its private key; None if they are valid.

    The message quotes neither. Clients decide whether the chain is trusted or has expired.
    """
    if len(chain) > MAX_CHAIN:
        return f"has more than {MAX_CHAIN} characters under tls.crt"
    if len(key) > MAX_KEY:
        return f"has more than {MAX_KEY} characters under tls.key"
    try:
        certificates = x509.load_pem_x509_certificates(chain.encode())
    except ValueError:
        return "has no readable certificate under tls.crt"
    private = _private_key(key)
    if isinstance(private, str):
        return private
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    try:
        fits = certificates[0].public_key().public_bytes(*form) == private.public_key().public_bytes(*form)
    except (ValueError, UnsupportedAlgorithm):
        return "has a certificate under tls.crt with an unsupported type of key"
    return None if fits else "has a key under tls.key that does not match the first certificate in tls.crt"


def presented_certificate_fault(chain: str, key: str) -> str | None:
    """Return what is wrong with the chain and key that HAProxy presents; None if they are valid."""
    lines = [line.strip() for text in (chain, key) for line in text.splitlines()]
    # Blank lines are removed before the transmission.
    if sum(len(line) + 1 for line in lines if line) > MAX_PRESENTED:
        return f"has more than {MAX_PRESENTED} characters under tls.crt and tls.key together"
    return certificate_fault(chain, key)


def _private_key(text: str) -> PrivateKeyTypes | str:
    """Return the first private key of a PEM text, or what is wrong with it."""
    found = _PRIVATE_KEY.search(text)
    try:
        if found is None:
            return _UNREADABLE
        if found[1] == "PRIVATE KEY":
            head = base64.b64decode("".join(found[2].split())[:64], validate=True)
            supported = bool(_SUPPORTED.match(head))
        else:
            supported = found[1] in ("RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
        if not supported:
            return "has a private key of an unsupported type under tls.key"
        # Only its public half is used. A primality check could take minutes with maliciously chosen numbers.
        private = load_pem_private_key(found[0].encode(), None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # A TypeError means that the key has a passphrase, which HAProxy could not enter.
        return _UNREADABLE
    if isinstance(private, RSAPrivateKey) and private.key_size > MAX_RSA_BITS:
        return f"has a key under tls.key of more than {MAX_RSA_BITS} bits"
    return private
