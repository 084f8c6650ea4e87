"""The section `auth`: how workers authenticate to a provider. Its `type` determines which fields are allowed.

The types with `Identity` in their name, and GCPMetadataServer, need no key: workers exchange a token of their
ServiceAccount for cloud credentials that are valid for about an hour, and renew them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from proofgate_schema.urls import AUTHORITY, PORT
from pydantic import Field

from proofgate_operator.api.fields import SecretKeyRef, Section

#: The file of the service account key in workers, which is JSON and has several lines.
SERVICE_ACCOUNT_KEY_FILE = "service-account.json"

#: A URL without a query or fragment.
_URL_PATH = r'(/[!-"$->@-~]*)?'
#: Addresses of agents on the same node, of EKS Pod Identity and of ECS. Workers accept http only for these.
_LOCAL_AGENT = rf"(169\.254\.170\.(2|23)|\[fd00:ec2::23\]){PORT}"
_WORKLOAD_IDENTITY_POOL = (
    r"projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+"
)

TokenURL = Annotated[str, Field(max_length=512, pattern=rf"^https://{AUTHORITY}{_URL_PATH}$")]
AgentURL = Annotated[
    str, Field(max_length=512, pattern=rf"^(https://{AUTHORITY}|http://{_LOCAL_AGENT}){_URL_PATH}$")
]
RoleARN = Annotated[
    str, Field(max_length=512, pattern=r"^arn:[a-z0-9-]+:iam::[0-9]{12}:role/[-_+=,.@/A-Za-z0-9]+$")
]
ClientID = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9-]+$")]
TenantID = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.-]+$")]
Scope = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[!-~]+$")]
Audience = Annotated[
    str, Field(max_length=512, pattern=rf"^//iam\.googleapis\.com/{_WORKLOAD_IDENTITY_POOL}$")
]
GoogleAccount = Annotated[str, Field(max_length=256, pattern=r"^[a-z0-9.-]+@[a-z0-9.-]+$")]


class Auth(Section):
    """Authentication of workers to a provider."""

    type: Literal[
        "APIKey",
        "AWSStaticKeys",
        "AWSWebIdentity",
        "AWSPodIdentity",
        "AzureWorkloadIdentity",
        "GCPServiceAccountKey",
        "GCPWorkloadIdentity",
        "GCPMetadataServer",
    ]
    """Kind of credentials. APIKey, AWSStaticKeys and GCPServiceAccountKey: credentials from Secrets.
    AWSWebIdentity: an AWS role for the workers' ServiceAccount (IRSA). AWSPodIdentity: the role that EKS
    associates with the ServiceAccount. AzureWorkloadIdentity: an Entra ID identity with a federated
    credential for the ServiceAccount. GCPWorkloadIdentity: a principal of a Google Cloud workload identity
    pool. GCPMetadataServer: the identity that GKE's metadata server provides for the ServiceAccount."""
    api_key_secret_ref: SecretKeyRef | None = None
    """APIKey: the provider's API key, one line of printable ASCII without spaces. The key is mounted into the
    workers and never copied. A new key in the entry is used within seconds; a reference to another entry
    rolls the workers."""
    access_key_id_secret_ref: SecretKeyRef | None = None
    """AWSStaticKeys: the access key id, one line. Requests are signed with the key (Signature Version 4).
    Keep all entries of these credentials in one Secret, because only the entries of one Secret change
    together. The entries are mounted as files into the workers and never copied, and changes are used within
    seconds."""
    secret_access_key_secret_ref: SecretKeyRef | None = None
    """AWSStaticKeys: the secret access key, one line."""
    session_token_secret_ref: SecretKeyRef | None = None
    """AWSStaticKeys: the session token of temporary credentials, one line. The system that renews the
    credentials must also update the Secret."""
    role_arn: Annotated[RoleARN | None, Field(alias="roleARN")] = None
    """AWSWebIdentity: ARN of the role. Workers mount a token of their ServiceAccount for sts.amazonaws.com.
    Absent: the ServiceAccount's annotation eks.amazonaws.com/role-arn names the role, and EKS's webhook
    mounts the token."""
    credentials_url: Annotated[AgentURL | None, Field(alias="credentialsURL")] = None
    """AWSPodIdentity: URL of the EKS Pod Identity agent. Absent: the URL that EKS's webhook sets, otherwise
    http://169.254.170.23/v1/credentials."""
    client_id: Annotated[ClientID | None, Field(alias="clientID")] = None
    """AzureWorkloadIdentity: client id of the application or managed identity, together with tenantID.
    Workers mount a token of their ServiceAccount for api://AzureADTokenExchange. Absent: the
    ServiceAccount's annotation azure.workload.identity/client-id contains the client id, and Azure's
    webhook mounts the token."""
    tenant_id: Annotated[TenantID | None, Field(alias="tenantID")] = None
    """AzureWorkloadIdentity: id of the Entra ID tenant."""
    authority_url: Annotated[TokenURL | None, Field(alias="authorityURL")] = None
    """AzureWorkloadIdentity: URL of Entra ID. Absent: the URL that Azure's webhook sets, otherwise
    https://login.microsoftonline.com."""
    scope: Scope | None = None
    """AzureWorkloadIdentity: scope of the requested tokens. Absent:
    https://cognitiveservices.azure.com/.default."""
    service_account_key_secret_ref: SecretKeyRef | None = None
    """GCPServiceAccountKey: the JSON key of a Google Cloud service account. The key is mounted like an API
    key, and changes are used within seconds."""
    audience: Audience | None = None
    """GCPWorkloadIdentity: the provider of the pool,
    //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER.
    Workers mount a token of their ServiceAccount. The token's audience is this value with the prefix https:,
    which Google's workload identity providers allow by default."""
    service_account: GoogleAccount | None = None
    """GCPWorkloadIdentity: the Google Cloud service account to impersonate. Absent: the pool's principal is
    used directly."""
    iam_credentials_url: Annotated[TokenURL | None, Field(alias="iamCredentialsURL")] = None
    """GCPWorkloadIdentity: URL at which the service account is impersonated. Absent:
    https://iamcredentials.googleapis.com."""
    sts_url: Annotated[TokenURL | None, Field(alias="stsURL")] = None
    """AWSWebIdentity, GCPWorkloadIdentity: URL at which tokens are exchanged, for example at a VPC endpoint.
    Absent: AWS STS in the provider's region, or https://sts.googleapis.com/v1/token."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Yield each Secret entry that it needs: its field, its file in workers, and its reference."""
        for field, file in _SECRET_FILES.items():
            reference = getattr(self, field)
            if reference is not None:
                yield f"auth.{_alias(field)}", file, reference

    @property
    def token_audience(self) -> str | None:
        """The audience of the ServiceAccount token that workers mount; None if a cloud's webhook mounts the
        token, or none is needed."""
        match self.type:
            case "AWSWebIdentity" if self.role_arn is not None:
                return "sts.amazonaws.com"
            case "AWSPodIdentity":
                return "pods.eks.amazonaws.com"
            case "AzureWorkloadIdentity" if self.client_id is not None:
                return "api://AzureADTokenExchange"
            case "GCPWorkloadIdentity":
                return f"https:{self.audience}"
        return None

    @property
    def needs_azure_webhook(self) -> bool:
        """Whether the webhook of Azure Workload Identity sets the workers' identity."""
        return self.type == "AzureWorkloadIdentity" and self.client_id is None


