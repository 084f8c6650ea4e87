"""Which keys are accepted and until when, and that none of them is ever told."""

import base64
import hashlib
from typing import Any

import pytest

from proofgate_operator.build.config import KeyDigest, haproxy_maps, tenants_secret
from proofgate_operator.build.owners import Shares
from proofgate_operator.plan.tenants import MAX_KEYS, TenantKeys, read_tenant_keys
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
    return read_tenant_keys(gateway(tenants=[{**acme, **tenant}, globex]), secrets, {})


def fault(found: TenantKeys) -> tuple[str, str]:
    (only,) = found.faults
    assert only.field == "spec.tenants[acme]"
    return only.reason, only.message


def test_every_entry_of_a_secret_is_one_key() -> None:
    found = read()
    assert found.faults == ()
    assert found.keys["acme"] == tuple(
        KeyDigest(digest) for digest in sorted([sha256(ACME_KEY), sha256(ACME_OTHER_KEY)])
    )
    assert found.keys["globex"] == (KeyDigest(sha256(GLOBEX_KEY)),)


def test_an_entry_named_hashes_holds_digests() -> None:
    found = read({"hashes": f"{'a' * 64}\n\n{'b' * 64} expires={SOON}\n"})
    assert found.faults == ()
    assert found.keys["acme"] == (KeyDigest("a" * 64), KeyDigest("b" * 64, SOON))


def test_a_key_expires_when_the_manifest_says_so_of_its_entry() -> None:
    found = read({"laptop": ACME_KEY, "service": ACME_OTHER_KEY}, apiKeyExpiry={"laptop": SOON})
    assert found.faults == () and found.notes == ()
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
    assert found.faults == ()
    (note,) = found.notes
    assert note == ("spec.tenants[acme].apiKeyExpiry names laptop, which is no entry of Secret acme-keys")


def test_a_day_that_no_calendar_has_is_refused() -> None:
    found = read(apiKeyExpiry={"first": "2030-02-30T00:00:00Z"})
    assert [key.digest for key in found.keys["acme"]] == [sha256(ACME_OTHER_KEY)], "never for ever"
    reason, message = fault(found)
    assert reason == "SpecInvalid"
    assert message.startswith("spec.tenants[acme].apiKeyExpiry.first is no time")


def test_of_one_key_with_two_times_the_earlier_one_counts() -> None:
    found = read({"laptop": ACME_KEY, "service": ACME_KEY}, apiKeyExpiry={"laptop": SOON})
    assert "Secret acme-keys of tenant acme holds one key twice" in fault(found)[1]


def test_a_tenant_without_a_secret_has_no_keys_and_no_problem() -> None:
    issuer = {"issuer": "https://login.example.com/", "audiences": ["proofgate"]}
    jwt = {"issuers": [{**issuer, "jwksURL": "https://login.example.com/jwks"}]}
    found = read_tenant_keys(gateway(tenants=[{"name": "tokens-only"}], jwt=jwt), {}, {})
    assert (dict(found.keys), found.faults) == ({}, ())


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
    reason, message = fault(read({"laptop": key}))
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
    assert complaint in fault(read({"hashes": line}))[1]


@pytest.mark.parametrize("copy", [{"stolen": ACME_KEY}, {"hashes": sha256(ACME_KEY)}], ids=["key", "digest"])
@pytest.mark.parametrize("holder", ["acme", "globex", None])
def test_a_key_that_two_tenants_claim_stays_with_the_one_that_has_it(
    copy: dict[str, str], holder: str | None
) -> None:
    """Whoever writes a Secret can neither take another tenant's key away nor make it its own."""
    secrets = user_secrets() | {"globex-keys": secret("globex-keys", own=GLOBEX_KEY, **copy)}
    shared = sha256(ACME_KEY)
    found = read_tenant_keys(gateway(), secrets, {shared: holder} if holder else {})
    assert [name for name in found.keys if shared in {key.digest for key in found.keys[name]}] == (
        [holder] if holder else []
    )
    assert {key.digest for key in found.keys["acme"]} >= {sha256(ACME_OTHER_KEY)}
    assert {key.digest for key in found.keys["globex"]} >= {sha256(GLOBEX_KEY)}
    without = {"acme", "globex"} - {holder}
    assert {told.field for told in found.faults} == {f"spec.tenants[{name}]" for name in without}
    for told in found.faults:
        assert told.reason == "KeyShared"
        assert "tenant acme" in told.message and "tenant globex" in told.message
        assert ACME_KEY not in told.message and shared not in told.message


def test_a_tenant_with_more_keys_than_its_share_keeps_those_it_has_and_takes_nobody_elses_room() -> None:
    digests = [f"{number:064x}" for number in range(MAX_KEYS)]
    held = digests[-1]
    secrets = user_secrets() | {"acme-keys": secret("acme-keys", hashes="\n".join(digests))}
    found = read_tenant_keys(gateway(), secrets, {held: "acme"})
    assert fault(found)[0] == "TooManyKeys"
    kept = {key.digest for key in found.keys["acme"]}
    assert len(kept) == MAX_KEYS // 2 and held in kept
    assert found.keys["globex"]


def test_the_keys_of_as_many_tenants_as_there_may_be_fit_into_a_secret() -> None:
    named = [
        {"name": f"{number:063}", "apiKeysSecretRef": {"name": f"keys-{number}"}} for number in range(128)
    ]
    subject = gateway(tenants=named, loadBalancer={"affinity": "Required"})
    secrets: dict[str, Any] = {}
    for number in range(128):
        lines = [
            f"{number * 1000 + line:064x} expires=2030-01-01T12:00:00.000000000+02:00" for line in range(99)
        ]
        secrets[f"keys-{number}"] = secret(f"keys-{number}", hashes="\n".join(lines))
    found = read_tenant_keys(subject, secrets, {})
    maps = haproxy_maps(subject, found.keys, 64, Shares(0), "key")
    made = tenants_secret(subject, found.keys, maps, Shares(0), "key")
    assert sum(len(base64.b64decode(entry)) for entry in made["data"].values()) < 1 << 20


def test_of_a_secret_full_of_faults_only_some_are_told() -> None:
    found = read({"hashes": "nonsense\n" * 1000})
    assert len(found.faults) == 5
    assert found.faults[-1].message.endswith("has 996 more faults")


def test_what_is_wrong_with_an_entry_costs_that_entry_alone() -> None:
    found = read({"good": ACME_KEY, "short": "sk-too-short", "hashes": f"{'a' * 64}\nnonsense"})
    assert {key.digest for key in found.keys["acme"]} == {sha256(ACME_KEY), "a" * 64}
    assert len(found.faults) == 2
    assert found.keys["globex"]


def test_a_missing_secret_is_named_with_the_field_that_names_it() -> None:
    reason, message = fault(read_tenant_keys(gateway(), user_secrets() | {"acme-keys": None}, {}))
    assert reason == "SecretMissing"
    assert message == "Secret acme-keys, named by spec.tenants[acme].apiKeysSecretRef, does not exist"


def test_a_secret_without_keys_locks_its_tenant_out_and_is_told() -> None:
    found = read({})
    assert fault(found) == (
        "NoKeys",
        "Secret acme-keys of tenant acme holds no key: the tenant is locked out",
    )
    assert found.keys["acme"] == () and found.keys["globex"]


def test_an_entry_that_is_not_text_is_refused() -> None:
    broken = secret("acme-keys")
    broken["data"] = {"binary": "//79"}
    found = read_tenant_keys(gateway(), user_secrets() | {"acme-keys": broken}, {})
    assert "entry binary is not text" in fault(found)[1]
