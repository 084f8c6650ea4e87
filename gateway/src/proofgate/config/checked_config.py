"""A checked configuration: the settings, and everything that stands in the files they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from proofgate.config.access import Issuer
from proofgate.config.certificates import TlsIdentity
from proofgate.config.document import Document, FieldPath
from proofgate.config.key_digests import KeyDigest
from proofgate.config.problems import Problem, with_line
from proofgate.config.settings import Settings
from proofgate.forward_proxy import ForwardProxy


@dataclass(frozen=True)
class AwsCredentials:
    """What requests to a provider are signed with. Its representation shows no secret."""

    access_key_id: SecretStr
    secret_access_key: SecretStr
    session_token: SecretStr | None


@dataclass(frozen=True)
class CheckedConfig:
    """Everything that a worker is started with, as data. Its representation shows no secret.

    Two are equal when they mean the same, whatever their files look like. `key_sets` are those of `jwksFile`,
    by issuer; `provider_keys`, `aws_credentials`, `service_accounts`, `provider_cas`, `client_identities`
    and `provider_headers` those of providers that want some, None where they are missing; `proxy` the
    egress proxy; `shred_keys` the ids of each tenant's,
    None where salts are stored whole; `files` the files that were read, with the digests of what they held;
    `warnings` what is wrong and costs one provider or tenant alone, `content` the file as it was read.
    """

    source: Path
    settings: Settings
    ledger_directory: Path
    held_checkpoints: Path | None
    signing_key: SecretStr
    verifying_key: str
    admin_token: SecretStr | None
    routing_key: SecretStr | None
    identity: TlsIdentity | None
    client_authorities: str | None
    provider_keys: Mapping[str, SecretStr | None]
    aws_credentials: Mapping[str, AwsCredentials | None]
    service_accounts: Mapping[str, SecretStr | None]
    provider_headers: Mapping[str, tuple[SecretStr, ...] | None]
    proxy: ForwardProxy | None
    provider_cas: Mapping[str, str | None]
    client_identities: Mapping[str, TlsIdentity | None]
    tenant_keys: Mapping[str, tuple[KeyDigest, ...]]
    key_sets: Mapping[str, str]
    shred_keys: Mapping[str, tuple[str, ...]] | None
    files: Mapping[Path, str | None] = field(compare=False, repr=False)
    document: Document = field(compare=False, repr=False)
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    content: bytes = field(default=b"", compare=False, repr=False)

    @property
    def issuers(self) -> tuple[Issuer, ...]:
        """Who signs tokens that are believed."""
        return self.settings.jwt.issuers if self.settings.jwt else ()

    @property
    def shred_keys_directory(self) -> Path | None:
        """The folder of the shred keys."""
        directory = self.settings.ledger.shred_keys_directory
        return None if directory is None else self.source.parent / directory

    @property
    def tenant_shards(self) -> Path | None:
        """The directory of tenants that do not stand in the configuration."""
        shards = self.settings.tenant_shards
        return None if shards is None else self.source.parent / shards.directory

    def problem(self, code: str, path: FieldPath, message: str) -> Problem:
        """A problem that shows only after loading, with its line."""
        return with_line(self.document, Problem(code, path, message))
