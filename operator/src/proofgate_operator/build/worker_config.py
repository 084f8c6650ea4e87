"""The workers' configuration file, and its ConfigMap.

No object contains a key in clear text: the configuration file names other files.
"""

import hashlib

import yaml
from proofgate_schema.limits import Limits
from proofgate_schema.terms import TERM_FIELDS

from proofgate_operator.api.access import OPERATOR_ONLY_PLAN_FIELDS, Plan, Tenant
from proofgate_operator.api.auth import Auth
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.quantity import parse_bytes
from proofgate_operator.api.static_fields import ProviderHeader
from proofgate_operator.api.telemetry import Telemetry
from proofgate_operator.api.upstream import (
    CA_FILE,
    CLIENT_CERTIFICATE_FILE,
    CLIENT_KEY_FILE,
    Egress,
    Provider,
    ProviderTls,
)
from proofgate_operator.api.worker import (
    BASE_MEMORY,
    DEFAULT_MAX_BODY,
    MIN_BODY_MEMORY,
    MIN_BUFFERED_BODIES,
    MIN_MEMORY,
    READ_BUFFER_FACTOR,
)
from proofgate_operator.build import internal_tls
from proofgate_operator.build.gateway_secrets import ADMIN_TOKEN, ROUTING_KEY_FILE, SIGNING_KEY
from proofgate_operator.build.naming import Defaults, Manifest, child_manifest, names
from proofgate_operator.build.tenant_keys import keys_entry

CONFIG_FILE = "gateway.yaml"
#: The newest configuration file that every worker has accepted. A starting worker that refuses the newest
#: file starts with it.
ACCEPTED_FILE = "accepted.yaml"
CONFIG_FOLDER = "/etc/proofgate"
LEDGER_FOLDER = "/var/lib/proofgate"
#: Folder of the GatewayTenants and their keys, for workers and for HAProxy's agent.
SHARDS_FOLDER = f"{CONFIG_FOLDER}/tenants"
#: Folder of the header values for a collector, below the configuration folder.
TELEMETRY_FOLDER = "telemetry"
#: Folder of the credentials for the egress proxy, below the configuration folder.
PROXY_FOLDER = "egress/proxy"
#: Folder of the checkpoints that the operator holds; a change there does not roll the workers.
HELD_CHECKPOINTS_FOLDER = "/etc/held-checkpoints"
#: Folder of tenants' shred keys. The whole Secret is mounted, so an additional tenant does not change the
#: template.
SHRED_KEYS_FOLDER = "/etc/shred-keys"
#: Folder of the workers' ServiceAccount tokens for clouds, one for each provider that needs one.
TOKENS_FOLDER = "/var/run/secrets/proofgate.dev/tokens"
#: Folder of the certificate that workers present to HAProxy.
INTERNAL_TLS_FOLDER = "/etc/proofgate-internal-tls"
#: Sections of the workers' file that a worker reads only at its start; it applies changes of all others.
FIXED_SECTIONS = ("ledger", "listen", "proxyProtocol", "admin", "analysis")
#: Fields of the first of these sections that a running worker applies.
_RELOADABLE_LEDGER_FIELDS = ("recordClientAddress", "recordEndUser")

#: The maximum of `bufferedBytes` that a worker's file allows.
_MAX_BUFFERED_BYTES = 1 << 40

TRAFFIC_PORT = 8080
ADMIN_PORT = 9090


#: Bytes of memory for bodies that wait to be written to the volume: twice the largest stored body. They are
#: taken from the memory for bodies.
_PAYLOAD_BUDGET_BYTES = 16 << 20


def base_memory(gateway: Gateway) -> int:
    """Return the bytes that a worker needs besides bodies and responses."""
    connections = gateway.spec.limits.connection_memory
    analysis = 0 if gateway.spec.analysis is None else gateway.spec.analysis.memory
    payloads = 0 if _payloads(gateway) is None else _PAYLOAD_BUDGET_BYTES
    return BASE_MEMORY + connections + analysis + payloads


def _limits(gateway: Gateway, memory: int) -> Manifest:
    """Return the limits of bytes and connections in the file; `memory` is a worker's total memory in
    bytes."""
    asked = gateway.spec.limits
    # A worker from before a memory increase is smaller, and must still accept the file.
    rest = max(max(memory, MIN_MEMORY) - base_memory(gateway), MIN_BODY_MEMORY)
    longest = rest // (READ_BUFFER_FACTOR + MIN_BUFFERED_BODIES)
    wanted = max_body_bytes(asked)
    body = min(DEFAULT_MAX_BODY, longest >> 20 << 20) if wanted is None else min(wanted, longest)
    held = min(rest - READ_BUFFER_FACTOR * body, _MAX_BUFFERED_BYTES)
    return {**asked.to_document(), "bodyBytes": body, "bufferedBytes": held}


def max_body_bytes(limits: Limits) -> int | None:
    """Return the maximum body in bytes from the spec; None if it is derived from the memory."""
    return limits.body_bytes if "body_bytes" in limits.model_fields_set else None


