"""TLS to providers: the settings that reach the core, and the effects of errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from certificates import write_identity
from conftest import ConfigDirectory

from proofgate.config import load

SHOWN = ("clientCertificateFile: client.crt", "clientKeyFile: client.key")


def with_fields(directory: ConfigDirectory, *fields: str) -> None:
    lines = "".join(f"\n    {field}" for field in fields)
    directory.replace(
        "    auth: {type: APIKey, apiKeyFile: openai-key}",
        f"    auth: {{type: APIKey, apiKeyFile: openai-key}}{lines}",
    )


def with_identity(directory: ConfigDirectory, passphrase: bytes | None = None) -> tuple[Path, Path]:
    with_fields(directory, *SHOWN)
    return write_identity(directory.path, name="client", passphrase=passphrase)


def test_a_client_certificate_and_its_key_reach_the_core_and_the_key_nothing_else(
    config_directory: ConfigDirectory,
) -> None:
    certificate, key = with_identity(config_directory)
    (provider,) = config_directory.core()["providers"]
    assert provider["clientCertificatePem"] == certificate.read_text()
    assert provider["clientKeyPem"] == key.read_text()
    assert not provider["keyMissing"]
    config = load(config_directory.file)
    assert key.read_text().splitlines()[1] not in repr(config)
    digest = config.digest()
    key.write_text("# written anew\n" + key.read_text())
    changed = load(config_directory.file)
    assert changed.digest() == digest
    assert changed != config
    assert {certificate, key} <= set(config.files), "the certificate and key files are watched"


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("client.crt", None, "config_file_unreadable"),
        ("client.key", None, "config_file_unreadable"),
        ("client.crt", "no PEM", "config_bad_certificate"),
        ("client.key", "no PEM", "config_bad_private_key"),
        (
            "client.key",
            "-----BEGIN PRIVATE KEY-----\nc2stdmVyeS1zZWNyZXQ=\n-----END PRIVATE KEY-----\n",
            "config_bad_private_key",
        ),
        ("client.key", "of another one", "config_foreign_private_key"),
        ("client.key", "encrypted", "config_bad_private_key"),
    ],
)
def test_a_client_certificate_that_cannot_be_used_costs_its_provider_alone(
    config_directory: ConfigDirectory, file: str, content: str | None, code: str
) -> None:
    with_identity(config_directory, b"secret" if content == "encrypted" else None)
    path = config_directory.path / file
    if content is None:
        path.unlink()
    elif content == "of another one":
        _, other = write_identity(config_directory.path, name="other")
        path.write_text(other.read_text())
    elif content != "encrypted":
        path.write_text(content)
    config = load(config_directory.file)
    (provider,) = config_directory.core()["providers"]
    assert (provider["clientCertificatePem"], provider["clientKeyPem"]) == (None, None)
    assert provider["keyMissing"]
    assert [warning.code for warning in config.warnings] == [code]
    assert config.warnings[0].message.endswith("requests for models of openai are refused")
    assert "c2stdmVyeS1zZWNyZXQ" not in str(config.warnings)


@pytest.mark.parametrize(("content", "code"), [(None, "config_file_unreadable"), ("no PEM", "config_bad_ca")])
def test_without_its_authority_a_provider_is_sent_nothing_and_the_systems_roots_are_no_substitute(
    config_directory: ConfigDirectory, content: str | None, code: str
) -> None:
    with_fields(config_directory, "caFile: authority.crt")
    if content is not None:
        config_directory.write("authority.crt", content)
    config = load(config_directory.file)
    (provider,) = config_directory.core()["providers"]
    assert (provider["caPem"], provider["keyMissing"]) == (None, True)
    assert [warning.code for warning in config.warnings] == [code]


@pytest.mark.parametrize("field", SHOWN)
def test_one_of_certificate_and_key_alone_is_refused(config_directory: ConfigDirectory, field: str) -> None:
    with_fields(config_directory, field)
    assert config_directory.codes() == ["config_half_client_certificate"]


def test_certificates_are_for_https(config_directory: ConfigDirectory) -> None:
    with_identity(config_directory)
    with_fields(config_directory, "caFile: client.crt")
    config_directory.replace("https://api.openai.com/v1/", "http://api.openai.com/v1/")
    assert set(config_directory.codes()) == {"config_unused_client_certificate", "config_unused_ca"}
