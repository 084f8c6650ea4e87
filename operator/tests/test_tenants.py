"""Which keys are accepted and until when, and that none of them is ever told."""

import hashlib
from typing import Any

import pytest

from proofgate_operator.build.config import KeyDigest
from proofgate_operator.plan.tenants import TenantKeys, read_tenant_keys
from tests.gateways import ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY, SPEC, gateway, secret, user_secrets

NEVER = "2099-12-31T00:00:00Z"
SOON = "2030-01-01T12:00:00+02:00"


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def read(acme_keys: dict[str, Any] | None = None, **tenant: Any) -> TenantKeys:
    """Read the keys with other fields of tenant acme, and with another Secret of it."""
    acme, globex = SPEC["tenants"]
    secrets = user_secrets()
    if acme_keys is not None:
        secrets["acme-keys"] = secret("acme-keys", **acme_keys)
    return read_tenant_keys(gateway(tenants=[{**acme, **tenant}, globex]), secrets)


def problem(found: TenantKeys) -> tuple[str, str]:
    (only,) = found.problems
    return only.reason, only.message


def test_every_entry_of_a_secret_is_one_key() -> None:
    found = read()
    assert found.problems == ()
    assert found.keys["acme"] == tuple(
        KeyDigest(digest) for digest in sorted([sha256(ACME_KEY), sha256(ACME_OTHER_KEY)])
    )
    assert found.keys["globex"] == (KeyDigest(sha256(GLOBEX_KEY)),)


def test_an_entry_named_hashes_holds_digests() -> None:
    found = read({"hashes": f"{'a' * 64}\n\n{'b' * 64} expires={SOON}\n"})
    assert found.problems == ()
    assert found.keys["acme"] == (KeyDigest("a" * 64), KeyDigest("b" * 64, SOON))


def test_a_key_expires_when_the_manifest_says_so_of_its_entry() -> None:
    found = read({"laptop": ACME_KEY, "service": ACME_OTHER_KEY}, apiKeyExpiry={"laptop": SOON})
    assert found.problems == () and found.notes == ()
    assert {key.digest: key.expires for key in found.keys["acme"]} == {
        sha256(ACME_KEY): SOON,
        sha256(ACME_OTHER_KEY): None,
    }


def test_a_digests_own_expiry_wins_over_the_entrys() -> None:
    hashes = f"{'a' * 64}\n{'b' * 64} expires={SOON}"
    found = read({"hashes": hashes}, apiKeyExpiry={"hashes": NEVER})
    assert found.keys["acme"] == (KeyDigest("a" * 64, NEVER), KeyDigest("b" * 64, SOON))


def test_a_time_for_an_entry_that_is_gone_is_told_and_keeps_nothing_back() -> None:
    """Taking a key out of its Secret locks a client out: nothing may keep that from the workers."""
    found = read(apiKeyExpiry={"laptop": SOON})
    assert found.problems == ()
    (note,) = found.notes
    assert note == ("spec.tenants[acme].apiKeyExpiry names laptop, which is no entry of Secret acme-keys")


def test_a_day_that_no_calendar_has_is_refused() -> None:
    reason, message = problem(read(apiKeyExpiry={"first": "2030-02-30T00:00:00Z"}))
    assert reason == "SpecInvalid"
    assert message.startswith("spec.tenants[acme].apiKeyExpiry.first is no time")


def test_one_key_with_two_times_is_refused() -> None:
    found = read({"laptop": ACME_KEY, "service": ACME_KEY}, apiKeyExpiry={"laptop": SOON})
    assert "Secret acme-keys of tenant acme holds one key twice" in problem(found)[1]


def test_a_tenant_without_a_secret_has_no_keys_and_no_problem() -> None:
    issuer = {"issuer": "https://login.example.com/", "audiences": ["proofgate"]}
    jwt = {"issuers": [{**issuer, "jwksURL": "https://login.example.com/jwks"}]}
    found = read_tenant_keys(gateway(tenants=[{"name": "tokens-only"}], jwt=jwt), {})
    assert (dict(found.keys), found.problems) == ({}, ())


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
    reason, message = problem(read({"laptop": key}))
    assert reason == "SecretInvalid"
    assert "Secret acme-keys of tenant acme: entry laptop" in message
    assert complaint in message
    assert key.strip() not in message


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("A" * 64, "line 1 is not a SHA-256 digest"),
        (f"{'a' * 64} expires=tomorrow", "line 1 has no time after expires="),
        (f"{'a' * 64} until={SOON}", "line 1 is not a SHA-256 digest"),
    ],
)
def test_a_line_that_is_no_digest_is_refused_with_its_number(line: str, complaint: str) -> None:
    assert complaint in problem(read({"hashes": line}))[1]


def test_a_key_shared_by_two_tenants_is_refused_and_names_both() -> None:
    secrets = user_secrets() | {"globex-keys": secret("globex-keys", stolen=ACME_KEY)}
    reason, message = problem(read_tenant_keys(gateway(), secrets))
    assert reason == "KeyShared"
    assert "tenant acme" in message and "tenant globex" in message
    assert ACME_KEY not in message and sha256(ACME_KEY) not in message


def test_a_key_and_the_digest_of_it_are_the_same_key() -> None:
    secrets = user_secrets() | {"globex-keys": secret("globex-keys", hashes=sha256(ACME_KEY))}
    assert problem(read_tenant_keys(gateway(), secrets))[0] == "KeyShared"


def test_a_missing_secret_is_named_with_the_field_that_names_it() -> None:
    reason, message = problem(read_tenant_keys(gateway(), user_secrets() | {"acme-keys": None}))
    assert reason == "SecretMissing"
    assert message == "Secret acme-keys, named by spec.tenants[acme].apiKeysSecretRef, does not exist"


def test_a_secret_without_keys_is_refused() -> None:
    assert problem(read({}))[1] == "Secret acme-keys of tenant acme holds no key"


def test_an_entry_that_is_not_text_is_refused() -> None:
    broken = secret("acme-keys")
    broken["data"] = {"binary": "//79"}
    found = read_tenant_keys(gateway(), user_secrets() | {"acme-keys": broken})
    assert "entry binary is not text" in problem(found)[1]