def listen_address(port: int, defaults: Defaults) -> str:
    """Return the address that covers all addresses of a pod; `[::]` accepts IPv4 connections too (RFC 3493,
    section 3.7)."""
    return f"[::]:{port}" if defaults.ipv6 else f"0.0.0.0:{port}"


def provider_file(provider: Provider, file: str) -> str:
    """Return the path of a provider's file, relative to the workers' configuration folder."""
    return f"providers/{provider.name}/{file}"


def _tls(provider: Provider) -> Manifest:
    """Return the file's section for TLS to a provider."""
    content: Manifest = {}
    tls = provider.tls or ProviderTls()
    if tls.ca_secret_ref is not None or tls.ca_config_map_ref is not None:
        content["caFile"] = f"{CONFIG_FOLDER}/{provider_file(provider, CA_FILE)}"
    if tls.client_certificate_secret_ref is not None:
        content["clientCertificateFile"] = (
            f"{CONFIG_FOLDER}/{provider_file(provider, CLIENT_CERTIFICATE_FILE)}"
        )
        content["clientKeyFile"] = f"{CONFIG_FOLDER}/{provider_file(provider, CLIENT_KEY_FILE)}"
    return content


def _auth(provider: Provider, auth: Auth) -> Manifest:
    """Return the file's section for a provider's credentials: files instead of Secrets."""
    content: Manifest = {}
    for name, value in auth.to_document().items():
        if not isinstance(value, dict):
            content[name] = value
    for field, file, _ in auth.secrets():
        name = field.removeprefix("auth.").removesuffix("SecretRef")
        content[f"{name}File"] = f"{CONFIG_FOLDER}/{provider_file(provider, file)}"
    if auth.token_audience is not None:
        content["tokenFile"] = f"{TOKENS_FOLDER}/{provider.name}"
    return content


def _provider(provider: Provider) -> Manifest:
    """Return the file's section for a provider: files instead of Secrets."""
    content = provider.to_document()
    for name in ("auth", "tls", "headers"):
        content.pop(name, None)
    if provider.auth is not None:
        content["auth"] = _auth(provider, provider.auth)
    if provider.tls is not None:
        content |= _tls(provider)
    if provider.headers:
        content["headers"] = [_header(provider, header) for header in provider.headers]
    return content


def _header(provider: Provider, header: ProviderHeader) -> Manifest:
    if header.secret_ref is None:
        return {"name": header.name, "value": header.value}
    return {"name": header.name, "valueFile": f"{CONFIG_FOLDER}/{provider_file(provider, header.file)}"}


def worker_config(gateway: Gateway, memory: int, defaults: Defaults) -> Manifest:
    """Return the content of the workers' configuration file; `memory` is the smallest worker's memory in
    bytes."""
    spec = gateway.spec
    recorded = spec.ledger.to_document()
    content: Manifest = {
        "ledger": {
            "name": gateway.ledger_name,
            "directory": LEDGER_FOLDER,
            "durability": recorded["durability"],
            "checkpointIntervalSeconds": recorded["checkpointIntervalSeconds"],
            "signingKeyFile": f"{CONFIG_FOLDER}/ledger/{SIGNING_KEY}",
            "rotation": recorded["rotation"],
            **{name: True for name in _RELOADABLE_LEDGER_FIELDS if recorded[name]},
            "heldCheckpoints": {"directory": HELD_CHECKPOINTS_FOLDER, "keptBy": "Operator"},
            **({} if spec.ledger.shred_keys is None else {"shredKeysDirectory": SHRED_KEYS_FOLDER}),
        },
        "listen": listen_address(TRAFFIC_PORT, defaults),
        "proxyProtocol": {"routingKeyFile": f"{CONFIG_FOLDER}/{ROUTING_KEY_FILE}"},
        "admin": {
            "listen": listen_address(ADMIN_PORT, defaults),
            "tokenFile": f"{CONFIG_FOLDER}/admin/{ADMIN_TOKEN}",
        },
        "providers": [_provider(provider) for provider in spec.providers],
        "models": [model.to_document() for model in spec.models],
        **_plans(gateway),
        "tenants": [_tenant(tenant) for tenant in spec.tenants],
        "limits": _limits(gateway, memory),
        "metrics": {"labelSets": spec.monitoring.label_sets},
        "timeouts": spec.timeouts.to_document(),
    }
    if spec.egress is not None:
        content["egress"] = _egress(spec.egress)
    if gateway.tls_transition.workers_serve_tls:
        content["tls"] = _internal_tls(gateway)
    payloads = _payloads(gateway)
    if payloads is not None:
        content["ledger"]["payloads"] = payloads
    if spec.telemetry is not None:
        content["telemetry"] = _telemetry(spec.telemetry)
    # These sections are the same in the spec and in the workers' file.
    if spec.policies:
        content["policies"] = [policy.to_document() for policy in spec.policies]
    alike = {
        "jwt": spec.jwt,
        "policy": spec.policy,
        "cors": spec.cors,
        "analysis": spec.analysis,
    }
    for name, section in alike.items():
        if section is not None:
            content[name] = section.to_document()
    return content


