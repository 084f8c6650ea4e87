"""Accepted keys and their expiry; no message ever contains a key."""

import base64
import hashlib
from typing import Any

import pytest

from proofgate_operator.api.access import MAX_KEYS_PER_TENANT
from proofgate_operator.build.gateway_secrets import tenants_secret
from proofgate_operator.build.haproxy_maps import haproxy_maps
from proofgate_operator.build.owners import WorkerShares
from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.plan.tenants import TenantKeys, read_tenant_keys
from tests.gateways import (
    ACME_KEY,
    ACME_OTHER_KEY,
    GLOBEX_KEY,
    SPEC,
    api_keys,
    gateway,
    secret,
    user_secrets,
)

SOON = "2030-01-01T12:00:00+02:00"
LATER = "2031-01-01T00:00:00Z"


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def read(acme_keys: dict[str, Any] | None = None, keys: list[dict[str, Any]] | None = None) -> TenantKeys:
    """Read the keys, optionally with another key list and another Secret of tenant acme."""
    acme, globex = SPEC["tenants"]
    secrets = user_secrets()
    if acme_keys is not None:
        secrets["acme-keys"] = secret("acme-keys", **acme_keys)
    listed = acme["apiKeys"] if keys is None else keys
    return read_tenant_keys(gateway(tenants=[{**acme, "apiKeys": listed}, globex]), secrets, {})


def fault(found: TenantKeys) -> tuple[str, str]:
    (only,) = found.faults
    assert only.field == "spec.tenants[acme]"
    return only.reason, only.message


def test_every_item_of_the_list_is_one_key() -> None:
    found = read()
    assert found.faults == ()
    assert found.keys["acme"] == tuple(
        KeyDigest(digest) for digest in sorted([sha256(ACME_KEY), sha256(ACME_OTHER_KEY)])
    )
    assert found.keys["globex"] == (KeyDigest(sha256(GLOBEX_KEY)),)


def test_an_entry_that_the_list_does_not_name_is_no_key() -> None:
    found = read(keys=api_keys("acme-keys", "first"))
    assert found.keys["acme"] == (KeyDigest(sha256(ACME_KEY)),)


def test_a_key_that_was_never_in_the_cluster_is_given_by_its_digest() -> None:
    found = read(
        keys=[{"name": "a", "sha256": "a" * 64}, {"name": "b", "sha256": "b" * 64, "notAfter": SOON}]
    )
    assert found.faults == ()
    assert found.keys["acme"] == (KeyDigest("a" * 64), KeyDigest("b" * 64, SOON))


def test_a_digest_of_a_word_from_examples_is_no_key() -> None:
    found = read(keys=[{"name": "a", "sha256": sha256("test")}, {"name": "b", "sha256": "b" * 64}])
    assert found.keys["acme"] == (KeyDigest("b" * 64),)
    reason, message = fault(found)
    assert reason == "KeyWellKnown"
    assert message.startswith("spec.tenants[acme].apiKeys[a].sha256 is the SHA-256 of a word")


def test_a_key_expires_when_its_item_says_so() -> None:
    first, second = api_keys("acme-keys", "first", "second")
    found = read(keys=[{**first, "notAfter": SOON}, second])
    assert found.faults == ()
    assert {key.digest: key.not_after for key in found.keys["acme"]} == {
        sha256(ACME_KEY): SOON,
        sha256(ACME_OTHER_KEY): None,
    }


def test_a_day_that_no_calendar_has_is_refused() -> None:
    first, second = api_keys("acme-keys", "first", "second")
    found = read(keys=[{**first, "notAfter": "2030-02-30T00:00:00Z"}, second])
    assert [key.digest for key in found.keys["acme"]] == [sha256(ACME_OTHER_KEY)], (
        "an invalid date does not mean no expiry"
    )
    reason, message = fault(found)
    assert reason == "SpecInvalid"
    assert message.startswith("spec.tenants[acme].apiKeys[first].notAfter is not a time such as")


@pytest.mark.parametrize("order", [1, -1])
def test_of_one_key_with_two_times_the_earlier_one_counts(order: int) -> None:
    twice = [{"name": "a", "sha256": sha256(ACME_KEY), "notAfter": LATER}, *api_keys("acme-keys", "first")]
    twice[1]["notAfter"] = SOON
    found = read(keys=twice[::order])
    assert [key.not_after for key in found.keys["acme"]] == [SOON]
    reason, message = fault(found)
    assert reason == "KeyTwice" and "is the same key as" in message


def test_a_tenant_without_a_list_has_no_keys_and_no_problem() -> None:
    issuer = {"issuer": "https://login.example.com/", "audiences": ["proofgate"]}
    jwt = {"issuers": [{**issuer, "jwksURL": "https://login.example.com/jwks"}]}
    found = read_tenant_keys(gateway(tenants=[{"name": "tokens-only"}], jwt=jwt), {}, {})
    assert (dict(found.keys), found.faults) == ({}, ())


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("sk-too-short", "shorter than 20 characters"),
        (ACME_KEY + "\n", "a text that contains whitespace or a line end"),
        ("sk test with spaces in it", "contains whitespace"),
        ("sk-test-käse-0123456789abc", "a character that a bearer token cannot have"),
        ("sk-test-comma,0123456789abc", "a character that a bearer token cannot have"),
    ],
)
def test_a_key_that_cannot_work_is_named_by_its_secret_and_tenant(key: str, complaint: str) -> None:
    reason, message = fault(read({"first": key}, api_keys("acme-keys", "first")))
    assert reason == "SecretInvalid"
    assert "Secret acme-keys, named by spec.tenants[acme].apiKeys[first].secretRef" in message
    assert complaint in message
    assert key.strip() not in message


