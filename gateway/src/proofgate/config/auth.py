"""How the gateway authenticates to a provider: one section, whose `type` determines the allowed fields.

Keys are in files. The types with `Identity` in their name, and `GCPMetadataServer`, have no key: the worker
exchanges the token of its Kubernetes ServiceAccount for credentials of the cloud that last an hour or so, and
renews them (`proofgate.identity`).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from proofgate_schema.fields import FilePath
from proofgate_schema.section import Section
from proofgate_schema.urls import is_loopback, split_url
from pydantic import AfterValidator, Field

from proofgate.config.document import FieldPath
from proofgate.config.problems import Findings

AuthType = Literal[
    "APIKey",
    "AWSStaticKeys",
    "AWSWebIdentity",
    "AWSPodIdentity",
    "AzureWorkloadIdentity",
    "GCPServiceAccountKey",
    "GCPWorkloadIdentity",
    "GCPMetadataServer",
]

#: Addresses of the agents on a node that issue AWS credentials, as AWS's SDKs allow them ("Container
#: credential provider" in the AWS SDKs and Tools Reference Guide): the agents of EKS Pod Identity and of ECS.
AGENT_ADDRESSES = frozenset({"169.254.170.23", "fd00:ec2::23", "169.254.170.2"})


def is_confidential(url: str, also: frozenset[str] = frozenset()) -> bool:
    """Whether data sent to a URL is protected from others: https, loopback, or an address in `also`, to which
    data never leaves the node."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https" and host:
        return True
    try:
        host = str(ipaddress.ip_address(host))
    except ValueError:
        return parts.scheme == "http" and is_loopback(host)
    return parts.scheme == "http" and (is_loopback(host) or host in also)


def _token_url(text: str, also: frozenset[str] = frozenset()) -> str:
    url = split_url(text, "https://sts.eu-west-1.amazonaws.com")
    if url.query or url.fragment:
        raise ValueError("remove '?' or '#' and everything after it: this part is never sent")
    if not is_confidential(text, also):
        raise ValueError("use https: anyone on the network could read the credentials")
    return text.rstrip("/")


def _agent_url(text: str) -> str:
    return _token_url(text, AGENT_ADDRESSES)


TokenURL = Annotated[str, AfterValidator(_token_url)]
AgentURL = Annotated[str, AfterValidator(_agent_url)]
RoleARN = Annotated[str, Field(max_length=2048, pattern="^arn:[a-z0-9-]+:iam::[0-9]{12}:role/[!-~]+$")]
ClientID = Annotated[str, Field(max_length=64, pattern="^[A-Za-z0-9-]+$")]
TenantID = Annotated[str, Field(max_length=253, pattern="^[A-Za-z0-9.-]+$")]
_POOL = "projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+"
Audience = Annotated[str, Field(max_length=512, pattern=rf"^//iam\.googleapis\.com/{_POOL}$")]
ServiceAccount = Annotated[str, Field(max_length=256, pattern="^[a-z0-9.-]+@[a-z0-9.-]+$")]


class Auth(Section):
    """How the gateway authenticates to a provider. Fields that do not belong to `type` are refused."""

    type: AuthType
    """Kind of credentials. It determines which of the fields below are allowed."""
    api_key_file: FilePath | None = None
    """`APIKey`: file with the API key, one line."""
    access_key_id_file: FilePath | None = None
    """`AWSStaticKeys`: file with the access key id, one line. Requests are signed with the key (Signature
    Version 4)."""
    secret_access_key_file: FilePath | None = None
    """`AWSStaticKeys`: file with the secret access key, one line."""
    session_token_file: FilePath | None = None
    """`AWSStaticKeys`: file with the session token of temporary credentials, one line. Absent: none."""
    role_arn: Annotated[RoleARN | None, Field(alias="roleARN")] = None
    """`AWSWebIdentity`: ARN of the role to assume. Absent: `AWS_ROLE_ARN`."""
    credentials_url: Annotated[AgentURL | None, Field(alias="credentialsURL")] = None
    """`AWSPodIdentity`: URL of the agent. Absent: `AWS_CONTAINER_CREDENTIALS_FULL_URI`, otherwise the EKS Pod
    Identity agent of the node."""
    client_id: Annotated[ClientID | None, Field(alias="clientID")] = None
    """`AzureWorkloadIdentity`: client id of the application or managed identity. Absent:
    `AZURE_CLIENT_ID`."""
    tenant_id: Annotated[TenantID | None, Field(alias="tenantID")] = None
    """`AzureWorkloadIdentity`: id of the Entra ID tenant. Absent: `AZURE_TENANT_ID`."""
    authority_url: Annotated[TokenURL | None, Field(alias="authorityURL")] = None
    """`AzureWorkloadIdentity`: URL of Entra ID. Absent: `AZURE_AUTHORITY_HOST`, otherwise
    https://login.microsoftonline.com."""
    scope: Annotated[str, Field(max_length=512, pattern="^[!-~]+$")] | None = None
    """`AzureWorkloadIdentity`: scope of the requested tokens. Absent:
    https://cognitiveservices.azure.com/.default."""
    service_account_key_file: FilePath | None = None
    """`GCPServiceAccountKey`: file with the JSON key of a service account."""
    audience: Audience | None = None
    """`GCPWorkloadIdentity`: the provider of the pool, in the form of credential configurations:
    //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER."""
    service_account: ServiceAccount | None = None
    """`GCPWorkloadIdentity`: the service account to impersonate. Absent: the pool's principal is used
    directly."""
    iam_credentials_url: Annotated[TokenURL | None, Field(alias="iamCredentialsURL")] = None
    """`GCPWorkloadIdentity`: URL at which the service account is impersonated. Absent:
    https://iamcredentials.googleapis.com."""
    token_file: FilePath | None = None
    """File with the token of the ServiceAccount, read at each renewal. Absent: the file in
    `AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` or `AZURE_FEDERATED_TOKEN_FILE`.
    Required for `GCPWorkloadIdentity`."""
    sts_url: Annotated[TokenURL | None, Field(alias="stsURL")] = None
    """`AWSWebIdentity`, `GCPWorkloadIdentity`: URL at which tokens are exchanged. Absent: AWS STS in the
    provider's region, or https://sts.googleapis.com/v1/token."""


