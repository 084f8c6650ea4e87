"""Which providers have an identity in place of a key, and where their credentials come from."""

from __future__ import annotations

from typing import Protocol

from proofgate.config import Config
from proofgate.config.settings import Provider
from proofgate.identity.aws import PodIdentity, WebIdentity
from proofgate.identity.azure import EntraWorkloadIdentity
from proofgate.identity.google import FederatedIdentity, MetadataServer, ServiceAccountKey
from proofgate.identity.issued_credentials import IssuedCredentials


class Identity(Protocol):
    """Who the gateway is to one provider. Two are equal when they ask the same of the same."""

    def fetch(self) -> IssuedCredentials:
        """New credentials. Blocks for seconds; raises IdentityError."""


def identity_of(provider: Provider, config: Config) -> Identity | None:
    """The identity for a provider; None where credentials stand in files, are missing, or not needed."""
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