@pytest.mark.parametrize("by_digest", [False, True], ids=["key", "digest"])
@pytest.mark.parametrize("holder", ["acme", "globex", None])
def test_a_key_that_two_tenants_claim_stays_with_the_one_that_has_it(
    by_digest: bool, holder: str | None
) -> None:
    """A user who can write a Secret can neither disable another tenant's key nor take it over."""
    acme, globex = SPEC["tenants"]
    secrets = user_secrets() | {"globex-keys": secret("globex-keys", only=GLOBEX_KEY, stolen=ACME_KEY)}
    shared = sha256(ACME_KEY)
    copy = [{"name": "stolen", "sha256": shared}] if by_digest else api_keys("globex-keys", "stolen")
    subject = gateway(tenants=[acme, {**globex, "apiKeys": [*globex["apiKeys"], *copy]}])
    found = read_tenant_keys(subject, secrets, {shared: holder} if holder else {})
    assert [name for name in found.keys if shared in {key.digest for key in found.keys[name]}] == (
        [holder] if holder else []
    )
    assert {key.digest for key in found.keys["acme"]} >= {sha256(ACME_OTHER_KEY)}
    assert {key.digest for key in found.keys["globex"]} >= {sha256(GLOBEX_KEY)}
    without = {"acme", "globex"} - {holder}
    assert {told.field for told in found.faults} == {f"spec.tenants[{name}]" for name in without}
    for told in found.faults:
        assert told.reason == "KeyShared"
        assert "spec.tenants[acme].apiKeys[first]" in told.message
        assert "spec.tenants[globex].apiKeys[stolen]" in told.message
        assert ACME_KEY not in told.message and shared not in told.message


def test_workers_get_the_name_of_each_key_in_the_comment_of_its_line() -> None:
    listed = [
        {"name": "ci", "sha256": "a" * 64, "notAfter": SOON},
        {"name": "cd", "sha256": "b" * 64},
    ]
    subject = gateway(tenants=[{**SPEC["tenants"][0], "apiKeys": listed}])
    found = read_tenant_keys(subject, {}, {})
    made = tenants_secret(subject, found.keys, {}, WorkerShares(0), "key")
    lines = base64.b64decode(made["data"]["acme.keys"]).decode().splitlines()
    assert lines == [f"{'a' * 64} expires={SOON} # name=ci", f"{'b' * 64} # name=cd"]


@pytest.mark.parametrize("name", ["key-{}", "{:063}"])
def test_the_keys_of_as_many_tenants_as_there_may_be_fit_into_a_secret(name: str) -> None:
    named = [
        {
            "name": f"{number:063}",
            "apiKeys": [
                {
                    "name": name.format(key),
                    # A key from a Secret needs more space, because its source is written too.
                    "secretRef": {"name": "keys", "key": f"{number}-{key}"},
                    "notAfter": "2030-01-01T12:00:00.000000000+02:00",
                }
                for key in range(MAX_KEYS_PER_TENANT)
            ],
        }
        for number in range(128)
    ]
    subject = gateway(tenants=named, loadBalancer={"affinity": "Required"})
    texts = {
        f"{n}-{key}": f"sk-test-{n}-{key}-0123456789"
        for n in range(128)
        for key in range(MAX_KEYS_PER_TENANT)
    }
    found = read_tenant_keys(subject, {"keys": secret("keys", **texts)}, {})
    assert sum(map(len, found.keys.values())) == 128 * MAX_KEYS_PER_TENANT
    maps = haproxy_maps(subject, found.keys, 64, WorkerShares(0), "key")
    made = tenants_secret(subject, found.keys, maps, WorkerShares(0), "key")
    assert sum(len(base64.b64decode(entry)) for entry in made["data"].values()) < 1 << 20
    # To save space, the files omit the keys' names, but no key.
    files = [
        base64.b64decode(entry).decode() for file, entry in made["data"].items() if file.endswith(".keys")
    ]
    assert sum(file.count("\n") for file in files) == 128 * MAX_KEYS_PER_TENANT
    assert not any("name=" in file for file in files)


def test_what_is_wrong_with_an_entry_costs_that_entry_alone() -> None:
    entries = {"first": ACME_KEY, "second": "sk-too-short"}
    found = read(
        entries, [*api_keys("acme-keys", "first", "second", "third"), {"name": "d", "sha256": "a" * 64}]
    )
    assert {key.digest for key in found.keys["acme"]} == {sha256(ACME_KEY), "a" * 64}
    assert len(found.faults) == 2
    assert found.keys["globex"]


def test_a_missing_secret_is_named_with_the_field_that_names_it() -> None:
    subject = gateway(tenants=[{**SPEC["tenants"][0], "apiKeys": api_keys("acme-keys", "first")}])
    reason, message = fault(read_tenant_keys(subject, {"acme-keys": None}, {}))
    assert reason == "SecretMissing"
    assert message == (
        "Secret acme-keys, named by spec.tenants[acme].apiKeys[first].secretRef, does not exist"
    )


def test_a_list_without_keys_locks_its_tenant_out_and_is_told() -> None:
    found = read(keys=[])
    assert fault(found) == ("NoKeys", "spec.tenants[acme].apiKeys has no key: the tenant is locked out")
    assert found.keys["acme"] == () and found.keys["globex"]


def test_an_entry_that_is_not_text_is_refused() -> None:
    broken = secret("acme-keys", second=ACME_OTHER_KEY)
    broken["data"]["first"] = "//79"
    found = read_tenant_keys(gateway(), user_secrets() | {"acme-keys": broken}, {})
    assert "has no text under first" in fault(found)[1]
