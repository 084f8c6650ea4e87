"""The text forms of a signing key."""

import base64
import contextlib
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from proofgate_operator.build.ledger_key import ExternalSigningKey, InvalidSigningKey, SigningKey, read

KEY = SigningKey("proofgate.dev/team/demo", bytes(range(32)))
PUBLIC = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key().public_bytes_raw()


def test_the_verifying_form_is_that_of_signed_notes() -> None:
    name, key_hash, encoded = KEY.verifying_text.split("+", 2)
    assert name == "proofgate.dev/team/demo"
    assert key_hash == hashlib.sha256(b"proofgate.dev/team/demo\n\x01" + PUBLIC).hexdigest()[:8]
    assert base64.b64decode(encoded) == b"\x01" + PUBLIC


def test_the_signing_form_reads_back() -> None:
    assert KEY.signing_text.startswith("PRIVATE+KEY+proofgate.dev/team/demo+")
    assert read(KEY.signing_text + "\n") == KEY


def test_base64_with_a_plus_sign_reads_back() -> None:
    keys = (SigningKey("log", bytes([n]) * 32) for n in range(256))
    key = next(key for key in keys if key.signing_text.count("+") > 4)
    assert read(key.signing_text) == key


def test_a_name_as_long_as_names_may_be_reads_back() -> None:
    key = SigningKey("n" * 256, bytes(32))
    assert read(key.signing_text) == key


def test_a_key_that_follows_another_is_read_with_the_public_halves_of_those_before() -> None:
    key, former = SigningKey("a.example/b", bytes(range(32))), SigningKey("a.example/b", bytes(32))
    fields = f"old {former.verifying_text}\nnew {key.verifying_text}\nmade 1\nuntil 2"
    statement = f"proofgate.dev/key-succession@v1\n{fields}\n\n\u2014 a.example/b eA==\n"
    rolling = f"{key.signing_text}\n{former.signing_text}\n\n{statement}"
    for text in (rolling, f"{key.signing_text}\n\n{statement}"):
        found = read(text)
        assert (found.name, found.seed) == (key.name, key.seed)
        assert found.former_keys == (former.verifying_text,)


def test_a_key_that_another_process_holds_is_read_by_its_public_half_alone() -> None:
    key = read(f"SIGNER {KEY.verifying_text} /run/signer/a socket\n")
    assert key == ExternalSigningKey(KEY.name, PUBLIC, socket="/run/signer/a socket")
    assert key.verifying_text == KEY.verifying_text and read(key.signing_text) == key
    former = SigningKey("proofgate.dev/team/demo", bytes(32))
    statement = f"proofgate.dev/key-succession@v1\nold {former.verifying_text}\nnew {key.verifying_text}\n"
    rolling = read(f"{key.signing_text}\n{former.signing_text}\n\n{statement}")
    assert (rolling.verifying_text, rolling.former_keys) == (KEY.verifying_text, (former.verifying_text,))
    assert read(f"{former.signing_text}\n{key.signing_text}").verifying_text == former.verifying_text


@given(st.text(), st.sampled_from(["", "SIGNER ", "PRIVATE+KEY+", f"SIGNER {KEY.verifying_text} "]))
def test_any_text_is_a_key_or_is_refused(text: str, before: str) -> None:
    with contextlib.suppress(InvalidSigningKey):
        assert read(before + text).name


def test_a_key_does_not_show_its_seed() -> None:
    assert "seed" not in repr(KEY) and str(bytes(range(32))) not in repr(KEY)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "does not have the form"),
        (KEY.verifying_text, "does not have the form"),
        ("PRIVATE+KEY+log+00000000+%%%", "not base64"),
        ("PRIVATE+KEY+log+00000000+" + base64.b64encode(b"\x02" + bytes(32)).decode(), "not an Ed25519 key"),
        (
            "PRIVATE+KEY+log+00000000+" + base64.b64encode(b"\x01" + bytes(32)).decode(),
            "hash does not match",
        ),
        ("SIGNER", "does not have the form PRIVATE"),
        (f"SIGNER {KEY.verifying_text}", "does not have the form SIGNER"),
        (f"SIGNER {KEY.verifying_text} run/signer", "does not have the form SIGNER"),
        ("SIGNER log /run/signer", "does not have the form SIGNER"),
        ("SIGNER log+00000000+%%% /run/signer", "not base64"),
        ("SIGNER log+00000000+\u00e9 /run/signer", "not base64"),
        (f"SIGNER log+{KEY.hash}{KEY.verifying_text[-45:]} /run/signer", "hash does not match"),
        (f"SIGNER {KEY.verifying_text} /{'x' * 107}", "more than 107 bytes"),
        (SigningKey("n" * 257, bytes(32)).signing_text, "1 to 256 characters"),
        (SigningKey("two words", bytes(32)).signing_text, "without spaces"),
        (SigningKey("turned\u202eround", bytes(32)).signing_text, "all printable"),
        (ExternalSigningKey("n" * 257, PUBLIC, socket="/run/signer").signing_text, "1 to 256 characters"),
    ],
)
def test_what_is_no_signing_key_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSigningKey, match=complaint):
        read(text)