#: Fields that refer to Secret entries, and their files in workers.
_SECRET_FILES = {
    "api_key_secret_ref": "api-key",
    "access_key_id_secret_ref": "access-key-id",
    "secret_access_key_secret_ref": "secret-access-key",
    "session_token_secret_ref": "session-token",
    "service_account_key_secret_ref": SERVICE_ACCOUNT_KEY_FILE,
}


@dataclass(frozen=True)
class _AuthType:
    """The fields of an auth type, and the types of providers that accept it."""

    provider_types: tuple[str, ...]
    required_fields: tuple[str, ...] = ()
    optional_fields: tuple[str, ...] = ()


_AUTH_TYPES = {
    "APIKey": _AuthType(("OpenAI", "AzureOpenAI", "Anthropic", "Gemini", "Bedrock"), ("api_key_secret_ref",)),
    "AWSStaticKeys": _AuthType(
        ("Bedrock",),
        ("access_key_id_secret_ref", "secret_access_key_secret_ref"),
        ("session_token_secret_ref",),
    ),
    "AWSWebIdentity": _AuthType(("Bedrock",), (), ("role_arn", "sts_url")),
    "AWSPodIdentity": _AuthType(("Bedrock",), (), ("credentials_url",)),
    "AzureWorkloadIdentity": _AuthType(
        ("AzureOpenAI", "Anthropic"), (), ("client_id", "tenant_id", "authority_url", "scope")
    ),
    "GCPServiceAccountKey": _AuthType(("VertexAI",), ("service_account_key_secret_ref",)),
    "GCPWorkloadIdentity": _AuthType(
        ("VertexAI",), ("audience",), ("service_account", "iam_credentials_url", "sts_url")
    ),
    "GCPMetadataServer": _AuthType(("VertexAI",)),
}


def _alias(field: str) -> str:
    return Auth.model_fields[field].alias or field


def _auth_rules() -> Iterator[dict[str, Any]]:
    """Yield the CEL rules of the section itself, from the table of auth types."""
    for kind, fields in _AUTH_TYPES.items():
        needed = " && ".join(f"has(self.{_alias(field)})" for field in fields.required_fields)
        if needed:
            names = " and ".join(map(_alias, fields.required_fields))
            yield {
                "rule": f"self.type != '{kind}' || {needed}",
                "message": f"providers: auth of type {kind} needs {names}",
            }
    for field in Auth.model_fields:
        kinds = [
            kind
            for kind, fields in _AUTH_TYPES.items()
            if field in (*fields.required_fields, *fields.optional_fields)
        ]
        if kinds:
            listed = ", ".join(f"'{kind}'" for kind in kinds)
            yield {
                "rule": f"!has(self.{_alias(field)}) || self.type in [{listed}]",
                "message": f"providers: auth.{_alias(field)} is only for type {' or '.join(kinds)}",
            }
    yield {
        "rule": "has(self.clientID) == has(self.tenantID)",
        "message": "providers: set both auth.clientID and auth.tenantID, or neither",
    }


#: Rules over several fields of one `auth`.
AUTH_RULES = tuple(_auth_rules())


def provider_auth_rules() -> Iterator[dict[str, Any]]:
    """Yield the CEL rules for which type of provider accepts which type of auth."""
    by_providers: dict[tuple[str, ...], list[str]] = {}
    for kind, fields in _AUTH_TYPES.items():
        by_providers.setdefault(fields.provider_types, []).append(kind)
    for providers, kinds in by_providers.items():
        taken, given = ", ".join(f"'{name}'" for name in providers), ", ".join(f"'{name}'" for name in kinds)
        yield {
            "rule": f"!has(self.auth) || !(self.auth.type in [{given}]) || self.type in [{taken}]",
            "message": f"providers: auth of type {' or '.join(kinds)} is only for type "
            f"{' or '.join(providers)}",
        }
    yield {
        "rule": "has(self.auth) || !(self.type in ['Bedrock', 'VertexAI'])",
        "message": "providers: type Bedrock or VertexAI needs auth",
    }
