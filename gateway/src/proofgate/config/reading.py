"""Creates a checked configuration from settings: reads every named file and checks every reference."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import SecretStr

from proofgate import _core
from proofgate.config.budget_checks import check_budgets
from proofgate.config.certificates import client_authorities, client_identities, identity, provider_cas
from proofgate.config.config import Config
from proofgate.config.credentials import (
    aws_credentials,
    forward_proxy,
    provider_headers,
    provider_keys,
    service_accounts,
)
from proofgate.config.document import Document, FieldPath
from proofgate.config.files import ReferencedFiles
from proofgate.config.key_digests import tenant_keys
from proofgate.config.policy_rules import check_policy
from proofgate.config.problems import Findings, Problem, with_line
from proofgate.config.references import check_references
from proofgate.config.refused_fields import check_refused_fields
from proofgate.config.settings import Settings
from proofgate.config.shred_keys import shred_keys
from proofgate.keys import exposure_warning

_MIN_TOKEN_LENGTH = 16


def read_config(
    source: Path, document: Document, settings: Settings, files: ReferencedFiles, findings: Findings
) -> Config:
    """Returns the configuration, which is valid only if `findings` has no problem afterwards."""
    check_references(settings, findings)
    if not findings.problems:
        check_budgets(settings, findings)
        check_refused_fields(settings, findings)
    signing_key = files.read_key_file(("ledger", "signingKeyFile"), settings.ledger.signing_key_file)
    _warn_if_exposed(source.parent / settings.ledger.signing_key_file, findings)
    config = Config(
        source=source,
        settings=settings,
        ledger_directory=_ledger_directory(source.parent, settings, findings),
        held_checkpoints=_held_checkpoints(source.parent, settings, findings),
        signing_key=SecretStr(signing_key),
        verifying_key=_verifying_key(signing_key, settings, findings),
        admin_token=_admin_token(settings, files, findings),
        routing_key=_routing_key(settings, files, findings),
        identity=identity(settings, files, findings),
        client_authorities=client_authorities(settings, files, findings),
        provider_keys=provider_keys(settings, files, findings),
        aws_credentials=aws_credentials(settings, files, findings),
        service_accounts=service_accounts(settings, files, findings),
        provider_headers=provider_headers(settings, files, findings),
        proxy=forward_proxy(settings, files, findings),
        provider_cas=provider_cas(settings, files, findings),
        client_identities=client_identities(settings, files, findings),
        tenant_keys=tenant_keys(settings, files, findings),
        key_sets=_key_sets(settings, files, findings),
        shred_keys=shred_keys(source.parent, settings, files, findings),
        files=files.digests,
        document=document,
        warnings=tuple(findings.warnings),
    )
    check_policy(settings, findings)
    return config


def _warn_if_exposed(signing_key: Path, findings: Findings) -> None:
    warning = exposure_warning(signing_key)
    if warning is not None:
        path: FieldPath = ("ledger", "signingKeyFile")
        problem = Problem("config_exposed_signing_key", path, warning)
        findings.warnings.append(with_line(findings.document, problem))


def _ledger_directory(base: Path, settings: Settings, findings: Findings) -> Path:
    directory = (base / settings.ledger.directory).absolute()
    if not directory.is_dir():
        # The directory is never created here: if the volume is not mounted, the evidence would be lost with
        # the container.
        message = f"{directory} is not a directory: create it, or mount the ledger's volume at this path"
        findings.report("config_no_directory", ("ledger", "directory"), message)
    return directory


def _held_checkpoints(base: Path, settings: Settings, findings: Findings) -> Path | None:
    held = settings.ledger.held_checkpoints
    if held is None:
        return None
    path: FieldPath = ("ledger", "heldCheckpoints", "directory")
    directory, ledger = (base / held.directory).absolute(), (base / settings.ledger.directory).absolute()
    if not directory.is_dir():
        message = f"{directory} is not a directory: create it, or mount its volume at this path"
        findings.report("config_no_directory", path, message)
    elif directory.resolve().is_relative_to(ledger.resolve()):
        message = (
            f"{directory} is in the ledger's directory: restoring an older ledger would also restore "
            "this directory"
        )
        findings.report("config_held_inside", path, message)
    return directory


def _verifying_key(signing_key: str, settings: Settings, findings: Findings) -> str:
    if not signing_key:
        return ""
    path: FieldPath = ("ledger", "signingKeyFile")
    ledger = settings.ledger
    try:
        verifying_key = _core.verifying_key(signing_key)
    except ValueError:
        # The core's message may describe the key, so it is not repeated.
        message = (
            f"{ledger.signing_key_file} contains no signing key: create one with `proofgate keys generate`"
        )
        findings.report("config_bad_signing_key", path, message)
        return ""
    named = verifying_key.split("+")[0]
    if named != ledger.name:
        message = f"the key is for the ledger {named}: rename the ledger, or create a key for {ledger.name}"
        findings.report("config_foreign_key", path, message)
    return verifying_key


def _admin_token(settings: Settings, files: ReferencedFiles, findings: Findings) -> SecretStr | None:
    name = settings.admin.token_file
    if name is None:
        return None
    return _token(("admin", "tokenFile"), name, files, findings)


def _routing_key(settings: Settings, files: ReferencedFiles, findings: Findings) -> SecretStr | None:
    proxy = settings.proxy_protocol
    if proxy is None:
        return None
    return _token(("proxyProtocol", "routingKeyFile"), proxy.routing_key_file, files, findings)


def _token(path: FieldPath, name: str, files: ReferencedFiles, findings: Findings) -> SecretStr:
    token = files.read_secret(path, name)
    if token and len(token) < _MIN_TOKEN_LENGTH:
        message = (
            f"the token in {name} is shorter than {_MIN_TOKEN_LENGTH} characters: use openssl rand -hex 32"
        )
        findings.report("config_weak_token", path, message)
    return SecretStr(token)


def _key_sets(settings: Settings, files: ReferencedFiles, findings: Findings) -> dict[str, str]:
    key_sets = {}
    for position, issuer in enumerate(settings.jwt.issuers if settings.jwt else ()):
        if issuer.jwks_file is None:
            continue
        path: FieldPath = ("jwt", "issuers", position, "jwksFile")
        known = len(findings.problems)
        text = files.read_text(path, issuer.jwks_file)
        if len(findings.problems) == known and not _is_key_set(text):
            message = f"{issuer.jwks_file} is not a JSON Web Key Set: expected an object with a list of keys"
            findings.report("config_bad_key_set", path, message)
        key_sets[issuer.issuer] = text
    return key_sets


def _is_key_set(text: str) -> bool:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and isinstance(document.get("keys"), list)
