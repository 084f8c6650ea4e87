"""The providers that use an identity instead of a key, and the sources of their credentials."""

from __future__ import annotations

from typing import Protocol

from proofgate.config import Config
from proofgate.config.settings import Provider
from proofgate.identity.aws import PodIdentity, WebIdentity
from proofgate.identity.azure import EntraWorkloadIdentity
from proofgate.identity.google import FederatedIdentity, MetadataServer, ServiceAccountKey
from proofgate.identity.issued_credentials import IssuedCredentials


class Identity(Protocol):
    """The gateway's identity at one provider. Two identities are equal if they request the same from the same
    issuer."""

    def fetch(self) -> IssuedCredentials:
        """New credentials. Blocks for seconds; raises IdentityError."""


def identity_of(provider: Provider, config: Config) -> Identity | None:
    """Returns the identity for a provider; None if its credentials are in files, missing, or not needed."""
    auth = provider.auth
    if auth is None:
        return None
    if auth.token_file is not None:
        auth = auth.model_copy(update={"token_file": str(config.source.parent / auth.token_file)})
    match auth.type:
        case "AWSWebIdentity":
            return WebIdentity(auth, provider.region or "")
        case "AWSPodIdentity":
            return PodIdentity(auth)
        case "AzureWorkloadIdentity":
            return EntraWorkloadIdentity(auth)
        case "GCPWorkloadIdentity":
            return FederatedIdentity(auth)
        case "GCPMetadataServer":
            return MetadataServer()
        case "GCPServiceAccountKey":
            key = config.service_accounts.get(provider.name)
            return None if key is None else ServiceAccountKey(key)
        case "APIKey" | "AWSStaticKeys":
            return None
