"""The workers' configuration file and the Secrets the operator generates.

Nothing here puts a key in clear into an object: the ConfigMap names files, the tenants Secret holds digests.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from proofgate_operator.api.access import TERMS, Tenant
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.quantity import whole
from proofgate_operator.api.worker import MEMORY_LEAST, MEMORY_OTHERWISE
from proofgate_operator.build import haproxy_config
from proofgate_operator.build.haproxy_config import server_name
from proofgate_operator.build.naming import Defaults, Manifest, child, names
from proofgate_operator.build.owners import Owner, Shares, owners, weights

CONFIG_FILE = "gateway.yaml"
#: The newest of those files that every worker took on: whoever starts and refuses the other starts with it.
ACCEPTED_FILE = "accepted.yaml"
CONFIG_FOLDER = "/etc/proofgate"
LEDGER_FOLDER = "/var/lib/proofgate"
#: Where tenants and keys are that have objects of their own, for workers and for HAProxy's agent.
SHARDS_FOLDER = f"{CONFIG_FOLDER}/tenants"
#: Where a worker finds the checkpoints that the operator holds: what comes there rolls nobody.
HELD_FOLDER = "/etc/held-checkpoints"
SIGNING_KEY = "signing-key"
VERIFYING_KEY = "verifying-key"
ADMIN_TOKEN = "token"
TENANT_MAP = "tenants.map"
OWNER_MAP = "owners.map"
WEIGHTS = "weights.map"
#: The key by which workers know HAProxy, for HAProxy and for them.
ROUTING_MAP = "routing.map"
ROUTING_KEY_FILE = "routing.key"
#: Sections of the workers' file that are fixed while a worker runs; it takes on all others as they change.
FIXED_SECTIONS = ("ledger", "listen", "proxyProtocol", "admin")

#: The most that a worker's file may say.
_MOST_BUFFERED_BYTES = 1 << 40

TRAFFIC_PORT = 8080
ADMIN_PORT = 9090


@dataclass(frozen=True)
class KeyDigest:
    """An API key as the workers know it: its SHA-256 in lower-case hexadecimal, and when it expires.

    `expires` is a time of RFC 3339; None is never. `name` is what its tenant calls it.
    """

    digest: str
    expires: str | None = None
    name: str = field(default="", compare=False)

    @property
    def line(self) -> str:
        """The key's line in the workers' file."""
        return self.digest if self.expires is None else f"{self.digest} expires={self.expires}"


def keys_entry(tenant: str) -> str:
    """Return the entry of the tenants Secret, and the file, that holds a tenant's keys.

    The Secret is mounted whole, so that another tenant does not change the pods' template. A tenant's name
    has no dot: no file can hide another one.
    """
    return f"{tenant}.keys"


def _buffered_bytes(memory: int) -> int:
    """Return what a worker may hold of bodies and answers, in bytes; `memory` is all that it has."""
    # A worker from before there was a least is smaller, and its file has to be one that it accepts.
    return min(max(memory, MEMORY_LEAST) - MEMORY_OTHERWISE, _MOST_BUFFERED_BYTES)


def listen(port: int, defaults: Defaults) -> str:
    """Return every address of a pod; `[::]` takes connections of IPv4 too (RFC 3493, section 3.7)."""
    return f"[::]:{port}" if defaults.ipv6 else f"0.0.0.0:{port}"


def worker_config(gateway: Gateway, memory: int, defaults: Defaults) -> Manifest:
    """Return the content of the workers' configuration file; `memory` is the smallest worker's, in bytes."""
    spec = gateway.spec
    providers = []
    for provider in spec.providers:
        entry: Manifest = {
            "name": provider.name,
            "type": provider.type,
            "baseURL": provider.base_url,
            "streamUsage": provider.stream_usage,
        }
        if provider.api_key_secret_ref:
            entry["apiKeyFile"] = f"{CONFIG_FOLDER}/providers/{provider.name}/api-key"
        providers.append(entry)
    content: Manifest = {
        "ledger": {
            "name": gateway.ledger_name,
            "directory": LEDGER_FOLDER,
            "durability": spec.ledger.durability.value,
            "checkpointIntervalSeconds": spec.ledger.checkpoint_interval_seconds,
            "signingKeyFile": f"{CONFIG_FOLDER}/ledger/{SIGNING_KEY}",
            "rotation": {
                "bytes": whole(spec.ledger.rotation.size),
                "seconds": spec.ledger.rotation.age_seconds,
            },
            "heldCheckpoints": {"directory": HELD_FOLDER, "keptBy": "Operator"},
        },
        "listen": listen(TRAFFIC_PORT, defaults),
        "proxyProtocol": {"routingKeyFile": f"{CONFIG_FOLDER}/{ROUTING_KEY_FILE}"},
        "admin": {
            "listen": listen(ADMIN_PORT, defaults),
            "tokenFile": f"{CONFIG_FOLDER}/admin/{ADMIN_TOKEN}",
        },
        "providers": providers,
        "models": [
            {
                "name": model.name,
                "provider": model.provider,
                "upstreamModel": model.upstream_model or model.name,
                "maxOutputTokens": model.max_output_tokens,
            }
            for model in spec.models
        ],
        **_plans(gateway),
        "tenants": [_tenant(tenant) for tenant in spec.tenants],
        "limits": {"bufferedBytes": _buffered_bytes(memory)},
        "metrics": {"labelSets": spec.monitoring.label_sets},
        "timeouts": {
            "upstreamConnectSeconds": spec.timeouts.upstream_connect_seconds,
            "upstreamResponseSeconds": spec.timeouts.upstream_response_seconds,
            "answerSeconds": spec.timeouts.answer_seconds,
            "connectionAgeSeconds": spec.timeouts.connection_age_seconds,
            "drainSeconds": spec.timeouts.drain_seconds,
        },
    }
    # The spec and the workers' file spell these sections alike.
    for name, section in (("jwt", spec.jwt), ("policy", spec.policy), ("cors", spec.cors)):
        if section is not None:
            content[name] = section.as_written()
    return content


def _plans(gateway: Gateway) -> Manifest:
    """Return what the file says of plans, and where the tenants are that do not stand in it."""
    content: Manifest = {}
    if gateway.spec.plans:
        content["plans"] = [plan.as_written() for plan in gateway.spec.plans]
    if gateway.spec.allowed_tenants is not None:
        content["tenantShards"] = {"directory": SHARDS_FOLDER}
    return content


def _tenant(tenant: Tenant) -> Manifest:
    content: Manifest = {"name": tenant.name}
    if tenant.api_keys is not None:
        content["keyHashesFile"] = f"{CONFIG_FOLDER}/{keys_entry(tenant.name)}"
    terms = tenant.as_written()
    for name in ("plan", *TERMS):
        if name in terms:
            content[name] = terms[name]
    return content


def _text(content: Manifest) -> str:
    # libyaml, where it is there: most of what a look costs would be YAML.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(content, Dumper=dumper, sort_keys=False)
    return text


def worker_config_text(gateway: Gateway, memory: int, defaults: Defaults) -> str:
    """Return the workers' configuration file; `memory` is the smallest worker's, in bytes."""
    return _text(worker_config(gateway, memory, defaults))


def fixed_config_text(gateway: Gateway, defaults: Defaults) -> str:
    """Return the part of the file that only a new worker takes on."""
    content = worker_config(gateway, whole(gateway.spec.worker.memory), defaults)
    return _text({name: content[name] for name in FIXED_SECTIONS})


def config_map(gateway: Gateway, text: str, accepted: str | None = None) -> Manifest:
    """Return the ConfigMap of the workers' file, `text`, and of the one that they accepted last."""
    head = child(gateway, "v1", "ConfigMap", names(gateway).config, "worker")
    data = {CONFIG_FILE: text} if accepted is None else {CONFIG_FILE: text, ACCEPTED_FILE: accepted}
    return {**head, "data": data}


