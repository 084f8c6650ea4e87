"""The workers' configuration file and the Secrets the operator generates.

Nothing here puts a key in clear into an object: the ConfigMap names files, the tenants Secret holds digests.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence

import yaml

from proofgate_operator.api.types import Gateway
from proofgate_operator.build.naming import Manifest, child, names

CONFIG_FILE = "gateway.yaml"
CONFIG_FOLDER = "/etc/proofgate"
LEDGER_FOLDER = "/var/lib/proofgate"
SIGNING_KEY = "signing-key"
VERIFYING_KEY = "verifying-key"
ADMIN_TOKEN = "token"
TENANT_MAP = "tenants.map"

TRAFFIC_PORT = 8080
ADMIN_PORT = 9090


def worker_config(gateway: Gateway) -> Manifest:
    """Return the content of the workers' configuration file."""
    spec = gateway.spec
    providers = []
    for provider in spec.providers:
        entry: Manifest = {"name": provider.name, "type": provider.type, "baseURL": provider.base_url}
        if provider.api_key_secret_ref:
            entry["apiKeyFile"] = f"{CONFIG_FOLDER}/providers/{provider.name}/api-key"
        providers.append(entry)
    tenants = []
    for tenant in spec.tenants:
        entry = {"name": tenant.name, "keyHashesFile": f"{CONFIG_FOLDER}/tenants/{tenant.name}"}
        if tenant.models is not None:
            entry["models"] = list(tenant.models)
        tenants.append(entry)
    return {
        "ledger": {
            "name": gateway.ledger_name,
            "directory": LEDGER_FOLDER,
            "durability": spec.ledger.durability.value,
            "checkpointIntervalSeconds": spec.ledger.checkpoint_interval_seconds,
            "signingKeyFile": f"{CONFIG_FOLDER}/ledger/{SIGNING_KEY}",
        },
        "listen": f"0.0.0.0:{TRAFFIC_PORT}",
        "proxyProtocol": True,
        "admin": {"listen": f"0.0.0.0:{ADMIN_PORT}", "tokenFile": f"{CONFIG_FOLDER}/admin/{ADMIN_TOKEN}"},
        "providers": providers,
        "models": [
            {
                "name": model.name,
                "provider": model.provider,
                "upstreamModel": model.upstream_model or model.name,
            }
            for model in spec.models
        ],
        "tenants": tenants,
        "timeouts": {
            "upstreamConnectSeconds": spec.timeouts.upstream_connect_seconds,
            "upstreamResponseSeconds": spec.timeouts.upstream_response_seconds,
            "drainSeconds": spec.timeouts.drain_seconds,
        },
    }


def worker_config_text(gateway: Gateway) -> str:
    """Return the workers' configuration file."""
    return yaml.safe_dump(worker_config(gateway), sort_keys=False)


def config_map(gateway: Gateway) -> Manifest:
    """Return the ConfigMap that holds the workers' configuration file."""
    head = child(gateway, "v1", "ConfigMap", names(gateway).config, "worker")
    return {**head, "data": {CONFIG_FILE: worker_config_text(gateway)}}


def encoded(entries: Mapping[str, str]) -> dict[str, str]:
    """Return a Secret's `data`. `stringData` is write-only, so drift in it could not be seen."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in entries.items()}


def tenants_secret(gateway: Gateway, hashes: Mapping[str, Sequence[str]]) -> Manifest:
    """Return the Secret of key digests: one entry per tenant for the workers, one map for HAProxy.

    `hashes` holds each tenant's digests, lower-case hexadecimal SHA-256.
    """
    entries = {tenant: "".join(f"{digest}\n" for digest in sorted(set(hashes[tenant]))) for tenant in hashes}
    owner_of = {digest: tenant for tenant in hashes for digest in hashes[tenant]}
    entries[TENANT_MAP] = "".join(f"{digest} {owner_of[digest]}\n" for digest in sorted(owner_of))
    head = child(gateway, "v1", "Secret", names(gateway).tenants, "worker")
    return {**head, "type": "Opaque", "data": encoded(entries)}


def admin_secret(gateway: Gateway, token: str) -> Manifest:
    """Return the Secret of the token that the workers' admin port asks for."""
    head = child(gateway, "v1", "Secret", names(gateway).admin, "worker")
    return {**head, "type": "Opaque", "data": encoded({ADMIN_TOKEN: token})}


def ledger_secret(gateway: Gateway, signing_key: str, verifying_key: str) -> Manifest:
    """Return the Secret of a generated signing key, in the text forms of `ledger_key`."""
    head = child(gateway, "v1", "Secret", names(gateway).ledger, "worker")
    entries = {SIGNING_KEY: signing_key, VERIFYING_KEY: verifying_key}
    return {**head, "type": "Opaque", "data": encoded(entries)}


def digest(secret: bytes, parts: Sequence[str]) -> str:
    """Return a digest of `parts` that tells who lacks `secret` nothing, not even about a weak key among
    them."""
    mac = hmac.new(secret, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode()
        mac.update(len(data).to_bytes(8, "big") + data)
    return mac.hexdigest()
