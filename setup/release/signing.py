"""Signatures in sigstore's bundle format, which `cosign verify-blob` and `cosign verify` read.

With a private key (P-256, PKCS#8 in PEM), they are made here, deterministically (RFC 6979): two runs give equal
bytes. Without one, cosign signs with the identity of the workflow that runs it ("keyless"), and writes to a
transparency log.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from setup.release.errors import ReleaseError

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT = "https://in-toto.io/Statement/v1"
#: The predicate type that cosign uses for a signed image without further statements.
SIGNED = "https://sigstore.dev/cosign/sign/v1"
SBOM = "https://cyclonedx.org/bom"
PROVENANCE = "https://slsa.dev/provenance/v1"
_PAYLOAD_TYPE = "application/vnd.in-toto+json"


class Signer(Protocol):
    """The signer of a release."""

    def sign_file(self, path: Path) -> bytes:
        """A bundle with the signature of a file."""

    def sign_statement(self, statement: bytes) -> bytes:
        """A bundle with an in-toto statement and its signature (DSSE)."""

    def public_key(self) -> bytes | None:
        """The public key that verifies the signatures, in PEM; None if an identity signs."""


def statement(subjects: Mapping[str, str], predicate_type: str, predicate: Mapping[str, Any]) -> bytes:
    """An in-toto statement about things by their names and SHA-256 digests in hexadecimal."""
    document = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subjects.items())],
        "predicateType": predicate_type,
        "predicate": predicate,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


class KeySigner:
    """Signs with a private key in a file."""

    def __init__(self, path: Path) -> None:
        """Reads the key. Raises ReleaseError if it is not an unencrypted P-256 key."""
        wanted = "an unencrypted P-256 key (openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)"
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
            raise ReleaseError(f"SIGN={path} is not {wanted}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ReleaseError(f"SIGN={path} is not {wanted}")
        self._key = key
        public = key.public_key()
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        self._pem = public.public_bytes(serialization.Encoding.PEM, form)
        self._hint = _base64(hashlib.sha256(public.public_bytes(serialization.Encoding.DER, form)).digest())

    def sign_file(self, path: Path) -> bytes:
        content = path.read_bytes()
        digest = {"algorithm": "SHA2_256", "digest": _base64(hashlib.sha256(content).digest())}
        return self._bundle({"messageSignature": {"messageDigest": digest, "signature": self._sign(content)}})

    def sign_statement(self, statement: bytes) -> bytes:
        # DSSE's pre-authentication encoding, which also signs the type.
        encoded = f"DSSEv1 {len(_PAYLOAD_TYPE)} {_PAYLOAD_TYPE} {len(statement)} ".encode() + statement
        envelope = {
            "payload": _base64(statement),
            "payloadType": _PAYLOAD_TYPE,
            "signatures": [{"sig": self._sign(encoded), "keyid": ""}],
        }
        return self._bundle({"dsseEnvelope": envelope})

    def public_key(self) -> bytes:
        return self._pem

    def _sign(self, content: bytes) -> str:
        return _base64(self._key.sign(content, ec.ECDSA(hashes.SHA256(), deterministic_signing=True)))

    def _bundle(self, content: dict[str, Any]) -> bytes:
        material = {"publicKey": {"hint": self._hint}}
        document = {"mediaType": BUNDLE, "verificationMaterial": material, **content}
        return (json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n").encode()


class WorkflowSigner:
    """Has cosign sign with the identity of the workflow that runs it."""

    def __init__(self, cosign: Path) -> None:
        self._cosign = cosign

    def sign_file(self, path: Path) -> bytes:
        return self._run("sign-blob", str(path))

    def sign_statement(self, statement: bytes) -> bytes:
        with tempfile.TemporaryDirectory(prefix="proofgate-statement-") as folder:
            path = Path(folder) / "statement.json"
            path.write_bytes(statement)
            return self._run("attest-blob", "--statement", str(path))

    def public_key(self) -> None:
        return None

    def _run(self, *words: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="proofgate-signature-") as folder:
            bundle = Path(folder) / "bundle.json"
            command = [str(self._cosign), words[0], "--yes", f"--bundle={bundle}", *words[1:]]
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            if done.returncode:
                raise ReleaseError(f"cosign {words[0]} failed: {done.stderr.strip()}")
            return bundle.read_bytes()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