def text_digest(text: str) -> str:
    """Return the digest by which a worker tells which file it runs with. It tells nothing secret."""
    return hashlib.sha256(text.encode()).hexdigest()


def encoded(entries: Mapping[str, str]) -> dict[str, str]:
    """Return a Secret's `data`. `stringData` is write-only, so drift in it could not be seen."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in entries.items()}


def haproxy_maps(
    gateway: Gateway,
    keys: Mapping[str, Sequence[KeyDigest]],
    workers: int,
    shares: Shares,
    routing_key: str,
) -> dict[str, str]:
    """Return what HAProxy follows while it runs: digest of a key to tenant, tenant to worker, the weights of
    workers that have not all of their tenants yet, and the key by which workers know HAProxy.

    Where tokens name tenants, a tenant's name stands beside the digests: it is shorter than one.
    `workers` is how many there are to be. HAProxy knows nothing of expiry: an expired key still finds its
    worker, which refuses it and says why.
    """
    tenant_of = {key.digest: tenant for tenant in keys for key in keys[tenant]}
    if gateway.spec.jwt:
        tenant_of |= {tenant.name: tenant.name for tenant in gateway.spec.tenants}
    owner_of = owners(gateway, workers, shares)
    weight_of = weights(shares)
    return {
        TENANT_MAP: "".join(f"{key} {tenant_of[key]}\n" for key in sorted(tenant_of)),
        OWNER_MAP: "".join(f"{tenant} {entry_of(owner_of[tenant])}\n" for tenant in sorted(owner_of)),
        ROUTING_MAP: f"{haproxy_config.ROUTING_KEY} {routing_key}\n" if routing_key else "",
        WEIGHTS: "".join(f"{server_name(ordinal)} {weight_of[ordinal]}\n" for ordinal in sorted(weight_of)),
    }


def entry_of(owner: Owner) -> str:
    """Return a tenant's owner, and who stands in, as the map has them: in one entry, they change together."""
    both = (owner.ordinal,) if owner.stand_in is None else (owner.ordinal, owner.stand_in)
    return haproxy_config.OWNER_SEPARATOR.join(map(server_name, both))


