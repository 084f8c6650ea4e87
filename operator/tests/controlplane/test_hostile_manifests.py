"""Manifests that no gateway can serve or that ask for forbidden access: the API server refuses each, or the
first status that the operator writes reports it."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.controlplane.api import Manifest, Refused, secret
from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for

pytestmark = pytest.mark.controlplane

Changes = dict[str, Any]
PROVIDER = gateway_manifest()["spec"]["providers"][0]
PROVIDER_FIELD = "spec.providers[openai].baseURL"
MODEL = {"name": "m", "provider": "openai"}
KEYED = {"name": "ci", "secretRef": {"name": "acme-keys", "key": "first"}}
ACME = {"name": "acme", "apiKeys": [KEYED]}
ISSUER = {
    "issuer": "https://login.example.com/",
    "audiences": ["a"],
    "jwksURL": "https://login.example.com/k",
}
#: The API server's messages for enumerations and patterns of the CRD.
NOT_OF_THE_LIST, NOT_MATCHED = "Unsupported value", "should match"


def at(url: str, **more: Any) -> Changes:
    return {"providers": [{**PROVIDER, "baseURL": url}], **more}


def provider(**more: Any) -> Changes:
    return {"providers": [{**PROVIDER, **more}]}


def tenant(**more: Any) -> Changes:
    return {"tenants": [{**ACME, **more}]}


def keyed(**more: Any) -> Changes:
    return tenant(apiKeys=[{**KEYED, **more}])


def digest(text: str, **more: Any) -> Changes:
    return tenant(apiKeys=[{"name": "ci", "sha256": text, **more}])


def volume(**more: Any) -> Changes:
    return {"ledger": {"volume": more}}


def priced(**more: Any) -> Changes:
    return {"prices": [{"model": "*", "effectiveFrom": "2026-01-01", "input": "1", "output": "2", **more}]}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


#: The changes to a working gateway, and the text that the report must contain, by name.
HOSTILE: dict[str, tuple[Changes, str]] = {
    # Destinations of requests.
    "metadata-service": (at("http://169.254.169.254/v1"), PROVIDER_FIELD),
    "metadata-of-ipv6": (at("http://[fd00:ec2::254]/v1"), PROVIDER_FIELD),
    "metadata-by-name": (at("https://metadata.google.internal/v1"), PROVIDER_FIELD),
    "mapped-metadata": (at("http://[::ffff:169.254.169.254]/v1"), PROVIDER_FIELD),
    "link-local": (at("http://[fe80::1]/v1"), PROVIDER_FIELD),
    "plain-http": (at("http://api.example.com/v1"), PROVIDER_FIELD),
    "outside-of-egress": (at("https://203.0.113.7/v1", egress={"allow": ["192.0.2.0/24"]}), PROVIDER_FIELD),
    "address-of-three": (at("https://10.0.0"), "spec.providers[openai]"),
    "user-in-the-url": (at("https://user:password@api.example.com/v1"), "baseURL"),
    "query-in-the-url": (at("https://api.example.com/v1?x=y"), "baseURL"),
    "fragment-in-the-url": (at("https://api.example.com/v1#x"), "baseURL"),
    "file-url": (at("file:///etc/passwd"), "baseURL"),
    "line-in-the-url": (at("https://api.example.com/v1\r\nx: y"), "baseURL"),
    "egress-of-40-bits": ({"egress": {"allow": ["10.0.0.0/40"]}}, "spec.egress.allow"),
    "providers-of-one-name": ({"providers": [PROVIDER, PROVIDER]}, "spec.providers"),
    "provider-as-a-path": (
        {"providers": [{**PROVIDER, "name": "../x"}], "models": [{"name": "m", "provider": "../x"}]},
        "spec.providers[0].name",
    ),
    "provider-of-no-type": (provider(type="Magic"), NOT_OF_THE_LIST),
    "provider-without-its-secret": (
        provider(auth={"type": "APIKey", "apiKeySecretRef": {"name": "nowhere", "key": "k"}}),
        "Secret nowhere",
    ),
    "model-of-no-provider": ({"models": [{"name": "m", "provider": "nobody"}]}, "spec.models"),
    "fallback-to-nobody": ({"models": [{**MODEL, "fallbacks": [{"provider": "nobody"}]}]}, "spec.models"),
    "models-of-one-name": ({"models": [MODEL, MODEL]}, "spec.models"),
    "line-in-a-model": ({"models": [{**MODEL, "name": "m\nx"}]}, "spec.models[0].name"),
    "no-model": ({"models": []}, "spec.models"),
    # Clients and their keys.
    "expired-key": (
        {"tenants": [{**ACME, "apiKeys": [{**KEYED, "notAfter": "2021-01-31T00:00:00Z"}]}]},
        "spec.tenants[acme].apiKeys",
    ),
    "expired-leap-second": (keyed(notAfter="2020-12-31T23:59:60Z"), "notAfter"),
    "key-of-30-february": (keyed(notAfter="2027-02-30T00:00:00Z"), "notAfter"),
    "guessed-digest": (digest(sha256("test")), "spec.tenants[acme].apiKeys[ci]"),
    "guessed-digest-of-echo": (digest(sha256("changeme\n")), "spec.tenants[acme].apiKeys[ci]"),
    "digest-in-capitals": (digest("AB" * 32), "sha256"),
    "digest-of-sha1": (digest("ab" * 20), "sha256"),
    "key-from-nowhere-and-somewhere": (digest("ab" * 32, secretRef=KEYED["secretRef"]), "apiKeys"),
    "key-without-a-source": (tenant(apiKeys=[{"name": "ci"}]), "apiKeys"),
    "keys-of-one-name": (tenant(apiKeys=[KEYED, KEYED]), "apiKeys"),
    "key-of-two-tenants": ({"tenants": [ACME, {**ACME, "name": "globex"}]}, "are the same key"),
    "key-that-is-short": (
        keyed(secretRef={"name": "weak", "key": "short"}),
        "spec.tenants[acme].apiKeys[ci]",
    ),
    "key-that-is-a-word": (
        keyed(secretRef={"name": "weak", "key": "word"}),
        "spec.tenants[acme].apiKeys[ci]",
    ),
    "key-of-an-entry-that-is-not-there": (keyed(secretRef={"name": "weak", "key": "no"}), "Secret weak"),
    "key-of-a-secret-that-is-not-there": (keyed(secretRef={"name": "no", "key": "x"}), "Secret no"),
    "secret-in-another-namespace": (keyed(secretRef={"name": "kube-system/x", "key": "x"}), "secretRef.name"),
    "entry-as-a-path": (keyed(secretRef={"name": "weak", "key": "../token"}), "secretRef.key"),
    "tenants-of-one-name": ({"tenants": [ACME, ACME]}, "spec.tenants"),
    "tenant-with-a-slash": (tenant(name="team/acme"), "spec.tenants[0].name"),
    "nobody": ({"tenants": []}, "spec.tenants"),
    "tokens-from-plain-http": (
        {"jwt": {"issuers": [{**ISSUER, "jwksURL": "http://login.example.com"}]}},
        "jwksURL",
    ),
    "tokens-for-nobody": ({"jwt": {"issuers": [{**ISSUER, "audiences": []}]}}, "audiences"),
    # Limits.
    "budget-without-a-price": (tenant(limits={"dollarsPerDay": "25.5"}), "price"),
    "budget-below-nothing": (tenant(limits={"dollarsPerDay": "-1"}), "dollarsPerDay"),
    "budget-that-is-no-number": (tenant(limits={"dollarsPerDay": "NaN"}), "dollarsPerDay"),
    "no-request-a-minute": (tenant(limits={"requestsPerMinute": 0}), "requestsPerMinute"),
    "price-of-30-february": (priced(effectiveFrom="2026-02-30"), "effectiveFrom"),
    "price-in-words": (priced(input="cheap"), "input"),
    "share-of-nobody": (
        {"plans": [{"name": "gold", "perNamespace": {"tenants": 0}}], "allowedTenants": {}},
        "perNamespace.tenants",
    ),
    "share-of-nothing": (
        {"plans": [{"name": "gold", "perNamespace": {"limits": {}}}], "allowedTenants": {}},
        "perNamespace must have tenants",
    ),
    "shared-budget-below-nothing": (
        {
            "plans": [{"name": "gold", "perNamespace": {"limits": {"dollarsPerDay": "-1"}}}],
            "allowedTenants": {},
        },
        "perNamespace.limits.dollarsPerDay",
    ),
    "shared-budget-without-a-price": (
        {
            "plans": [{"name": "gold", "perNamespace": {"limits": {"dollarsPerDay": "25.5"}}}],
            "allowedTenants": {},
        },
        "price",
    ),
    "selector-that-selects-nothing": (
        {"plans": [{"name": "gold"}], "allowedTenants": {"namespaces": {"from": "Selector"}}},
        "spec.allowedTenants",
    ),
    # Storage and signing of the evidence.
    "volume-of-a-byte": (volume(size="1"), "spec.ledger.volume.size"),
    "volume-of-nothing": (volume(size="0"), "spec.ledger.volume.size"),
    "volume-below-nothing": (volume(size="-1Gi"), "spec.ledger.volume.size"),
    "volume-of-two-kinds": (volume(existingClaim="x", storageClassName="y"), "spec.ledger.volume"),
    "ledger-key-that-is-not-there": (
        {"ledger": {"volume": {"size": "1Gi"}, "signingKeySecretRef": {"name": "no-key"}}},
        "no-key",
    ),
    "origin-of-two-words": (
        {"ledger": {"volume": {"size": "1Gi"}, "origin": "two words"}},
        "spec.ledger.origin",
    ),
    # Pods.
    "no-worker": ({"replicas": 0}, "spec.replicas"),
    "more-workers-than-there-can-be": ({"replicas": 100_000}, "spec.replicas"),
    "worker-of-a-mebibyte": ({"worker": {"memory": "1Mi"}}, "memory"),
    "worker-without-a-cpu": ({"worker": {"cpu": "0"}}, "cpu"),
    "image-of-two-words": ({"loadBalancer": {"image": "haproxy; rm -rf /"}}, "image"),
    "certificate-that-is-not-there": (
        {"loadBalancer": {"tls": {"certificateSecretRef": {"name": "no-tls"}}}},
        "Secret no-tls",
    ),
    "certificate-that-is-none": (
        {"loadBalancer": {"tls": {"certificateSecretRef": {"name": "weak"}}}},
        "Secret weak",
    ),
    "peers-of-33-bits": (
        {"loadBalancer": {"allowFrom": [{"ipBlock": {"cidr": "10.0.0.0/33"}}]}},
        "spec.loadBalancer.allowFrom",
    ),
    "rule-that-is-not-there": (
        {"policy": {"actions": [{"rules": ["no-such"], "action": "Ignore"}]}},
        "spec.policy.actions",
    ),
}


def _gateway(name: str, changes: Changes) -> Manifest:
    manifest = gateway_manifest(**changes)
    manifest["metadata"]["name"] = name
    return manifest


def _first_status(namespace: Namespace, name: str) -> Callable[[], Manifest | None]:
    """Return a function that returns a gateway's status once the operator has seen the gateway."""

    def find() -> Manifest | None:
        found = namespace.there("ggw", name)
        seen = found.get("status") or {}
        return seen if seen.get("observedGeneration") == found["metadata"]["generation"] else None

    return find


def _told(status: Manifest) -> str:
    """Return the messages of the conditions that report errors."""
    told = [
        condition["message"]
        for condition in status["conditions"]
        if condition["type"] in ("Ready", "ConfigValid", "ResolvedRefs", "StorageBound")
    ]
    return "\n".join(told)


def test_each_is_refused_or_told_with_the_first_status(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.apply(secret("weak", short="x", word="changeme", **{"tls.crt": "none", "tls.key": "none"}))
    namespace.start()
    refused, silent = {}, {}
    for number, (what, (changes, field)) in enumerate(HOSTILE.items()):
        try:
            namespace.apply(_gateway(f"hostile-{number}", changes))
        except Refused as refusal:
            refused[what] = str(refusal)
            if field not in str(refusal):
                silent[what] = f"refused without {field}: {refusal}"
    assert len(refused) >= 20, sorted(refused)
    for number, (what, (_, field)) in enumerate(HOSTILE.items()):
        if what in refused:
            continue
        status = wait_for(_first_status(namespace, f"hostile-{number}"), f"the operator has seen {what}")
        if field not in _told(status):
            silent[what] = f"nothing of {field}: {_told(status)}"
    assert not silent, json.dumps(silent, indent=1)
