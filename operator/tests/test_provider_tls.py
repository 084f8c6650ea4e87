"""TLS to providers: from Secrets to the workers, and the messages about invalid certificates and keys."""

import base64
from pathlib import Path
from typing import Any

import pytest
from proofgate.preflight import require_usable

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.build import worker_config
from tests.certificates import write_certificate
from tests.gateways import DEFAULTS, SPEC, gateway, secret
from tests.worker_files import load_worker_config
from tests.world import World

TLS = {
    "caSecretRef": {"name": "authority", "key": "ca.crt"},
    "clientCertificateSecretRef": {"name": "client"},
}
PROVIDER = {**SPEC["providers"][0], "tls": TLS}


def tls_secret(name: str, **entries: str) -> dict[str, Any]:
    """Return a Secret; an underscore in an entry's name becomes a dot."""
    data = {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in entries.items()}
    return {**secret(name), "data": data}


@pytest.fixture
def pem(tmp_path: Path) -> dict[str, str]:
    """Return certificates and keys by name."""
    folder = tmp_path / "pem"
    folder.mkdir()
    for name in ("own", "other"):
        write_certificate(folder / name, name=name)
    return {path.name: path.read_text() for path in folder.iterdir()}


def secrets_of(pem: dict[str, str], **changes: str) -> dict[str, dict[str, Any]]:
    texts = {"ca_crt": pem["other"], "tls_crt": pem["own"], "tls_key": pem["own.key"], **changes}
    return {
        "authority": tls_secret("authority", ca_crt=texts["ca_crt"]),
        "client": tls_secret("client", tls_crt=texts["tls_crt"], tls_key=texts["tls_key"]),
    }


def test_certificates_reach_the_worker_as_files_and_no_config_map(
    tmp_path: Path, pem: dict[str, str]
) -> None:
    config = load_worker_config(tmp_path, secrets_of(pem), providers=[PROVIDER])
    require_usable(config)
    assert not config.warnings
    assert config.provider_cas == {"openai": pem["other"]}
    shown = config.client_identities["openai"]
    assert shown is not None and shown.certificate_pem == pem["own"]
    assert shown.private_key_pem.get_secret_value() == pem["own.key"]
    content = worker_config.worker_config(gateway(providers=[PROVIDER]), 1 << 30, DEFAULTS)
    assert "-----BEGIN" not in str(content)


def test_authorities_may_stand_in_a_config_map(tmp_path: Path, pem: dict[str, str]) -> None:
    provider = {**PROVIDER, "tls": {"caConfigMapRef": {"name": "bundle", "key": "root.pem"}}}
    bundle = {"kind": "ConfigMap", "metadata": {"name": "bundle"}, "data": {"root.pem": pem["other"]}}
    config = load_worker_config(tmp_path / "there", {"bundle": bundle}, providers=[provider])
    assert config.provider_cas == {"openai": pem["other"]}
    absent = load_worker_config(tmp_path / "absent", providers=[provider])
    assert absent.provider_cas == {"openai": None}
    assert [warning.code for warning in absent.warnings] == ["config_file_unreadable"]


@pytest.mark.parametrize(
    ("entry", "text", "reason", "complaint"),
    [
        (None, "authority", "SecretMissing", "tls.caSecretRef, does not exist"),
        (None, "client", "SecretMissing", "tls.clientCertificateSecretRef, does not exist"),
        ("ca_crt", "", "SecretInvalid", "tls.caSecretRef, has no text under ca.crt"),
        ("tls_key", "", "SecretInvalid", "has no text under tls.key"),
        ("ca_crt", "nonsense", "CertificateInvalid", "has no readable certificate under ca.crt"),
        ("tls_crt", "nonsense", "CertificateInvalid", "has no readable certificate under tls.crt"),
        ("tls_key", "other.key", "CertificateInvalid", "does not match the first certificate in tls.crt"),
    ],
)
def test_what_cannot_be_used_is_a_condition_that_names_it_and_holds_nothing_else_back(
    pem: dict[str, str], entry: str | None, text: str, reason: str, complaint: str
) -> None:
    world = World(providers=[PROVIDER])
    changes = {} if entry is None else {entry: pem.get(text, text)}
    world.secrets |= secrets_of(pem, **changes)
    if entry is None:
        world.secrets[text] = None
    world.settle()
    status, said, message = world.condition(ConditionType.RESOLVED_REFS)
    assert (status, said) == ("False", reason)
    assert "spec.providers[openai]." in message and complaint in message
    assert "-----BEGIN" not in message


def test_certificates_that_can_be_used_are_no_condition_and_a_renewed_one_rolls_nobody(
    pem: dict[str, str],
) -> None:
    world = World(providers=[PROVIDER])
    world.secrets |= secrets_of(pem)
    world.settle()
    assert world.condition(ConditionType.RESOLVED_REFS)[0] == "True"
    world.secrets |= secrets_of(pem, tls_crt=pem["other"], tls_key=pem["other.key"])
    plan = world.plan()
    assert not {manifest["kind"] for manifest in plan.manifests_to_apply} & {"StatefulSet", "ConfigMap"}
