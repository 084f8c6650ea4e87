"""Expiring keys, quotas, token issuers, TLS and web origins: loaded settings, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from certificates import write_identity
from conftest import ACME_HASH, ConfigDirectory

from proofgate import _core
from proofgate.config import load
from proofgate.config.key_digests import KeyDigest
from proofgate.limit_kinds import LIMIT_KINDS

GLOBEX_HASH = _core.hash_api_key("globex-key")
NEW_YEAR = 1798675200  # 2026-12-31T00:00:00Z
ISSUER = "issuer: https://login.example.com/, audiences: [proofgate]"


def with_jwt(directory: ConfigDirectory, *issuers: str) -> None:
    directory.append("jwt:\n  issuers:\n" + "".join(f"    - {{{issuer}}}\n" for issuer in issuers))


def acme_keys(directory: ConfigDirectory) -> tuple[KeyDigest, ...]:
    return load(directory.file).tenant_keys["acme"]


@pytest.mark.parametrize(
    "date",
    [
        "2026-12-31T00:00:00Z",
        "'2026-12-31T00:00:00Z'",
        "2026-12-31t00:00:00z",
        "2026-12-31T01:30:00+01:30",
        "2026-12-31T00:00:00.999Z",
    ],
)
def test_a_key_may_expire(config_directory: ConfigDirectory, date: str) -> None:
    keys = f"keys: [{{hash: {ACME_HASH}, expiresAt: {date}}}]"
    config_directory.replace(f"keyHashes: [{ACME_HASH}]", keys)
    assert acme_keys(config_directory) == (KeyDigest(ACME_HASH, NEW_YEAR),)
    assert config_directory.core()["tenants"][0]["keys"] == [
        {"hash": ACME_HASH, "expiresAt": NEW_YEAR, "name": None}
    ]


@pytest.mark.parametrize(
    "date",
    [
        *("2026-12-31", "2026-12-31T00:00:00", "2026-12-31 00:00:00Z", "20261231T000000Z", "tomorrow"),
        *("2026-13-31T00:00:00Z", "2026-12-31T25:00:00Z", "1798675200", "1969-12-31T23:59:59Z", "null1"),
    ],
)
def test_an_expiry_that_is_no_rfc_3339_date_is_refused(config_directory: ConfigDirectory, date: str) -> None:
    keys = f"keys: [{{hash: {ACME_HASH}, expiresAt: {date}}}]"
    config_directory.replace(f"keyHashes: [{ACME_HASH}]", keys)
    (problem,) = config_directory.problems().problems
    assert (problem.code, problem.line) == ("config_invalid_value", 25)
    assert problem.path == ("tenants", 0, "keys", 0, "expiresAt")


def test_a_file_of_key_hashes_may_say_when_each_expires(config_directory: ConfigDirectory) -> None:
    lines = f"# spring\n{GLOBEX_HASH} expires=2026-12-31T00:00:00Z  # rotated\n\n{ACME_HASH[::-1]}\n"
    config_directory.write("globex-keys", lines)
    assert set(load(config_directory.file).tenant_keys["globex"]) == {
        KeyDigest(GLOBEX_HASH, NEW_YEAR),
        KeyDigest(ACME_HASH[::-1], None),
    }


@pytest.mark.parametrize(
    "line",
    [
        f"{GLOBEX_HASH} expires=soon",
        f"{GLOBEX_HASH} until=2026-12-31T00:00:00Z",
        f"{GLOBEX_HASH} 2026-12-31T00:00:00Z",
        f"{GLOBEX_HASH} expires=2026-12-31T00:00:00Z twice",
        f"expires=2026-12-31T00:00:00Z {GLOBEX_HASH}",
        "sk-very-secret expires=2026-12-31T00:00:00Z",
    ],
)
def test_a_line_that_is_no_hash_with_an_expiry_is_refused(
    config_directory: ConfigDirectory, line: str
) -> None:
    config_directory.write("globex-keys", f"# keys\n{line}\n")
    (problem,) = config_directory.problems().problems
    assert problem.code == "config_bad_hash"
    assert "line 2 of globex-keys is not" in problem.message


def test_one_key_given_twice_has_one_expiry(config_directory: ConfigDirectory) -> None:
    config_directory.write("globex-keys", f"{GLOBEX_HASH}\n{GLOBEX_HASH}\n")
    assert load(config_directory.file).tenant_keys["globex"] == (KeyDigest(GLOBEX_HASH, None),)
    config_directory.write("globex-keys", f"{GLOBEX_HASH}\n{GLOBEX_HASH} expires=2026-12-31T00:00:00Z\n")
    assert config_directory.codes() == ["config_two_expiries"]


def test_a_key_may_have_a_name(config_directory: ConfigDirectory) -> None:
    keys = f"keys: [{{hash: {ACME_HASH}, name: ci}}, {{hash: {ACME_HASH[::-1]}}}]"
    config_directory.replace(f"keyHashes: [{ACME_HASH}]", keys)
    assert set(acme_keys(config_directory)) == {
        KeyDigest(ACME_HASH, None, "ci"),
        KeyDigest(ACME_HASH[::-1], None),
    }
    names = {key["hash"]: key["name"] for key in config_directory.core()["tenants"][0]["keys"]}
    assert names == {ACME_HASH: "ci", ACME_HASH[::-1]: None}


@pytest.mark.parametrize("name", ["''", "two words", f"'{'a' * 64}'", "-a", "a/b", "é"])
def test_a_name_of_a_key_is_short_and_plain(config_directory: ConfigDirectory, name: str) -> None:
    keys = f"keys: [{{hash: {ACME_HASH}, name: {name}}}]"
    config_directory.replace(f"keyHashes: [{ACME_HASH}]", keys)
    (problem,) = config_directory.problems().problems
    assert problem.path == ("tenants", 0, "keys", 0, "name")


@pytest.mark.parametrize(
    ("rest", "name"),
    [
        ("# name=ci", "ci"),
        ("expires=2026-12-31T00:00:00Z #name=ci since May", "ci"),
        ("# of the build, name=ci", None),
        ("# name=", None),
        (f"# name={'a' * 64}", None),
        ("# Name=ci", None),
    ],
)
def test_a_comment_that_begins_with_a_name_names_the_key_and_any_other_is_a_comment(
    config_directory: ConfigDirectory, rest: str, name: str | None
) -> None:
    config_directory.write("globex-keys", f"{GLOBEX_HASH} {rest}\n")
    (key,) = load(config_directory.file).tenant_keys["globex"]
    assert (key.hash, key.name) == (GLOBEX_HASH, name)


def test_one_key_given_twice_has_one_name(config_directory: ConfigDirectory) -> None:
    config_directory.write("globex-keys", f"{GLOBEX_HASH}\n{GLOBEX_HASH} # name=ci\n{GLOBEX_HASH}\n")
    assert load(config_directory.file).tenant_keys["globex"] == (KeyDigest(GLOBEX_HASH, None, "ci"),)
    config_directory.write("globex-keys", f"{GLOBEX_HASH} # name=ci\n{GLOBEX_HASH} # name=cd\n")
    assert config_directory.codes() == ["config_two_names"]


def test_quotas_and_endpoints_reach_the_core(config_directory: ConfigDirectory) -> None:
    config_directory.replace(
        "  - name: acme",
        "  - name: acme\n"
        "    limits: {requestsPerMinute: 600, tokensPerMinute: 100000, tokensPerDay: 2000000,\n"
        "             concurrency: 64}\n"
        "    keyLimits: {requestsPerMinute: 60}\n"
        "    endpoints: [ChatCompletions]",
    )
    tenant = config_directory.core()["tenants"][0]
    assert tenant["limits"] == dict.fromkeys(kind.alias for kind in LIMIT_KINDS) | {
        "requestsPerMinute": 600,
        "tokensPerMinute": 100000,
        "tokensPerDay": 2000000,
        "concurrency": 64,
    }
    assert tenant["keyLimits"]["requestsPerMinute"] == 60
    assert tenant["keyLimits"]["concurrency"] is None
    assert tenant["endpoints"] == ["ChatCompletions"]


@pytest.mark.parametrize(
    "field",
    [
        *("limits: {requestsPerMinute: 0}", "limits: {concurrency: -1}", "keyLimits: {tokensPerDay: 1.5}"),
        *("limits: {tokensPerMinute: '9'}", "limits: {requestsPerSecond: 5}", "endpoints: [embeddings]"),
        *("keys: [{expiresAt: 2026-12-31T00:00:00Z}]", "policy: {mode: dry_run}"),
    ],
)
def test_what_a_tenant_cannot_have_is_refused_with_its_line(
    config_directory: ConfigDirectory, field: str
) -> None:
    config_directory.replace("  - name: acme", f"  - name: acme\n    {field}")
    (problem,) = config_directory.problems().problems
    assert (problem.path[:2], problem.line) == (("tenants", 0), 25)


def test_a_tenant_needs_no_key_when_tokens_are_believed(config_directory: ConfigDirectory) -> None:
    config_directory.replace(f"    keyHashes: [{ACME_HASH}]\n", "")
    assert config_directory.codes() == ["config_no_keys"]
    with_jwt(config_directory, f"{ISSUER}, jwksURL: https://login.example.com/jwks")
    assert acme_keys(config_directory) == ()


def test_an_issuer_reaches_the_core_without_where_its_keys_are(config_directory: ConfigDirectory) -> None:
    config_directory.write("jwks.json", '{"keys": []}')
    with_jwt(
        config_directory,
        f"{ISSUER}, jwksURL: 'https://login.example.com/jwks?tenant=1'",
        "issuer: other, audiences: [a, b], jwksFile: jwks.json, algorithms: [EdDSA], tenantClaim: org,"
        " leewaySeconds: 0, refreshSeconds: 10",
    )
    first, second = config_directory.core()["jwt"]["issuers"]
    assert first == {
        "issuer": "https://login.example.com/",
        "audiences": ["proofgate"],
        "algorithms": ["RS256", "ES256", "EdDSA"],
        "tenantClaim": "tenant",
        "leewaySeconds": 60,
    }
    assert second == {
        "issuer": "other",
        "audiences": ["a", "b"],
        "algorithms": ["EdDSA"],
        "tenantClaim": "org",
        "leewaySeconds": 0,
    }
    assert load(config_directory.file).key_sets == {"other": '{"keys": []}'}


@pytest.mark.parametrize(
    ("issuer", "code"),
    [
        (ISSUER, "config_key_set_source"),
        (f"{ISSUER}, jwksURL: https://a/k, jwksFile: jwks.json", "config_key_set_source"),
        (f"{ISSUER}, jwksFile: nowhere.json", "config_file_unreadable"),
        (f"{ISSUER}, jwksFile: openai-key", "config_bad_key_set"),
        (f"{ISSUER}, jwksURL: http://login.example.com/jwks", "config_invalid_value"),
        (f"{ISSUER}, jwksURL: http://127.0.0.1.example.com/jwks", "config_invalid_value"),
        (f"{ISSUER}, jwksURL: 'https://me:sk-very-secret@a/k'", "config_invalid_value"),
        (f"{ISSUER}, jwksURL: 'https://a:99999/k'", "config_invalid_value"),
        (f"{ISSUER}, jwksURL: ftp://a/k", "config_invalid_value"),
        (f"{ISSUER}, jwksURL: https://a/k, algorithms: [HS256]", "config_invalid_value"),
        (f"{ISSUER}, jwksURL: https://a/k, algorithms: []", "config_invalid_value"),
        (f"{ISSUER}, jwksURL: https://a/k, refreshSeconds: 1", "config_invalid_value"),
        ("issuer: x, audiences: [], jwksURL: https://a/k", "config_invalid_value"),
        ("audiences: [x], jwksURL: https://a/k", "config_missing_field"),
        (f"{ISSUER}, jwksUrl: https://a/k", "config_unknown_field"),
    ],
)
def test_an_issuer_that_cannot_be_believed_is_refused(
    config_directory: ConfigDirectory, issuer: str, code: str
) -> None:
    config_directory.write("jwks.json", '{"keys": []}')
    with_jwt(config_directory, issuer)
    (problem,) = config_directory.problems().problems
    assert (problem.code, problem.line) == (code, 34)


@pytest.mark.parametrize("host", ["127.0.0.1:9001", "localhost", "[::1]:80"])
def test_plain_http_is_for_this_machine_only(config_directory: ConfigDirectory, host: str) -> None:
    with_jwt(config_directory, f"{ISSUER}, jwksURL: 'http://{host}/jwks'")
    load(config_directory.file)


def test_one_issuer_is_configured_once(config_directory: ConfigDirectory) -> None:
    with_jwt(config_directory, *[f"{ISSUER}, jwksURL: https://a/k"] * 2)
    assert config_directory.codes() == ["config_duplicate_name"]


def with_tls(directory: ConfigDirectory, certificate: Path, key: Path) -> None:
    directory.append(f"tls: {{certificateFile: {certificate.name}, privateKeyFile: {key.name}}}\n")


def test_a_certificate_and_its_key_reach_the_core(config_directory: ConfigDirectory) -> None:
    certificate, key = write_identity(config_directory.path)
    with_tls(config_directory, certificate, key)
    assert config_directory.core()["tls"] == {
        "certificatePem": certificate.read_text(),
        "privateKeyPem": key.read_text(),
        "minVersion": "1.2",
        "clientCaPem": None,
        "clientNames": [],
        "acceptPlain": False,
    }
    config = load(config_directory.file)
    body = key.read_text().splitlines()[1]
    assert body not in repr(config)


def with_mutual_tls(directory: ConfigDirectory, more: str) -> None:
    certificate, key = write_identity(directory.path)
    named = f"certificateFile: {certificate.name}, privateKeyFile: {key.name}"
    directory.append(f"tls: {{{named}, {more}}}\n")


def test_whom_clients_have_to_be_reaches_the_core(config_directory: ConfigDirectory) -> None:
    authority, _ = write_identity(config_directory.path, name="authority")
    config_directory.write("routing.key", "0123456789abcdef\n")
    config_directory.append("proxyProtocol: {routingKeyFile: routing.key}\n")
    more = "clientCaFile: authority.crt, clientNames: [balancer.test], acceptPlain: true"
    with_mutual_tls(config_directory, more)
    core = config_directory.core()["tls"]
    assert core["clientCaPem"] == authority.read_text()
    assert core["clientNames"] == ["balancer.test"]
    assert core["acceptPlain"] is True
    before = load(config_directory.file).digest()
    write_identity(config_directory.path, name="authority")
    assert load(config_directory.file).digest() != before, (
        "another authority changes the configuration's digest"
    )


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("clientCaFile: nothing.crt", "config_file_unreadable"),
        ("clientCaFile: tls.key", "config_bad_ca"),
        ("clientNames: [balancer.test]", "config_unused_client_names"),
        ("clientCaFile: tls.crt, clientNames: ['two words']", "config_invalid_value"),
        ("acceptPlain: true", "config_plain_clients"),
    ],
)
def test_clients_that_cannot_be_known_are_refused(
    config_directory: ConfigDirectory, more: str, code: str
) -> None:
    with_mutual_tls(config_directory, more)
    assert config_directory.codes() == [code]


def test_a_new_private_key_is_no_part_of_the_digest_and_a_certificate_is(
    config_directory: ConfigDirectory,
) -> None:
    certificate, key = write_identity(config_directory.path)
    before = load(config_directory.file).digest()
    with_tls(config_directory, certificate, key)
    digest = load(config_directory.file).digest()
    assert digest != before
    key.write_text("# renewed\n" + key.read_text())
    assert load(config_directory.file).digest() == digest
    write_identity(config_directory.path)
    assert load(config_directory.file).digest() != digest


def test_a_key_of_another_certificate_is_refused(config_directory: ConfigDirectory) -> None:
    certificate, _ = write_identity(config_directory.path)
    _, key = write_identity(config_directory.path, name="other")
    with_tls(config_directory, certificate, key)
    (problem,) = config_directory.problems().problems
    assert (problem.code, problem.line) == ("config_foreign_private_key", 32)
    assert "other.key and tls.crt do not match" in problem.message


def test_an_encrypted_key_is_refused_without_a_question(config_directory: ConfigDirectory) -> None:
    with_tls(config_directory, *write_identity(config_directory.path, passphrase=b"secret"))
    assert config_directory.codes() == ["config_bad_private_key"]
    assert "is encrypted" in str(config_directory.problems())


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("tls.crt", "", "config_bad_certificate"),
        (
            "tls.crt",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "config_bad_certificate",
        ),
        ("tls.key", "", "config_bad_private_key"),
        (
            "tls.key",
            "-----BEGIN PRIVATE KEY-----\nc2stdmVyeS1zZWNyZXQ=\n-----END PRIVATE KEY-----\n",
            "config_bad_private_key",
        ),
    ],
)
def test_what_is_no_certificate_or_key_is_refused_and_not_quoted(
    config_directory: ConfigDirectory, file: str, content: str, code: str
) -> None:
    with_tls(config_directory, *write_identity(config_directory.path))
    config_directory.write(file, content)
    assert config_directory.codes() == [code]
    assert "c2stdmVyeS1zZWNyZXQ" not in str(config_directory.problems())


def test_web_origins_reach_the_core(config_directory: ConfigDirectory) -> None:
    origins = ["https://app.example.com", "http://localhost:3000"]
    config_directory.append(f"cors: {{allowedOrigins: {json.dumps(origins)}, maxAgeSeconds: 0}}\n")
    assert config_directory.core()["cors"] == {"allowedOrigins": origins, "maxAgeSeconds": 0}


@pytest.mark.parametrize(
    "origins",
    [
        *("[]", "['*', 'https://a.example']", "['https://a.example/']", "['https://A.example']"),
        *("['a.example']", "['https://a.example:443']", "['https://a.example/x']", "['null']"),
    ],
)
def test_an_origin_that_no_browser_sends_is_refused(config_directory: ConfigDirectory, origins: str) -> None:
    config_directory.append(f"cors: {{allowedOrigins: {origins}}}\n")
    (problem,) = config_directory.problems().problems
    assert (problem.code, problem.line) == ("config_invalid_value", 32)