def map_digest(secret: bytes, maps: Mapping[str, str]) -> str:
    """Return the digest of HAProxy's maps, in the terms of `digest`."""
    return digest(secret, [part for name in sorted(maps) for part in (name, maps[name])])


def tenants_secret(
    gateway: Gateway,
    keys: Mapping[str, Sequence[KeyDigest]],
    maps: Mapping[str, str],
    shares: Shares,
    routing_key: str,
) -> Manifest:
    """Return the Secret of key digests: one entry per tenant for the workers, HAProxy's `maps`, and the key
    by which workers know HAProxy.

    Its annotations say which shares the maps are made from.
    """
    entries = {
        keys_entry(tenant): "".join(f"{key.line}\n" for key in sorted(found, key=lambda key: key.digest))
        for tenant, found in keys.items()
    }
    head = child(gateway, "v1", "Secret", names(gateway).tenants, "worker")
    head["metadata"]["annotations"] = shares.annotations
    return {**head, "type": "Opaque", "data": encoded({**entries, **maps, ROUTING_KEY_FILE: routing_key})}


def routing_key(admin_token: str) -> str:
    """Return the key by which workers know HAProxy: 128 bits, in hexadecimal.

    It is made from the admin token, so a deleted Secret of maps comes back with the same one, and tells who
    has it nothing of the token.
    """
    return hmac.new(admin_token.encode(), b"proofgate routing key", hashlib.sha256).hexdigest()[:32]


def admin_secret(gateway: Gateway, token: str) -> Manifest:
    """Return the Secret of the token that the workers' admin port asks for."""
    head = child(gateway, "v1", "Secret", names(gateway).admin, "worker")
    return {**head, "type": "Opaque", "data": encoded({ADMIN_TOKEN: token})}


def ledger_secret_head(gateway: Gateway, *, owned: bool) -> Manifest:
    """Return the head of the Secret of a generated signing key: `owned`, it goes with the gateway."""
    return child(gateway, "v1", "Secret", names(gateway).ledger, "worker", owned=owned)


def ledger_secret(gateway: Gateway, signing_key: str, verifying_key: str) -> Manifest:
    """Return the Secret of a generated signing key, in the text forms of `ledger_key`.

    It has no owner yet: what applies its head gives it one, and can take it away again.
    """
    head = ledger_secret_head(gateway, owned=False)
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