def _internal_tls(gateway: Gateway) -> Manifest:
    """Return the file's section for TLS with HAProxy, the only permitted client."""
    return {
        "certificateFile": f"{INTERNAL_TLS_FOLDER}/{internal_tls.CHAIN_FILE}",
        "privateKeyFile": f"{INTERNAL_TLS_FOLDER}/{internal_tls.KEY_FILE}",
        "minVersion": "1.3",
        "clientCaFile": f"{INTERNAL_TLS_FOLDER}/{internal_tls.AUTHORITIES_FILE}",
        "clientNames": [internal_tls.haproxy_endpoint(gateway).host],
        "acceptPlain": not gateway.tls_transition.tls_only,
    }


def _payloads(gateway: Gateway) -> Manifest | None:
    """Return the file's section for stored payloads; None if no tenant has any."""
    spec = gateway.spec
    section = spec.ledger.payloads
    stored = any(terms.payloads == "Stored" for terms in (*spec.plans, *spec.tenants))
    if section is None and not stored:
        return None
    return {**(section.to_document() if section else {}), "budgetBytes": _PAYLOAD_BUDGET_BYTES}


def _egress(egress: Egress) -> Manifest:
    content = egress.to_document()
    if egress.proxy is not None:
        content["proxy"].pop("credentialsSecretRef", None)
        for _, file, _ in egress.secrets():
            content["proxy"][f"{file}File"] = f"{CONFIG_FOLDER}/{PROXY_FOLDER}/{file}"
    return content


def _telemetry(telemetry: Telemetry) -> Manifest:
    content = telemetry.to_document()
    content["headers"] = [
        {"name": header.name, "valueFile": f"{CONFIG_FOLDER}/{TELEMETRY_FOLDER}/{file}"}
        for header, (_, file, _) in zip(telemetry.headers, telemetry.secrets(), strict=True)
    ]
    return content


def _plans(gateway: Gateway) -> Manifest:
    """Return the file's sections for prices and plans, and the folder of the GatewayTenants."""
    content: Manifest = {}
    if gateway.spec.prices:
        content["prices"] = [price.to_document() for price in gateway.spec.prices]
    if gateway.spec.default_prices:
        content["defaultPrices"] = True
    if gateway.spec.plans:
        content["plans"] = [_plan(plan) for plan in gateway.spec.plans]
    if gateway.spec.allowed_tenants is not None:
        content["tenantShards"] = {"directory": SHARDS_FOLDER}
    return content


def _plan(plan: Plan) -> Manifest:
    content = {
        field: said for field, said in plan.to_document().items() if field not in OPERATOR_ONLY_PLAN_FIELDS
    }
    if plan.shared_limits is not None:
        content["namespaceLimits"] = plan.shared_limits.to_document()
    return content


def _tenant(tenant: Tenant) -> Manifest:
    content: Manifest = {"name": tenant.name}
    if tenant.api_keys is not None:
        content["keyHashesFile"] = f"{CONFIG_FOLDER}/{keys_entry(tenant.name)}"
    terms = tenant.to_document()
    for name in ("plan", *TERM_FIELDS):
        if name in terms:
            content[name] = terms[name]
    return content


def _to_yaml(content: Manifest) -> str:
    # libyaml, if available: otherwise YAML would be most of a reconcile's cost.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(content, Dumper=dumper, sort_keys=False)
    return text


def worker_config_text(gateway: Gateway, memory: int, defaults: Defaults) -> str:
    """Return the workers' configuration file; `memory` is the smallest worker's memory in bytes."""
    return _to_yaml(worker_config(gateway, memory, defaults))


def fixed_config_text(gateway: Gateway, defaults: Defaults) -> str:
    """Return the part of the file that a worker reads only at its start."""
    content = worker_config(gateway, parse_bytes(gateway.spec.worker.memory), defaults)
    fixed = {name: content[name] for name in FIXED_SECTIONS if name in content}
    if gateway.spec.limits.connections != Limits().connections:
        # The default is left out of the digest, as before the field existed: so an operator upgrade replaces
        # no worker.
        fixed["limits"] = {"connections": gateway.spec.limits.connections}
    for name in _RELOADABLE_LEDGER_FIELDS:
        fixed["ledger"].pop(name, None)
    if "payloads" in fixed["ledger"]:
        # A running worker applies which bodies are stored, and their maximum length.
        fixed["ledger"]["payloads"] = {"budgetBytes": _PAYLOAD_BUDGET_BYTES}
    return _to_yaml(fixed)


def config_map(gateway: Gateway, text: str, accepted: str | None = None) -> Manifest:
    """Return the ConfigMap of the workers' file `text` and of the last accepted file."""
    head = child_manifest(gateway, "v1", "ConfigMap", names(gateway).config, "worker")
    data = {CONFIG_FILE: text} if accepted is None else {CONFIG_FILE: text, ACCEPTED_FILE: accepted}
    return {**head, "data": data}


def text_digest(text: str) -> str:
    """Return the digest by which a worker reports its current file. It reveals nothing secret."""
    return hashlib.sha256(text.encode()).hexdigest()
