"""Manifests that the API server accepts, and its messages for those that it refuses."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.largest import everything, largest
from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import ControlPlane
from tests.test_mirrors import MIRROR
from tests.test_oidc import signed_in

pytestmark = pytest.mark.controlplane

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))
OPENAI = {"name": "openai", "type": "OpenAI", "baseURL": "https://api.example.com/v1"}
AWS = {
    "type": "AWSStaticKeys",
    "accessKeyIdSecretRef": {"name": "aws", "key": "id"},
    "secretAccessKeySecretRef": {"name": "aws", "key": "secret"},
}
DEPLOYMENTS = {"api": "Deployments", "apiVersion": "2024-10-21"}
CA_REFS = ("caSecretRef", "caConfigMapRef")
AWS_SIGNED = {"type": "Bedrock", "region": "eu-west-1", "auth": AWS}
VERTEX = {"name": "openai", "type": "VertexAI", "project": "my-project", "location": "global"}
METADATA = {"type": "GCPMetadataServer"}
KEYED = {"type": "APIKey", "apiKeySecretRef": {"name": "x", "key": "x"}}
MODEL = {"name": "gpt", "provider": "openai"}
KEY = {"name": "ci", "secretRef": {"name": "acme-keys", "key": "ci"}}
PRICE = {"model": "gpt-4o-mini", "effectiveFrom": "2026-01-01", "input": "1", "output": "2"}
TENANT = {"name": "acme", "apiKeys": [KEY]}
RULE = {"id": "a-rule", "reason": "It is a test.", "literals": ["bluebird"]}
NAMES = {"name": "names", "factory": "acme.policies:names"}
ISSUER = {
    "issuer": "https://login.example.com/",
    "audiences": ["a"],
    "jwksURL": "https://login.example.com/k",
}
ORIGIN = "ledger.example.com/prod"
AUDITOR = {"signingKeySecretRef": {"name": "auditor-key"}}
KEEPING = {"signingKeySecretRef": {"name": "retention-key"}}
HOLD = {"name": "case", "tenant": "acme", "reason": "litigation"}
POLICY = {"policy": "quorum none\n"}
CA = {"name": "authorities", "key": "ca.crt"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"replicas": 65}, "spec.replicas: Invalid value: 65"),
        ({"replicas": 0}, "spec.replicas: Invalid value: 0"),
        ({"worker": {"cpu": "1.5"}}, "spec.worker.cpu must be a whole number of cores"),
        ({"worker": {"cpu": 0}}, "spec.worker.cpu must be a whole number of cores"),
        ({"worker": {"memory": "lots"}}, "spec.worker.memory"),
        ({"providers": [OPENAI, OPENAI]}, "spec.providers[1]: Duplicate value"),
        ({"models": [MODEL, MODEL]}, "spec.models[1]: Duplicate value"),
        ({"tenants": [TENANT, TENANT]}, "spec.tenants[1]: Duplicate value"),
        ({"providers": [{**OPENAI, "type": "other"}]}, "spec.providers[0].type: Unsupported value"),
        ({"providers": [{**OPENAI, "baseURL": "ftp://x"}]}, "spec.providers[0].baseURL"),
        ({"models": [{"name": "gpt"}]}, "spec.models: a model must have either provider or routes"),
        (
            {"models": [{"name": "gpt", "routes": [{"provider": "azure"}]}]},
            "every provider of a model must be in",
        ),
        (
            {"models": [{"name": "gpt", "provider": "openai", "upstreamModel": "*"}]},
            "an upstreamModel may contain '*' only if",
        ),
        (
            {"models": [{"name": "gpt", "provider": "azure"}]},
            "spec.models: every provider of a model must be in spec.providers",
        ),
        (
            {"tenants": [{**TENANT, "models": ["unknown"]}]},
            "spec.tenants: every model of a tenant must be in spec.models",
        ),
        ({"tenants": []}, "spec.tenants"),
        (
            {"tenants": [{**TENANT, "policies": ["names"]}]},
            "spec.policies: every policy of a tenant or a plan must be in spec.policies",
        ),
        (
            {"plans": [{"name": "gold", "policies": ["name"]}], "policies": [NAMES]},
            "spec.policies: every policy of a tenant or a plan must be in spec.policies",
        ),
        ({"policies": [{"name": "a"}]}, "spec.policies: a policy must have either factory or url"),
        (
            {"policies": [{**NAMES, "url": "https://h/"}]},
            "spec.policies: a policy must have either factory or url",
        ),
        ({"policies": [{**NAMES, "caFile": "/ca"}]}, "spec.policies: caFile needs a url with https"),
        (
            {"policies": [{"name": "a", "url": "http://h/", "tokenFile": "/t"}]},
            "spec.policies: tokenFile needs a url with https, or a url on loopback",
        ),
        (
            {"policies": [{"name": "a", "url": "http://h/", "parameters": {}}]},
            "spec.policies: a policy with a url must not have parameters",
        ),
        ({"policies": [NAMES, NAMES]}, "spec.policies[1]: Duplicate value"),
        (
            {"loadBalancer": {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}}},
            "spec.loadBalancer.resources: requests.cpu must not be more than limits.cpu",
        ),
        (
            {"loadBalancer": {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "512Mi"}}}},
            "spec.loadBalancer.resources: requests.memory must not be more than limits.memory",
        ),
        (
            {"loadBalancer": {"resources": {"requests": {"cpu": "much"}}}},
            "spec.loadBalancer.resources.requests.cpu",
        ),
        (
            {"timeouts": {"drainSeconds": 60}},
            "spec.timeouts: drainSeconds and lameDuckSeconds together must be at least 10 less than"
            " spec.worker.terminationGracePeriodSeconds",
        ),
        (
            {"timeouts": {"lameDuckSeconds": 21}},
            "spec.timeouts: drainSeconds and lameDuckSeconds together must be at least 10 less than"
            " spec.worker.terminationGracePeriodSeconds",
        ),
        (
            # The minimum is 846Mi: 142Mi, 128Mi for 4096 connections, and 9 times 64Mi.
            {"limits": {"bodyBytes": 64 << 20}, "worker": {"memory": "845Mi"}},
            "spec.worker.memory must be at least the sum of 142Mi, (16Ki + limits.headBytes) times "
            "limits.connections, and 9 times limits.bodyBytes",
        ),
        (
            {"limits": {"connections": 16_384}},
            "spec.worker.memory must be at least the sum of 142Mi",
        ),
        (
            {"ledger": {"volume": {"storageClassName": "a", "existingClaim": "b"}}},
            "spec.ledger.volume: set existingClaim or storageClassName, not both",
        ),
        (
            {"ledger": {"volume": {"mode": "PerWorker", "existingClaim": "a"}}},
            "spec.ledger.volume: existingClaim is one claim for all workers, so it needs mode Shared",
        ),
        ({"ledger": {"volume": {"mode": "PerPod"}}}, "spec.ledger.volume.mode: Unsupported value"),
        ({"ledger": {"durability": "queued"}}, "spec.ledger.durability: Unsupported value"),
        ({"polices": {}}, 'unknown field "spec.polices"'),
        ({"providers": [{**OPENAI, "baseURL": "https://a:70000"}]}, "spec.providers[0].baseURL"),
        ({"providers": [{**OPENAI, "baseURL": "https://-a"}]}, "spec.providers[0].baseURL"),
        ({"providers": [{**OPENAI, "region": "eu-west-1"}]}, "region is only for type Bedrock"),
        (
            {"providers": [{**OPENAI, "auth": AWS}]},
            "auth of type AWSStaticKeys or AWSWebIdentity or AWSPodIdentity is only for type Bedrock",
        ),
        ({"providers": [{**OPENAI, **DEPLOYMENTS}]}, "api Deployments is only for type AzureOpenAI"),
        (
            {"providers": [{**OPENAI, "type": "AzureOpenAI", "api": "Deployments"}]},
            "apiVersion is required with api Deployments, and not allowed with any other api",
        ),
        (
            {"providers": [{**OPENAI, "type": "AzureOpenAI", "apiVersion": "2024-10-21"}]},
            "apiVersion is required with api Deployments, and not allowed with any other api",
        ),
        (
            {"providers": [{**OPENAI, "type": "Anthropic", "objectsOf": "acme"}]},
            "objectsOf is only for type OpenAI, and AzureOpenAI with api V1",
        ),
        (
            {"providers": [{**OPENAI, "objectsOf": "nobody"}]},
            "every objectsOf must be a name in spec.tenants",
        ),
        (
            {"providers": [{**OPENAI, "objectsOf": "team/acme"}]},
            "every objectsOf must be a name in spec.tenants",
        ),
        (
            {"providers": [{**OPENAI, "objectsOf": "acme"}, {**OPENAI, "name": "b", "objectsOf": "acme"}]},
            "only one provider may store the objects of a tenant",
        ),
        ({"providers": [{**OPENAI, "type": "Bedrock"}]}, "type Bedrock or VertexAI needs auth"),
        (
            {"providers": [{**OPENAI, **AWS_SIGNED, "auth": {**AWS, **KEYED}}]},
            "auth.accessKeyIdSecretRef is only for type AWSStaticKeys",
        ),
        (
            {"providers": [{**OPENAI, "type": "Bedrock", "auth": AWS}]},
            "AWS credentials need a region",
        ),
        (
            {"providers": [{**OPENAI, "auth": {"type": "APIKey"}}]},
            "auth of type APIKey needs apiKeySecretRef",
        ),
        (
            {
                "providers": [
                    {
                        **OPENAI,
                        "type": "AzureOpenAI",
                        "auth": {"type": "AzureWorkloadIdentity", "clientID": "c"},
                    }
                ]
            },
            "set both auth.clientID and auth.tenantID, or neither",
        ),
        *(
            ({"providers": [{**OPENAI, field: value}]}, "are only for type VertexAI")
            for field, value in (
                ("project", "p"),
                ("location", "global"),
            )
        ),
        (
            {"providers": [{**OPENAI, "type": "VertexAI", "project": "p"}]},
            "type VertexAI needs project and location",
        ),
        (
            {"providers": [{**VERTEX, "auth": KEYED}]},
            "auth of type APIKey is only for type OpenAI or AzureOpenAI or Anthropic or Gemini or Bedrock",
        ),
        ({"providers": [{**VERTEX, "location": "a/b"}]}, "spec.providers[0].location"),
        ({"providers": [{"name": "openai", "type": "OpenAI"}]}, "every type except VertexAI needs a baseURL"),
        (
            {
                "providers": [
                    {**OPENAI, "baseURL": "http://a", "tls": {"caSecretRef": {"name": "a", "key": "b"}}}
                ]
            },
            "providers: tls needs a baseURL with https",
        ),
        (
            {"providers": [{**OPENAI, "tls": {ref: {"name": "a", "key": "b"} for ref in CA_REFS}}]},
            "providers: set tls.caSecretRef or tls.caConfigMapRef, not both",
        ),
        ({"models": [{**MODEL, "maxOutputTokens": 0}]}, "spec.models[0].maxOutputTokens: Invalid value: 0"),
        (
            {"tenants": [{"name": "acme"}]},
            "spec.tenants: every tenant needs apiKeys unless spec.jwt is set",
        ),
        *(
            (
                {"tenants": [{"name": "acme", "apiKeys": [key]}]},
                "apiKeys: a key must have either secretRef or sha256",
            )
            for key in ({"name": "ci"}, {**KEY, "sha256": "a" * 64})
        ),
        ({"tenants": [{**TENANT, "apiKeys": [KEY, KEY]}]}, "spec.tenants[0].apiKeys[1]: Duplicate value"),
        ({"tenants": [{**TENANT, "apiKeys": [{**KEY, "notAfter": "soon"}]}]}, "apiKeys[0].notAfter"),
        ({"tenants": [{**TENANT, "apiKeys": [{"name": "ci", "sha256": "A" * 64}]}]}, "apiKeys[0].sha256"),
        ({"tenants": [{**TENANT, "endpoints": ["embeddings"]}]}, "spec.tenants[0].endpoints[0]: Unsupported"),
        ({"tenants": [{**TENANT, "endpoints": []}]}, "spec.tenants[0].endpoints"),
        (
            {"tenants": [{**TENANT, "limits": {"requestsPerMinute": 0}}]},
            "spec.tenants[0].limits.requestsPerMinute: Invalid value: 0",
        ),
        (
            {"tenants": [{**TENANT, "keyLimits": {"tokensPerHour": 1}}]},
            'unknown field "spec.tenants[0].keyLimits.tokensPerHour"',
        ),
        *(
            ({"tenants": [{**TENANT, "limits": {"dollarsPerDay": amount}}]}, "limits.dollarsPerDay")
            for amount in ("0", "0.00", "-1", "1e3", "1000000000", "0.0000000001")
        ),
        (
            {"tenants": [{**TENANT, "modelBudgets": [{"model": "gone", "dollarsPerDay": "1"}]}]},
            "spec.tenants: every model of a budget must be in spec.models",
        ),
        ({"prices": [{**PRICE, "effectiveFrom": "2026-02-30"}]}, "spec.prices[0].effectiveFrom"),
        ({"prices": [{**PRICE, "input": "0.0000001"}]}, "spec.prices[0].input"),
        ({"prices": [{**PRICE, "model": "a*b"}]}, "spec.prices[0].model"),
        ({"prices": [{**PRICE, "currency": "EUR"}]}, "spec.prices[0].currency: Unsupported value"),
        (
            {"prices": [{**PRICE, "provider": "gone"}]},
            "spec.prices: the provider of every price must be in spec.providers",
        ),
        (
            {"prices": [PRICE, {**PRICE, "input": "3"}]},
            "spec.prices: a model can have only one price for each provider and day",
        ),
        (
            {"tenants": [{**TENANT, "policy": {"mode": "off"}}]},
            "spec.tenants[0].policy.mode: Unsupported value",
        ),
        ({"worker": {"memory": "383Mi"}}, "spec.worker.memory must be at least 384Mi"),
        (
            {"ledger": {"rotation": {"bytes": 524288}}},
            "spec.ledger.rotation.bytes: Invalid value: 524288",
        ),
        ({"ledger": {"rotation": {"seconds": 59}}}, "spec.ledger.rotation.seconds: Invalid value: 59"),
        ({"policy": {"packs": ["everything"]}}, "spec.policy.packs[0]: Unsupported value"),
        ({"policy": {"packs": ["pii", "pii"]}}, 'spec.policy.packs[1]: Duplicate value: "pii"'),
        ({"policy": {"threshold": 0}}, "spec.policy.threshold: Invalid value: 0"),
        (
            {"policy": {"actions": [{"packs": ["pii", "instruction-likeness"], "action": "Block"}]}},
            "instruction-likeness is a learned score and can only flag: set action to Flag or Ignore",
        ),
        (
            {"policy": {"actions": [{"rules": ["instruction-likeness"], "action": "Redact"}]}},
            "instruction-likeness is a learned score and can only flag",
        ),
        (
            {"tenants": [{**TENANT, "guardedTools": {"names": ["Bash", "*Bash"]}}]},
            "guardedTools.names: write letters, digits and _",
        ),
        (
            {"policy": {"rules": [{"id": "empty", "reason": "Nothing."}]}},
            "spec.policy.rules: a rule needs literals, a regex, or both",
        ),
        ({"policy": {"rules": [RULE, RULE]}}, "spec.policy.rules[1]: Duplicate value"),
        ({"policy": {"rules": [{**RULE, "id": "No_Kebab"}]}}, "spec.policy.rules[0].id"),
        ({"policy": {"rules": [{**RULE, "literals": ["Upper"]}]}}, "spec.policy.rules[0].literals[0]"),
        (
            {"cors": {"allowedOrigins": ["*", "https://app.example.com"]}},
            "spec.cors.allowedOrigins: '*' allows every origin, so it must be the only entry",
        ),
        (
            {"cors": {"allowedOrigins": ["https://app.example.com:443"]}},
            "spec.cors.allowedOrigins: remove the default port",
        ),
        ({"cors": {"allowedOrigins": ["https://app.example.com/"]}}, "spec.cors.allowedOrigins[0]"),
        ({"jwt": {"issuers": []}}, "spec.jwt.issuers"),
        ({"jwt": {"issuers": [{**ISSUER, "jwksURL": "http://a"}]}}, "spec.jwt.issuers[0].jwksURL"),
        ({"jwt": {"issuers": [{**ISSUER, "algorithms": ["HS256"]}]}}, "spec.jwt.issuers[0].algorithms[0]"),
        ({"jwt": {"issuers": [ISSUER, ISSUER]}}, "spec.jwt.issuers[1]: Duplicate value"),
        ({"auditor": {}}, "spec.auditor.signingKeySecretRef: Required value"),
        ({"auditor": {**AUDITOR, "cpu": "1.5"}}, "spec.auditor.cpu must be a whole number of cores"),
        ({"auditor": {**AUDITOR, "memory": "64Mi"}}, "spec.auditor.memory must be at least 192Mi"),
        ({"auditor": {**AUDITOR, "scrubMebibytes": -1}}, "spec.auditor.scrubMebibytes"),
        (
            {"auditor": {**AUDITOR, "index": {}}},
            "spec.auditor.memory must be at least 512Mi with spec.auditor.index",
        ),
        (
            {"auditor": {**AUDITOR, "memory": "512Mi", "index": {"exportKey": {}}}},
            "spec.auditor.index.exportKey signs the exports that readers download: set readersSecretRef or "
            "oidc to define readers",
        ),
        (
            {"auditor": signed_in(groups=[{"name": "a", "tenant": "acme", "all": True}])},
            "spec.auditor.index.oidc.groups: set either tenant or all: true",
        ),
        (
            {"auditor": signed_in(groups=[{"name": "a"}])},
            "spec.auditor.index.oidc.groups: set either tenant or all: true",
        ),
        (
            {"auditor": signed_in(redirectUri="https://auditor.example.com/callback")},
            "spec.auditor.index.oidc.redirectUri must end with /oidc/callback",
        ),
        ({"auditor": signed_in(issuer="http://login.example.com")}, "spec.auditor.index.oidc.issuer"),
        (
            {"auditor": signed_in(egress={"allow": ["192.0.2.0/24"]}), "networkPolicies": "None"},
            "spec.auditor.index.oidc.egress needs spec.networkPolicies: Managed",
        ),
        (
            {"auditor": AUDITOR, "ledger": {"checkpointIntervalSeconds": 16}},
            "spec.auditor.stallSeconds must be at least twice spec.ledger.checkpointIntervalSeconds",
        ),
        (
            {"auditor": {**AUDITOR, "storage": {"existingClaim": "a", "storageClassName": "b"}}},
            "spec.auditor.storage: set existingClaim or storageClassName, not both",
        ),
        (
            {"auditor": {**AUDITOR, "storage": {"accessMode": "ReadWriteMany"}}},
            "spec.auditor.storage.accessMode: Unsupported value",
        ),
        (
            {"auditor": {**AUDITOR, "allowFrom": [{}]}},
            "spec.auditor.allowFrom: an item must have either an ipBlock or selectors of pods or namespaces",
        ),
        (
            {"auditor": {**AUDITOR, "allowFrom": [{"podSelector": {}}]}, "networkPolicies": "None"},
            "spec.auditor.allowFrom needs spec.networkPolicies: Managed",
        ),
        ({"worker": {"image": f"worker@sha256:{'1' * 30}"}}, "spec.worker.image"),
        (
            {"internalTLS": {"mode": "Secret", "workerSecretRef": {"name": "worker-tls"}}},
            "spec.internalTLS: workerSecretRef and haproxySecretRef are required with mode Secret",
        ),
        (
            {"internalTLS": {"mode": "Operator", "workerSecretRef": {"name": "worker-tls"}}},
            "spec.internalTLS: workerSecretRef and haproxySecretRef are required with mode Secret",
        ),
        (
            {"loadBalancer": {"insideFrom": [{"podSelector": {}}], "acceptProxyProtocol": True}},
            "spec.loadBalancer.insideFrom needs spec.loadBalancer.acceptProxyProtocol and allowFrom",
        ),
        (
            {"loadBalancer": {"insideFrom": [{}]}},
            "spec.loadBalancer.insideFrom: an item must have either an ipBlock or selectors of pods or "
            "namespaces",
        ),
        (
            {"auditor": {**AUDITOR, "witnesses": {}}},
            "spec.auditor.witnesses.policy: Required value",
        ),
        (
            {
                "auditor": {**AUDITOR, "witnesses": {**POLICY, "egress": {"allow": ["10.0.0.0/8"]}}},
                "networkPolicies": "None",
            },
            "spec.auditor.witnesses.egress needs spec.networkPolicies: Managed",
        ),
        (
            {"auditor": {**AUDITOR, "witnesses": {**POLICY, "caSecretRef": CA, "caConfigMapRef": CA}}},
            "spec.auditor.witnesses: set caSecretRef or caConfigMapRef, not both",
        ),
        (
            {"ledger": {"payloads": {"mode": "Stored"}}},
            "spec.ledger.shredKeys must be set, because stored payloads are encrypted with the keys of "
            "their tenants",
        ),
        (
            {"tenants": [{**TENANT, "payloads": "Stored"}]},
            "spec.ledger.shredKeys must be set, because stored payloads are encrypted with the keys of "
            "their tenants",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_refusal_names_the_field(plane: ControlPlane, changes: dict[str, Any], sentence: str) -> None:
    assert sentence in plane.refusal(gateway_manifest(**changes))


def test_a_name_that_is_too_long_for_its_pods_is_refused(plane: ControlPlane) -> None:
    manifest = gateway_manifest()
    manifest["metadata"]["name"] = "a" * 41
    assert "metadata.name must be at most 40 lower-case letters" in plane.refusal(manifest)


@pytest.mark.parametrize(
    ("volume", "sentence"),
    [
        (
            {"storageClassName": "lab-shared", "size": "512Mi"},
            "spec.ledger.volume.size can grow but not shrink",
        ),
        ({"storageClassName": "other", "size": "1Gi"}, "spec.ledger.volume.storageClassName is immutable"),
        ({"size": "1Gi"}, "spec.ledger.volume.storageClassName is immutable"),
        ({"existingClaim": "mine", "size": "1Gi"}, "spec.ledger.volume.existingClaim is immutable"),
        (
            {"mode": "PerWorker", "storageClassName": "lab-shared", "size": "1Gi"},
            "spec.ledger.volume.mode is immutable",
        ),
    ],
)
def test_the_volume_cannot_be_exchanged(namespace: Namespace, volume: dict[str, str], sentence: str) -> None:
    namespace.apply(gateway_manifest())
    assert sentence in namespace.plane.refusal(gateway_manifest(ledger={"volume": volume}), namespace.name)


def retention(**wanted: Any) -> dict[str, Any]:
    return {"keeping": {**KEEPING, "retention": wanted}}


def holds(*wanted: dict[str, Any]) -> dict[str, Any]:
    return {"keeping": {**KEEPING, "holds": list(wanted)}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"keeping": {}}, "spec.keeping.signingKeySecretRef: Required value"),
        (
            {"keeping": KEEPING, "ledger": {"volume": {"mode": "PerWorker"}}},
            "spec.keeping needs spec.ledger.volume.mode Shared, because no pod can mount the separate "
            "volumes of all workers",
        ),
        ({"keeping": {**KEEPING, "schedule": "at midnight"}}, "spec.keeping.schedule"),
        ({"keeping": {**KEEPING, "schedule": "TZ=UTC 0 0 * * *"}}, "spec.keeping.schedule"),
        (
            {
                "keeping": {**KEEPING, "storage": {"existingClaim": "mine"}},
                "ledger": {"volume": {"existingClaim": "mine"}},
            },
            "spec.keeping.storage.existingClaim must not be the ledger's claim",
        ),
        (retention(maximumDays=0), "spec.keeping.retention.maximumDays"),
        (
            retention(minimumDays=30, maximumDays=29),
            "spec.keeping.retention.maximumDays must be at least minimumDays",
        ),
        (retention(tenants=[{"name": "a"}]), "a tenant must have minimumDays, maximumDays, or both"),
        (
            retention(tenants=[{"name": "a", "minimumDays": 9, "maximumDays": 8}]),
            "a tenant's maximumDays must be at least its minimumDays",
        ),
        (
            retention(minimumDays=9, tenants=[{"name": "a", "minimumDays": 8}]),
            "no tenant's minimumDays may be less than the general minimumDays",
        ),
        (
            retention(minimumDays=9, tenants=[{"name": "a", "maximumDays": 8}]),
            "a tenant's maximumDays must be at least the general minimumDays",
        ),
        (
            retention(maximumDays=9, tenants=[{"name": "a", "maximumDays": 10}]),
            "a tenant's maximumDays may not be more than the general maximumDays",
        ),
        (
            retention(tenants=[{"name": "a", "maximumDays": 8}] * 2),
            "spec.keeping.retention.tenants[1]: Duplicate value",
        ),
        (
            holds({"name": "case", "reason": "r"}),
            "a hold must have either all: true, or at least one of tenant, id, since and until",
        ),
        (
            holds({**HOLD, "all": True}),
            "a hold must have either all: true, or at least one of tenant, id, since and until",
        ),
        (holds({**HOLD, "reason": "two\nlines"}), "spec.keeping.holds[0].reason"),
        (holds(HOLD, {**HOLD, "tenant": "globex"}), "spec.keeping.holds[1]: Duplicate value"),
        (
            holds({**HOLD, "since": "2026-01-01T01:00:00+01:00", "until": "2025-12-31T23:59:59Z"}),
            "spec.keeping.holds: since must not be later than until",
        ),
        (
            {**holds(HOLD), "ledger": {"volume": {"retainPolicy": "Delete"}}},
            "spec.keeping.holds need spec.ledger.volume.retainPolicy Retain",
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_a_refusal_of_keeping_says_what_contradicts_what(
    plane: ControlPlane, changes: dict[str, Any], sentence: str
) -> None:
    assert sentence in plane.refusal(gateway_manifest(**changes))


def test_what_a_hold_is_about_is_not_changed_and_it_may_be_released_or_taken_out(
    namespace: Namespace,
) -> None:
    mine = {**HOLD, "since": "2026-01-01T00:00:00Z"}
    namespace.apply(gateway_manifest(**holds(mine)))
    for change in ({"tenant": "globex"}, {"id": "req_1"}, {"since": "2026-01-02T00:00:00Z"}, {"since": None}):
        changed = {name: value for name, value in {**mine, **change}.items() if value is not None}
        said = namespace.plane.refusal(gateway_manifest(**holds(changed)), namespace.name)
        assert "spec.keeping.holds: the scope of a hold is immutable" in said
    namespace.apply(gateway_manifest(**holds({**mine, "released": "settled", "reference": "17"})))
    released = {"volume": {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": "Delete"}}
    namespace.apply(gateway_manifest(**holds({**mine, "released": "settled"}), ledger=released))
    namespace.apply(gateway_manifest(**holds()))


def test_a_ledgers_origin_and_the_key_that_signs_it_are_for_ever(namespace: Namespace) -> None:
    ledger = gateway_manifest()["spec"]["ledger"]
    mine = {**ledger, "origin": ORIGIN, "signingKeySecretRef": {"name": "mine"}}
    namespace.apply(gateway_manifest(ledger=mine))
    assert namespace.there("ggw", "demo")["spec"]["ledger"]["signingKeySecretRef"]["key"] == "signing-key"
    for change, sentence in (
        ({"origin": "other.example.com"}, "spec.ledger.origin is immutable"),
        ({"origin": None}, "spec.ledger.origin is immutable"),
        (
            {"signingKeySecretRef": {"name": "other"}},
            "spec.ledger.signingKeySecretRef is immutable once it is set",
        ),
        ({"signingKeySecretRef": None}, "spec.ledger.signingKeySecretRef is immutable once it is set"),
    ):
        changed = {name: value for name, value in {**mine, **change}.items() if value is not None}
        assert sentence in namespace.plane.refusal(gateway_manifest(ledger=changed), namespace.name)


def test_an_origin_is_chosen_before_the_first_record(namespace: Namespace) -> None:
    ledger = gateway_manifest()["spec"]["ledger"]
    namespace.apply(gateway_manifest())
    later = gateway_manifest(ledger={**ledger, "origin": ORIGIN})
    assert "spec.ledger.origin is immutable" in namespace.plane.refusal(later, namespace.name)
    namespace.apply(gateway_manifest(ledger={**ledger, "signingKeySecretRef": {"name": "mine"}}))


def test_the_volume_may_grow(namespace: Namespace) -> None:
    namespace.apply(gateway_manifest())
    namespace.apply(gateway_manifest(ledger={"volume": {"storageClassName": "lab-shared", "size": "1500Mi"}}))


def test_an_auditors_storage_is_chosen_once_and_grows_and_workers_may_have_a_volume_each(
    namespace: Namespace,
) -> None:
    def storage(**wanted: str) -> dict[str, Any]:
        return gateway_manifest(auditor={**AUDITOR, "storage": wanted})

    namespace.apply(storage(storageClassName="fast", size="1Gi"))
    for wanted, sentence in (
        ({"storageClassName": "other", "size": "1Gi"}, "spec.auditor.storage.storageClassName is immutable"),
        ({"storageClassName": "fast", "size": "512Mi"}, "spec.auditor.storage.size can grow but not shrink"),
        (
            {"storageClassName": "fast", "size": "1Gi", "accessMode": "ReadWriteOncePod"},
            "spec.auditor.storage.accessMode is immutable",
        ),
    ):
        assert sentence in namespace.plane.refusal(storage(**wanted), namespace.name)
    namespace.apply(storage(storageClassName="fast", size="2Gi"))
    namespace.delete_gateway()
    own = {"volume": {"mode": "PerWorker"}}
    namespace.apply(gateway_manifest(ledger=own, auditor=AUDITOR))
    indexed = {**AUDITOR, "memory": "512Mi", "index": {}}
    namespace.apply(gateway_manifest(ledger=own, auditor=indexed))
    namespace.apply(gateway_manifest(ledger=own, auditor={**indexed, "enabled": False}))
    namespace.apply(gateway_manifest(ledger=own, auditor={**AUDITOR, "mirrors": [MIRROR]}))


def test_the_largest_gateway_the_schema_allows_is_let_in(namespace: Namespace) -> None:
    """CEL rules also have a budget at run time, which a gateway within the limits must never exhaust."""
    manifest = gateway_manifest(**largest())
    # Client-side apply would store a copy in an annotation, and annotations have their own size limit.
    namespace.apply(manifest)


def test_limits_are_let_in_with_just_the_memory_that_they_take(namespace: Namespace) -> None:
    namespace.apply(gateway_manifest(limits={"bodyBytes": 64 << 20}, worker={"memory": "846Mi"}))
    namespace.apply(gateway_manifest(limits={"connections": 16_384}, worker={"memory": "744Mi"}))


def test_every_field_is_let_in_and_kept(namespace: Namespace) -> None:
    namespace.apply(gateway_manifest(**everything()))
    kept = namespace.there("ggw", "demo")["spec"]
    for name, value in everything().items():
        assert kept[name] == value, name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted_in_a_restricted_namespace(namespace: Namespace, path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text()))
    output = namespace.plane.kubectl("apply", "--dry-run=server", "-n", namespace.name, "-f", str(path))
    assert len(output.stdout.splitlines()) == len(documents)
    assert "would violate PodSecurity" not in output.stderr


def test_kubectl_get_shows_the_columns(namespace: Namespace) -> None:
    namespace.apply(gateway_manifest())
    heads = namespace.kubectl("get", "ggw").splitlines()[0].split()
    assert heads == ["NAME", "DESIRED", "WORKERS", "AVAILABLE", "READY", "STATUS", "AGE"]
