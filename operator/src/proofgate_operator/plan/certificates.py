"""Whether a certificate can be shown: with one that does not fit its key HAProxy would not start."""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key


def authorities_fault(text: str) -> str | None:
    """Return what is wrong with PEM certificates of authorities; None if nothing is."""
    try:
        x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        return "has no certificate that can be read"
    return None


def certificate_fault(chain: str, key: str) -> str | None:
    """Return what is wrong with a PEM chain (RFC 7468) and its private key; None if nothing is.

    No word of either is repeated. Whether the chain is trusted or over is for the clients to judge.
    """
    try:
        certificates = x509.load_pem_x509_certificates(chain.encode())
    except ValueError:
        return "has no certificate that can be read under tls.crt"
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # A TypeError is a key with a passphrase, which nobody could type for its reader.
        return "has no private key that can be read under tls.key, without a passphrase"
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    try:
        fits = certificates[0].public_key().public_bytes(*form) == private.public_key().public_bytes(*form)
    except (ValueError, UnsupportedAlgorithm):
        return "has a certificate under tls.crt with a key of a kind that is not supported"
    return None if fits else "has a key under tls.key that is not the one of the first certificate in tls.crt"
