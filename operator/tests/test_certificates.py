"""Accepted certificates and keys; checks of rejected ones are cheap."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from proofgate.haproxy_sidecar.certificate import CertificateFile
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi, UnreachableError
from proofgate.haproxy_sidecar.target import RefusedError

from proofgate_operator.plan import certificates
from proofgate_operator.plan.certificates import (
    MAX_CHAIN,
    MAX_KEY,
    MAX_PRESENTED,
    MAX_RSA_BITS,
    certificate_fault,
    presented_certificate_fault,
)
from tests.certificates import write_certificate

UNSUPPORTED = "has a private key of an unsupported type under tls.key"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("chain") / "own"
    write_certificate(path)
    return path.read_text()


def of_primes(first: int, second: int) -> rsa.RSAPrivateKey:
    """Return a key of two Mersenne primes, which needs no search for primes."""
    p, q, e = 2**first - 1, 2**second - 1, 65537
    d = pow(e, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(e, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def pem(private: Any, form: PrivateFormat = PrivateFormat.TraditionalOpenSSL) -> str:
    text: bytes = private.private_bytes(Encoding.PEM, form, NoEncryption())
    return text.decode()


def sequence(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes([0x30, len(body)]) + body


def pkcs8(algorithm: str, *numbers: str, label: str = "PRIVATE KEY") -> str:
    """Return a PKCS #8 key with an algorithm and its parameters, both as DER in hexadecimal."""
    parameters = sequence(*map(bytes.fromhex, numbers))
    der = sequence(b"\x02\x01\x00", sequence(bytes.fromhex(algorithm), parameters), b"\x04\x03\x02\x01\x05")
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n"


DSA, DIFFIE_HELLMAN, RSA = "06072a8648ce380401", "06092a864886f70d010301", "06092a864886f70d010101"
NUMBER = "020117"


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize(
    "private",
    [
        of_primes(1279, 607),
        of_primes(4253, 3217),
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP521R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["RSA", "long RSA", "P-256", "P-521", "Ed25519"],
)
def test_a_certificate_with_its_key_is_taken(tmp_path: Path, private: Any, form: PrivateFormat) -> None:
    if isinstance(private, ed25519.Ed25519PrivateKey):
        form = PrivateFormat.PKCS8
    write_certificate(tmp_path / "own", private=private)
    own = (tmp_path / "own").read_text()
    assert certificate_fault(own, pem(private, form)) is None
    # The output of `openssl ecparam -genkey`, whose first block is not a key.
    around = (
        f"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{pem(private, form)}"
    )
    assert certificate_fault(own, around) is None


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_key_of_rsa_has_no_more_bits_than_workers_and_haproxy_use(chain: str, form: PrivateFormat) -> None:
    text = pem(of_primes(4423, 4253), form)
    assert len(text) <= MAX_KEY
    assert certificate_fault(chain, text) == f"has a key under tls.key of more than {MAX_RSA_BITS} bits"


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        (pem(of_primes(11213, 9689)), f"has more than {MAX_KEY} characters under tls.key"),
        (pkcs8(DSA, NUMBER, NUMBER, NUMBER), UNSUPPORTED),
        (pkcs8(DSA, f"020b{RSA}", NUMBER, NUMBER), UNSUPPORTED),
        (pkcs8(DIFFIE_HELLMAN, NUMBER, NUMBER), UNSUPPORTED),
        (pkcs8(DSA, NUMBER, NUMBER, NUMBER, label="DSA PRIVATE KEY"), UNSUPPORTED),
        ("", "has no readable private key without a passphrase under tls.key"),
    ],
)
def test_a_key_that_would_cost_work_is_refused_unread(
    monkeypatch: pytest.MonkeyPatch, chain: str, key: str, complaint: str
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("it is read")

    monkeypatch.setattr(certificates, "load_pem_private_key", read)
    assert certificate_fault(chain, key) == complaint


def test_a_chain_is_bounded(chain: str) -> None:
    longest = chain * (MAX_CHAIN // len(chain))
    private = pem(ec.generate_private_key(ec.SECP256R1()))
    assert "tls.key" in (certificate_fault(longest, private) or "")
    fault = certificate_fault(longest + chain, private)
    assert fault == f"has more than {MAX_CHAIN} characters under tls.crt"


def test_haproxy_is_to_show_what_its_agent_hands_over_and_no_more(tmp_path: Path) -> None:
    write_certificate(tmp_path / "own")
    own, key = (tmp_path / "own").read_text(), (tmp_path / "own.key").read_text()
    socket = RuntimeApi(tmp_path / "nobody.sock")

    def agent_says(chain: str) -> str:
        for name, text in (("shown", chain), ("shown.key", key)):
            (tmp_path / name).write_text(text)
        agent = CertificateFile(tmp_path / "shown", socket)
        with pytest.raises((RefusedError, UnreachableError)) as refused:
            asyncio.run(agent.reconcile(agent.read() or ""))
        return str(refused.value)

    room = MAX_PRESENTED - len(own + key)
    longest = own + "\n" * 100 + "x" * (room - 1) + "\n"
    assert presented_certificate_fault(longest, key) is None
    assert "longer" not in agent_says(longest)
    assert (
        presented_certificate_fault(f"{longest}x", key)
        == "has more than 30000 characters under tls.crt and tls.key together"
    )
    assert "longer than 30000 bytes" in agent_says(f"{longest}x")
    # The limit is the agent's, and workers' certificates for providers do not pass through the agent.
    assert certificate_fault(f"{longest}x", key) is None
