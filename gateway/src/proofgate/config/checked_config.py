"""A checked configuration: the settings and the contents of the files that they name."""

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
    """Credentials that sign requests to a provider. Their representation shows no secret."""

    access_key_id: SecretStr
    secret_access_key: SecretStr
    session_token: SecretStr | None


@dataclass(frozen=True)
class CheckedConfig:
    """All data with which a worker is started. Its representation shows no secret.

    Two configurations are equal if they mean the same, whatever the format of their files. `key_sets` has the
    key sets of `jwksFile`, by issuer. `provider_keys`, `aws_credentials`, `service_accounts`, `provider_cas`,
    `client_identities` and `provider_headers` have the values of providers that need them, None for a missing
    value. `proxy` is the egress proxy. `shred_keys` has the ids of each tenant's shred keys, None if salts
    are stored unencrypted. `files` has the files that were read, with the digests of their contents.
    `warnings` has the problems that affect only one provider or tenant. `content` is the configuration file
    as it was read.
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
        """The issuers of accepted tokens."""
        return self.settings.jwt.issuers if self.settings.jwt else ()

    @property
    def shred_keys_directory(self) -> Path | None:
        """The folder of the shred keys; None without one."""
        directory = self.settings.ledger.shred_keys_directory
        return None if directory is None else self.source.parent / directory

    @property
    def tenant_shards(self) -> Path | None:
        """The directory of tenants that are not in the configuration; None without one."""
        shards = self.settings.tenant_shards
        return None if shards is None else self.source.parent / shards.directory

    def problem(self, code: str, path: FieldPath, message: str) -> Problem:
        """Creates a problem that was found after loading, with its line."""
        return with_line(self.document, Problem(code, path, message))