@dataclass(frozen=True)
class _Kind:
    """The fields of a type of credentials, and the providers that accept it."""

    providers: frozenset[str]
    required_fields: tuple[str, ...] = ()
    optional_fields: tuple[str, ...] = ()


_API_KEY_PROVIDERS = frozenset({"OpenAI", "AzureOpenAI", "Anthropic", "Gemini", "Bedrock"})
_BEDROCK, _VERTEX = frozenset({"Bedrock"}), frozenset({"VertexAI"})
_KINDS: dict[AuthType, _Kind] = {
    "APIKey": _Kind(_API_KEY_PROVIDERS, ("api_key_file",)),
    "AWSStaticKeys": _Kind(
        _BEDROCK, ("access_key_id_file", "secret_access_key_file"), ("session_token_file",)
    ),
    "AWSWebIdentity": _Kind(_BEDROCK, (), ("role_arn", "token_file", "sts_url")),
    "AWSPodIdentity": _Kind(_BEDROCK, (), ("credentials_url", "token_file")),
    # Microsoft Foundry accepts the same tokens for Anthropic's models.
    "AzureWorkloadIdentity": _Kind(
        frozenset({"AzureOpenAI", "Anthropic"}),
        (),
        ("client_id", "tenant_id", "authority_url", "scope", "token_file"),
    ),
    "GCPServiceAccountKey": _Kind(_VERTEX, ("service_account_key_file",)),
    "GCPWorkloadIdentity": _Kind(
        _VERTEX, ("audience", "token_file"), ("service_account", "iam_credentials_url", "sts_url")
    ),
    "GCPMetadataServer": _Kind(_VERTEX),
}
#: Types of providers that require credentials for all requests.
_AUTH_REQUIRED_PROVIDERS = _BEDROCK | _VERTEX
_AWS_SIGNED_TYPES = frozenset({"AWSStaticKeys", "AWSWebIdentity", "AWSPodIdentity"})


def uses_aws_signature(auth: Auth | None) -> bool:
    """Whether requests are signed with AWS Signature Version 4."""
    return auth is not None and auth.type in _AWS_SIGNED_TYPES


def check_auth(auth: Auth | None, provider_type: str, path: FieldPath, findings: Findings) -> None:
    """Reports fields of `auth`, the section at `path`, that are missing or not allowed for the provider's
    type."""

    def report(field: str | None, message: str) -> None:
        where = path if field is None else (*path, Auth.model_fields[field].alias or field)
        findings.report("config_provider_credentials", where, message)

    if auth is None:
        if provider_type in _AUTH_REQUIRED_PROVIDERS:
            report(
                None,
                f"add it with type {_auth_types_for(provider_type)}: {provider_type} refuses "
                "requests without it",
            )
        return
    kind = _KINDS[auth.type]
    if provider_type not in kind.providers:
        known = _auth_types_for(provider_type)
        report("type", f"{auth.type} does not fit a provider of type {provider_type}: use {known}")
        return
    for field in Auth.model_fields:
        if field == "type":
            continue
        is_set = getattr(auth, field) is not None
        if field in kind.required_fields and not is_set:
            report(field, f"type {auth.type} needs this field")
        elif is_set and field not in (*kind.required_fields, *kind.optional_fields):
            report(field, f"type {auth.type} has no such field: remove it, or change the type")


def _auth_types_for(provider_type: str) -> str:
    names = [name for name, kind in _KINDS.items() if provider_type in kind.providers]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
