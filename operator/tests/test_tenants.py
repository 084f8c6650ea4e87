"""Which keys are accepted, and that none of them is ever told."""

import hashlib

import pytest

from proofgate_operator.plan.tenants import key_hashes
from tests.gateways import ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY, gateway, secret, user_secrets


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def test_every_entry_of_a_secret_is_one_key() -> None:
    hashes, problems = key_hashes(gateway(), user_secrets())
    assert problems == ()
    assert hashes["acme"] == tuple(sorted([sha256(ACME_KEY), sha256(ACME_OTHER_KEY)]))
    assert hashes["globex"] == (sha256(GLOBEX_KEY),)


def test_an_entry_named_hashes_holds_digests() -> None:
    secrets = user_secrets() | {"acme-keys": secret("acme-keys", hashes=f"{'a' * 64}\n{'b' * 64}\n")}
    hashes, problems = key_hashes(gateway(), secrets)
    assert problems == ()
    assert hashes["acme"] == ("a" * 64, "b" * 64)


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("sk-too-short", "shorter than 20 characters"),
        (ACME_KEY + "\n", "contains whitespace; a line end counts"),
        ("sk test with spaces in it", "contains whitespace"),
        ("sk-test-käse-0123456789abc", "a character that a bearer token cannot have"),
        ("sk-test-comma,0123456789abc", "a character that a bearer token cannot have"),
    ],
)
def test_a_key_that_cannot_work_is_named_by_its_secret_and_tenant(key: str, complaint: str) -> None:
    secrets = user_secrets() | {"acme-keys": secret("acme-keys", laptop=key)}
    _, (problem,) = key_hashes(gateway(), secrets)
    assert problem.reason == "SecretInvalid"
    assert "Secret acme-keys of tenant acme: entry laptop" in problem.message
    assert complaint in problem.message
    assert key.strip() not in problem.message


def test_a_digest_in_capitals_is_refused_with_its_line() -> None:
    secrets = user_secrets() | {"acme-keys": secret("acme-keys", hashes="A" * 64)}
    _, (problem,) = key_hashes(gateway(), secrets)
    assert "line 1 is not a SHA-256 digest" in problem.message


def test_a_key_shared_by_two_tenants_is_refused_and_names_both() -> None:
    secrets = user_secrets() | {"globex-keys": secret("globex-keys", stolen=ACME_KEY)}
    _, (problem,) = key_hashes(gateway(), secrets)
    assert problem.reason == "KeyShared"
    assert "tenant acme" in problem.message and "tenant globex" in problem.message
    assert ACME_KEY not in problem.message and sha256(ACME_KEY) not in problem.message


def test_a_key_and_the_digest_of_it_are_the_same_key() -> None:
    secrets = user_secrets() | {"globex-keys": secret("globex-keys", hashes=sha256(ACME_KEY))}
    _, (problem,) = key_hashes(gateway(), secrets)
    assert problem.reason == "KeyShared"


def test_a_missing_secret_is_named_with_the_field_that_names_it() -> None:
    _, (problem,) = key_hashes(gateway(), user_secrets() | {"acme-keys": None})
    assert problem.reason == "SecretMissing"
    assert problem.message == (
        "Secret acme-keys, named by spec.tenants[acme].apiKeysSecretRef, does not exist"
    )


def test_a_secret_without_keys_is_refused() -> None:
    _, (problem,) = key_hashes(gateway(), user_secrets() | {"acme-keys": secret("acme-keys")})
    assert problem.message == "Secret acme-keys of tenant acme holds no key"


def test_an_entry_that_is_not_text_is_refused() -> None:
    broken = secret("acme-keys")
    broken["data"] = {"binary": "//79"}
    _, (problem,) = key_hashes(gateway(), user_secrets() | {"acme-keys": broken})
    assert "entry binary is not text" in problem.message
