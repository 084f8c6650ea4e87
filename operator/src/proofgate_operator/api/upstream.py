"""The parts of the spec that say where requests go: providers, and through what they are reached.

Workers take on a change of them while they run.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import proofgate_schema.egress
import proofgate_schema.providers
from proofgate_schema.urls import LABEL, PORT
from pydantic import Field

from proofgate_operator.api.auth import AUTH_RULES, Auth, provider_types_rules
from proofgate_operator.api.fields import (
    SET,
    ConfigMapKeyRef,
    SecretKeyRef,
    SecretRef,
    Section,
    rules,
)
from proofgate_operator.api.static_fields import STATIC_RULES, Headers

#: Files of a provider in the workers that are PEM, and not one line.
CA_FILE = "ca.crt"
CLIENT_CERTIFICATE_FILE = "client.crt"
CLIENT_KEY_FILE = "client.key"
PEM_FILES = frozenset((CA_FILE, CLIENT_CERTIFICATE_FILE, CLIENT_KEY_FILE))

#: A host name, an address or a range, one port of either, or everything.
NoProxyEntry = Annotated[
    str,
    Field(
        min_length=1,
        max_length=300,
        pattern=rf"^(\*|(\*?\.)?{LABEL}(\.{LABEL})*\.?{PORT}|\[[0-9A-Fa-f:.]+\]{PORT}"
        r"|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|[0-9A-Fa-f:.]+/[0-9]{1,3})$",
    ),
]

#: Rules over the fields of one provider.
PROVIDER_RULES: tuple[dict[str, Any], ...] = (
    *provider_types_rules(),
    *STATIC_RULES,
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
        "message": "providers: api Deployments needs apiVersion, and no other api has one",
    },
    {
        "rule": "has(self.region) || self.type != 'Bedrock' || !has(self.auth) || self.auth.type == 'APIKey'",
        "message": "providers: auth of AWS needs a region, because requests are signed for a region",
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
        "message": "providers: tls is for a baseURL with https",
    },
    {
        "rule": "!has(self.tls) || !has(self.tls.caSecretRef) || !has(self.tls.caConfigMapRef)",
        "message": "providers: set tls.caSecretRef or tls.caConfigMapRef, not both",
    },
)


class ProviderTls(Section):
    """TLS to an upstream that is behind an authority of your own, or asks for a certificate (mutual TLS)."""

    ca_secret_ref: SecretKeyRef | None = None
    """Certificates of the authorities to trust in the place of the system's, PEM, in a Secret."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """The same in a ConfigMap. The operator reads none of yours: what is wrong with it, the workers say."""
    client_certificate_secret_ref: SecretRef | None = None
    """Secret of type kubernetes.io/tls in the gateway's namespace, for example that of a cert-manager
    Certificate: what workers show to the upstream. A renewed one is used for new connections within
    seconds."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs, as those of a provider."""
        if self.ca_secret_ref is not None:
            yield "tls.caSecretRef", CA_FILE, self.ca_secret_ref
        client = self.client_certificate_secret_ref
        if client is not None:
            for file, key in ((CLIENT_CERTIFICATE_FILE, "tls.crt"), (CLIENT_KEY_FILE, "tls.key")):
                yield "tls.clientCertificateSecretRef", file, SecretKeyRef(name=client.name, key=key)


class Provider(proofgate_schema.providers.Provider):
    """An upstream that answers model requests."""

    auth: Annotated[Auth | None, Field(json_schema_extra=rules(*AUTH_RULES))] = None
    """How workers authenticate there. Absent: the upstream wants no credentials. Types Bedrock and VertexAI
    need it."""
    tls: ProviderTls | None = None
    """Whom workers trust there, and what they show. Mounted, and used when it changes, as keys are; while a
    part is missing, nothing is sent there."""
    headers: Headers = ()
    """Header fields of every request to it."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs: its field, its file in workers, and where it is."""
        if self.auth is not None:
            yield from self.auth.secrets()
        if self.tls is not None:
            yield from self.tls.secrets()
        for header in self.headers:
            if header.secret_ref is not None:
                yield f"headers[{header.name}].secretRef", header.file, header.secret_ref


class EgressProxy(proofgate_schema.egress.EgressProxy):
    """A forward proxy for what leaves the workers: each connection is a tunnel (CONNECT), TLS inside it."""

    credentials_secret_ref: SecretRef | None = None
    """Secret of type kubernetes.io/basic-auth in the gateway's namespace, with username and password
    (printable ASCII without spaces, no colon in the name): sent as Proxy-Authorization: Basic. Mounted, and
    used when it changes, as keys are; while it is missing, nothing is sent through the proxy. Absent: it
    wants none."""
    no_proxy: Annotated[tuple[NoProxyEntry, ...], Field(max_length=64, json_schema_extra=SET)] = ()
    """What is reached directly, as curl and Go read NO_PROXY: a name with all below it (example.com), those
    below alone (.svc), an address or a range (10.0.0.0/8) for URLs that have an address, each with :PORT for
    one port, or `*`. Loopback, link-local addresses and the metadata services of clouds always are."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs: its field, its file in workers, and where it is."""
        if self.credentials_secret_ref is not None:
            for entry in ("username", "password"):
                reference = SecretKeyRef(name=self.credentials_secret_ref.name, key=entry)
                yield "proxy.credentialsSecretRef", entry, reference


class Egress(proofgate_schema.egress.Egress):
    """Where workers may connect to reach providers, and through what."""

    proxy: EgressProxy | None = None
    """A forward proxy for providers, for the token endpoints of their auth and for jwksURL. Absent: workers
    connect to them directly."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs, as those of a proxy."""
        if self.proxy is not None:
            yield from self.proxy.secrets()
