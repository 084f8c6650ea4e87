"""The sections `providers` and `egress`: where requests go, and through which proxy.

Running workers apply changes of these sections.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import proofgate_schema.egress
import proofgate_schema.providers
from proofgate_schema.urls import LABEL, PORT
from pydantic import Field

from proofgate_operator.api.auth import AUTH_RULES, Auth, provider_auth_rules
from proofgate_operator.api.fields import (
    LIST_TYPE_SET,
    ConfigMapKeyRef,
    SecretKeyRef,
    SecretRef,
    Section,
    cel_rules,
)
from proofgate_operator.api.static_fields import STATIC_FIELD_RULES, Headers

#: A provider's files in the workers that are PEM and have several lines.
CA_FILE = "ca.crt"
CLIENT_CERTIFICATE_FILE = "client.crt"
CLIENT_KEY_FILE = "client.key"
PEM_FILES = frozenset((CA_FILE, CLIENT_CERTIFICATE_FILE, CLIENT_KEY_FILE))

#: A host name, an address or a range; a host name or an address with one port; or everything (`*`).
NoProxyEntry = Annotated[
    str,
    Field(
        min_length=1,
        max_length=300,
        pattern=rf"^(\*|(\*?\.)?{LABEL}(\.{LABEL})*\.?{PORT}|\[[0-9A-Fa-f:.]+\]{PORT}"
        r"|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|[0-9A-Fa-f:.]+/[0-9]{1,3})$",
    ),
]

#: Rules over several fields of one provider.
PROVIDER_RULES: tuple[dict[str, Any], ...] = (
    *provider_auth_rules(),
    *STATIC_FIELD_RULES,
    {
        "rule": "self.type == 'Bedrock' || !has(self.region)",
        "message": "providers: region is only for type Bedrock",
    },
    {
        "rule": "self.api == 'V1' || self.type == 'AzureOpenAI'",
        "message": "providers: api Deployments is only for type AzureOpenAI",
    },
    {
        "rule": "(self.api == 'Deployments') == has(self.apiVersion)",
        "message": "providers: apiVersion is required with api Deployments, and not allowed with any other "
        "api",
    },
    {
        "rule": "has(self.region) || self.type != 'Bedrock' || !has(self.auth) || self.auth.type == 'APIKey'",
        "message": "providers: AWS credentials need a region, because requests are signed for a region",
    },
    {
        "rule": "self.type == 'VertexAI' || !has(self.project) && !has(self.location)",
        "message": "providers: project and location are only for type VertexAI",
    },
    {
        "rule": "self.type != 'VertexAI' || has(self.project) && has(self.location)",
        "message": "providers: type VertexAI needs project and location",
    },
    {
        "rule": "self.type == 'VertexAI' || has(self.baseURL)",
        "message": "providers: every type except VertexAI needs a baseURL",
    },
    {
        "rule": "!has(self.objectsOf) || self.type == 'OpenAI' ||"
        " self.type == 'AzureOpenAI' && self.api == 'V1'",
        "message": "providers: objectsOf is only for type OpenAI, and AzureOpenAI with api V1",
    },
    {
        "rule": "!has(self.tls) || !has(self.baseURL) || self.baseURL.startsWith('https://')",
        "message": "providers: tls needs a baseURL with https",
    },
    {
        "rule": "!has(self.tls) || !has(self.tls.caSecretRef) || !has(self.tls.caConfigMapRef)",
        "message": "providers: set tls.caSecretRef or tls.caConfigMapRef, not both",
    },
)


class ProviderTls(Section):
    """TLS to a provider with a private CA, or with mutual TLS."""

    ca_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret with CA certificates (PEM) to trust instead of the system's."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """Entry of a ConfigMap with CA certificates (PEM), instead of caSecretRef. The operator does not read the
    ConfigMap; the workers report problems with the certificates."""
    client_certificate_secret_ref: SecretRef | None = None
    """Secret of type kubernetes.io/tls in the gateway's namespace, for example of a cert-manager Certificate,
    with the workers' client certificate. A renewed certificate is used for new connections within seconds."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Yield each Secret entry that it needs, like `Provider.secrets`."""
        if self.ca_secret_ref is not None:
            yield "tls.caSecretRef", CA_FILE, self.ca_secret_ref
        client = self.client_certificate_secret_ref
        if client is not None:
            for file, key in ((CLIENT_CERTIFICATE_FILE, "tls.crt"), (CLIENT_KEY_FILE, "tls.key")):
                yield "tls.clientCertificateSecretRef", file, SecretKeyRef(name=client.name, key=key)


class Provider(proofgate_schema.providers.Provider):
    """A provider of models."""

    auth: Annotated[Auth | None, Field(json_schema_extra=cel_rules(*AUTH_RULES))] = None
    """Authentication of workers to the provider. Absent: no credentials. Required for types Bedrock and
    VertexAI."""
    tls: ProviderTls | None = None
    """CAs that workers trust for this provider, and their client certificate. Both are mounted as files into
    the workers and never copied, and changes are used within seconds. While either is missing, no request is
    sent to the provider. Absent: the system's CAs, and no client certificate."""
    headers: Headers = ()
    """Header fields of every request to the provider."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Yield each Secret entry that it needs: its field, its file in workers, and its reference."""
        if self.auth is not None:
            yield from self.auth.secrets()
        if self.tls is not None:
            yield from self.tls.secrets()
        for header in self.headers:
            if header.secret_ref is not None:
                yield f"headers[{header.name}].secretRef", header.file, header.secret_ref


class EgressProxy(proofgate_schema.egress.EgressProxy):
    """A forward proxy for connections from workers: each one is a tunnel (CONNECT) with TLS inside."""

    credentials_secret_ref: SecretRef | None = None
    """Secret of type kubernetes.io/basic-auth in the gateway's namespace, with the user name and password,
    which workers send in the header Proxy-Authorization: Basic. Both must be printable ASCII without spaces,
    and the user name must not have a colon. The Secret is mounted as files into the workers and never copied,
    and changes are used within seconds. While the Secret is missing, nothing is sent through the proxy.
    Absent: no credentials."""
    no_proxy: Annotated[tuple[NoProxyEntry, ...], Field(max_length=64, json_schema_extra=LIST_TYPE_SET)] = ()
    """Destinations that bypass the proxy, in the NO_PROXY format of curl and Go: a domain with its subdomains
    (example.com), only the subdomains (.svc), an address or a range of addresses (10.0.0.0/8) for URLs with
    an IP address, or `*` for all destinations. A domain or an address can end with :PORT; a range cannot.
    Loopback, link-local addresses and metadata services of clouds always bypass the proxy."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Yield each Secret entry that it needs: its field, its file in workers, and its reference."""
        if self.credentials_secret_ref is not None:
            for entry in ("username", "password"):
                reference = SecretKeyRef(name=self.credentials_secret_ref.name, key=entry)
                yield "proxy.credentialsSecretRef", entry, reference


class Egress(proofgate_schema.egress.Egress):
    """Addresses to which workers may connect to reach providers, and the proxy."""

    proxy: EgressProxy | None = None
    """Forward proxy for requests to providers, to the token endpoints of providers' auth, and to jwksURL.
    Absent: workers connect directly."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Yield each Secret entry that it needs, like `EgressProxy.secrets`."""
        if self.proxy is not None:
            yield from self.proxy.secrets()
