"""Whether a certificate can be shown: with one that does not fit its key HAProxy would not start.

Whoever may write one Secret chooses what is read here, between the reconciles of all gateways: nothing may
take long. So primes are not checked, and texts and kinds of keys are bounded.
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

#: The longest chain, in characters.
MAX_CHAIN = 64 << 10
#: The longest text of a key, in characters: one of RSA with so many bits takes 6400.
MAX_KEY = 8 << 10
MAX_RSA_BITS = 8192
#: The longest chain and key that HAProxy can show, in characters: its agent hands over no more at once.
MAX_PRESENTED = 30_000
_MAX_WARNING_SECONDS = 14 * 86400
#: Of a certificate's lifetime. Who renews it at two thirds is not told of.
_WARNING_DIVISOR = 10
_UNREADABLE = "has no readable private key without a passphrase under tls.key"
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..)"
#: Algorithms (RFC 5958) of RSA, RSA for PSS alone, elliptic curves, Ed25519 and Ed448. A key of another one
#: (DSA, Diffie-Hellman) need not have its public half, which would have to be computed, of any length.
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
    """When the end of a certificate is to be told of, and when it ends, in seconds since 1970."""

    warn_at: float = math.inf
    expires_at: float = math.inf


def lifetime(chain: str) -> Lifetime:
    """Return the lifetime of the first certificate of a chain; without an end where none can be read.

    The warning comes with the last tenth of it, 14 days before its end at most. Of the others clients may
    know newer ones.
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
    """Return what is wrong with PEM certificates of authorities; None if nothing is."""
    try:
        x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        return "has no readable certificate"
    return None


def certificate_fault(chain: str, key: str) -> str | None:
    """Return what is wrong with a PEM chain (RFC 7468) and its private key; None if nothing is.

    No word of either is repeated. Whether the chain is trusted or over is for the clients to judge.
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
    """Return what is wrong with a chain and a key that HAProxy is to show; None if nothing is."""
    lines = [line.strip() for text in (chain, key) for line in text.splitlines()]
    # Blank lines are left out when they are handed over.
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
        # Only its public half is used. Whether primes are some takes minutes where they were chosen for that.
        private = load_pem_private_key(found[0].encode(), None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # A TypeError is a key with a passphrase, which nobody could type for its reader.
        return _UNREADABLE
    if isinstance(private, RSAPrivateKey) and private.key_size > MAX_RSA_BITS:
        return f"has a key under tls.key of more than {MAX_RSA_BITS} bits"
    return private
