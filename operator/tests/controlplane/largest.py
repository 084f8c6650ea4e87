"""Gateways at the limits of the schema: every field set, with the most items and the longest texts."""

from typing import Any

Manifest = dict[str, Any]

_NEVER = "2099-12-31T23:59:59.999999999+14:00"


def everything() -> Manifest:
    """Return a spec with every option set, for use with the Secrets of the tests."""
    quota = {
        **{
            "requestsPerMinute": 600,
            "requestsPerDay": 10**6,
            "tokensPerMinute": 10**5,
            "tokensPerDay": 10**7,
            "concurrency": 64,
        },
        **{"dollarsPerDay": "0.0001", "dollarsPerMonth": "999999999.999999999"},
    }
    budget = {"model": "gpt-4o-mini", "dollarsPerDay": "2", "dollarsPerMonth": "25.50"}
    dearer = {
        **{
            "input": "0.30",
            "cachedInput": "0.15",
            "cacheWrite": "0.4",
            "cacheWrite1h": "0.6",
            "audioInput": "1",
        },
        **{"output": "1.20", "audioOutput": "20"},
    }
    above = [{"promptTokens": 200_000, **dearer}]
    price = {
        **{"provider": "openai", "model": "gpt-4o*", "effectiveFrom": "2026-01-01", "currency": "USD"},
        **{"input": "0.15", "cachedInput": "0.075", "cacheWrite": "0", "audioInput": "999999.999999"},
        **{"output": "0.60", "audioOutput": "10", "perRequest": "0.000000000001", "cacheWrite1h": "0.3"},
        **{"tools": {f"tool-{number}-{'x' * 57}": "999.999999999999" for number in range(8)}},
        **{"above": above, "tiers": {"priority": {**dearer, "above": above}}},
        **{"maxInputTokens": 1_000_000, "maxOutputTokens": 64_000},
    }
    policy = {
        "mode": "DryRun",
        "action": "Flag",
        "threshold": 200,
        "actions": [{"packs": [], "rules": ["pii-email"], "scopes": [], "action": "Ignore"}],
    }
    acme = {
        "name": "acme",
        "apiKeys": [
            {"name": "first", "secretRef": {"name": "acme-keys", "key": "first"}, "notAfter": _NEVER},
            {"name": "elsewhere", "sha256": "a" * 64},
        ],
        "models": ["gpt-4o-mini"],
        "endpoints": ["ChatCompletions", "Models"],
        "hostedTools": {"allow": ["web_search"], "maxCalls": 1000, "tokensPerCall": 1_000_000},
        "guardedTools": {"names": ["Bash", "mcp__github__*"], "onFlag": "RequireApproval"},
        "limits": quota,
        "keyLimits": quota,
        "modelBudgets": [budget],
        "policy": policy,
        "policies": ["names", "guardrail"],
    }
    local = {
        "name": "names",
        "factory": "acme.policies:names",
        "deadlineMilliseconds": 20,
        "onFailure": "Allow",
        "batch": 1,
        "parameters": {"words": ["bluebird"], "strict": True},
    }
    elsewhere = {
        "name": "guardrail",
        "deadlineMilliseconds": 100,
        "onFailure": "Deny",
        "batch": 32,
        "url": "https://guardrail.example.com:8443/v1/evaluate?team=a",
        "caFile": "/etc/guardrail/ca.crt",
        "tokenFile": "/etc/guardrail/token",
    }
    rule = {
        "id": "staff-number",
        "reason": "It holds a staff number.",
        "target": "Request",
        "view": "Folded",
        "literals": ["staff-"],
        "regex": "staff-[0-9]{6}",
        "check": "Mixed",
        "score": 10,
        "action": "Redact",
    }
    issuer = {
        "issuer": "https://login.example.com/",
        "audiences": ["proofgate"],
        "jwksURL": "https://login.example.com:8443/keys?use=sig",
        "algorithms": ["ES256"],
        "tenantClaim": "org",
        "leewaySeconds": 0,
        "refreshSeconds": 60,
    }
    provider = {
        **{"name": "openai", "type": "OpenAI", "baseURL": "https://api.example.com/v1"},
        "auth": {"type": "APIKey", "apiKeySecretRef": {"name": "openai", "key": "api-key"}},
        "tls": {"caConfigMapRef": {"name": "authorities", "key": "ca.crt"}},
        **{"api": "V1", "arnInPath": "Encoded", "streamUsage": "Leave", "untranslatableFields": "Drop"},
        "responses": "Translated",
        **{"anthropicBetas": ["output-128k-2025-02-19"], "maxConcurrentRequests": 9},
        **{
            "minIdleConnections": 1,
            "http": "Auto",
            "limits": {"requestsPerMinute": 500, "tokensPerMinute": 10**5},
        },
        "headers": [
            {"name": "OpenAI-Organization", "value": "org-1"},
            {"name": "X-House", "secretRef": {"name": "openai", "key": "api-key"}},
        ],
        "bodyFields": {"provider": {"data_collection": "deny"}},
        "timeouts": {"connectSeconds": 1, "firstByteSeconds": 600, "idleSeconds": 30},
        "objectsOf": "acme",
    }
    vertex = {
        **{"name": "vertex", "type": "VertexAI", "project": "my-project", "location": "europe-west1"},
        "auth": {
            "type": "GCPWorkloadIdentity",
            "audience": "//iam.googleapis.com/projects/1/locations/global/"
            "workloadIdentityPools/pool/providers/eks",
            "serviceAccount": "worker@my-project.iam.gserviceaccount.com",
            "stsURL": "https://sts.europe-west1.rep.googleapis.com/v1/token",
            "iamCredentialsURL": "https://iamcredentials.googleapis.com",
        },
        **{"api": "V1", "arnInPath": "Encoded", "streamUsage": "Ask", "untranslatableFields": "Refuse"},
        **{"responses": "Auto", "headers": []},
        **{"minIdleConnections": 0, "http": "Http1"},
    }
    return {
        "providers": [provider, vertex],
        "models": [
            {
                **{"name": "gpt-4o-mini", "provider": "openai", "upstreamModel": "x", "maxOutputTokens": 1},
                "routes": [],
                "fallbacks": [{"provider": "openai", "upstreamModel": "other"}],
                "fallbackOn": ["Timeout", "ContextLength"],
            }
        ],
        "internalTLS": {
            "mode": "Secret",
            "workerSecretRef": {"name": "worker-tls"},
            "haproxySecretRef": {"name": "haproxy-tls"},
        },
        "egress": {
            "allow": ["10.0.0.0/8"],
            "proxy": {
                "url": "http://proxy.example.com:3128",
                "credentialsSecretRef": {"name": "proxy"},
                "noProxy": [".svc"],
            },
        },
        "prices": [price],
        "defaultPrices": True,
        "plans": [
            {
                **{"name": "gold", "models": ["gpt-4o-mini"], "limits": quota, "waitSeconds": 30},
                "deniedBetas": ["context-management", "effort-2025-11-24"],
                **{"modelBudgets": [budget], "policy": policy, "policies": ["names"]},
                "allowedNamespaces": {"names": ["team-acme"], "selector": {"matchLabels": {"llm": "gold"}}},
                "perNamespace": {"tenants": 5, "limits": quota},
            }
        ],
        "allowedTenants": {"namespaces": {"from": "All"}},
        "tenants": [acme, {"name": "tokens-only", "plan": "gold"}],
        "jwt": {"issuers": [issuer]},
        "policy": {
            "packs": [
                "prompt-injection",
                "jailbreak",
                "secrets",
                "pii",
                "exfiltration",
                "obfuscation",
                "instruction-likeness",
            ],
            "mode": "Enforce",
            "action": "Block",
            "threshold": 100,
            "budgetMilliseconds": 10,
            "budgetMicrosecondsPerKibibyte": 200,
            "attachments": "ScanText",
            "actions": [
                {"packs": ["pii"], "rules": ["pii-phone"], "scopes": ["ToolResult"], "action": "Ignore"}
            ],
            "allow": {"values": ["test-key"], "domains": ["acme.com"], "patterns": ["*@acme.com"]},
            "flagThreshold": 50,
            "rules": [rule],
        },
        "policies": [local, elsewhere],
        "cors": {"allowedOrigins": ["https://app.example.com"], "maxAgeSeconds": 0},
        "auditor": {
            "enabled": True,
            "signingKeySecretRef": {"name": "auditor-key", "key": "key"},
            "storage": {"size": "2Gi", "storageClassName": "lab-shared", "accessMode": "ReadWriteOncePod"},
            **{"beatSeconds": 20, "secondLookSeconds": 60, "stallSeconds": 90, "scrubMebibytes": 0},
            **{"cpu": "1", "memory": "512Mi"},
            "allowFrom": [{"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.1/32"]}}],
            "witnesses": {
                **{"policy": "quorum none\n", "allowHttp": True, "egress": {"allow": ["192.0.2.0/24"]}},
                **{"caConfigMapRef": {"name": "authorities", "key": "ca.crt"}, "deadlineSeconds": 600},
            },
            "index": {
                "enabled": True,
                "retentionDays": 30,
                "readersSecretRef": {"name": "readers", "key": "readers.json"},
                "oidc": {
                    "issuer": "https://login.example.com:8443/realms/bank",
                    "clientId": "proofgate-auditor",
                    "clientSecretRef": {"name": "acme-keys", "key": "second"},
                    "redirectUri": "https://auditor.example.com/oidc/callback",
                    **{"scope": "openid groups", "groupsClaim": "roles", "nameClaim": "email"},
                    "groups": [
                        {"name": "officers", "all": True},
                        {"name": "acme", "tenant": "acme", "all": False},
                    ],
                    **{"sessionSeconds": 3600, "egress": {"allow": ["192.0.2.0/24"]}},
                    "caConfigMapRef": {"name": "authorities", "key": "ca.crt"},
                },
                "exportKey": {"secretRef": {"name": "export-key", "key": "key"}},
            },
            "mirrors": [
                {
                    **{"bucket": "evidence", "prefix": "team/llm", "endpoint": "http://192.0.2.7:9000"},
                    **{"region": "eu-1", "objectLock": {"mode": "Governance", "days": 400}},
                    **{"credentialsSecretRef": {"name": "acme-keys"}, "allowHttp": True},
                    "egress": {"allow": ["192.0.2.0/24"]},
                    "caConfigMapRef": {"name": "authorities", "key": "ca.crt"},
                }
            ],
            "siem": [
                {
                    "url": "otlp+http://collector.example.com:4318/base",
                    "format": "OCSF",
                    "authorizationSecretRef": {"name": "acme-keys", "key": "second"},
                    **{"allowPlain": True, "egress": {"allow": ["192.0.2.0/24"]}},
                    "caConfigMapRef": {"name": "authorities", "key": "ca.crt"},
                }
            ],
            "podTemplate": {"nodeSelector": {"disk": "ssd"}},
        },
        "keeping": {
            "signingKeySecretRef": {"name": "retention-key", "key": "key"},
            "storage": {"size": "2Gi", "storageClassName": "lab-shared", "accessMode": "ReadWriteOncePod"},
            **{"schedule": "15 3 * * 1-5", "suspend": False},
            "retention": {
                **{"minimumDays": 30, "maximumDays": 365},
                "tenants": [{"name": "acme", "minimumDays": 60, "maximumDays": 90}],
            },
            "holds": [
                {
                    **{"name": "case-17", "tenant": "team/acme", "id": "req_0199", "all": False},
                    **{"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00+01:00"},
                    **{"reason": "litigation", "reference": "2026-17", "released": "settled"},
                }
            ],
        },
        "timeouts": {
            **{"clientHeadSeconds": 20, "clientBodySeconds": 600, "clientIdleSeconds": 90},
            **{"upstreamConnectSeconds": 1, "upstreamFirstByteSeconds": 300, "upstreamResponseSeconds": 20},
            **{"answerSeconds": 600, "heartbeatSeconds": 0, "connectionAgeSeconds": 60, "drainSeconds": 9},
            "lameDuckSeconds": 5,
        },
        "limits": {
            **{"headBytes": 32768, "bodyBytes": 16 << 20, "uploadBytes": 1 << 40, "connections": 2048},
        },
        "analysis": {
            **{"sample": 0.5, "tenants": ["acme"], "models": ["gpt-4o"], "window": 500, "falseAlarms": 0.01},
            **{"topLogprobs": 8, "vocabulary": 200_000, "repetition": 0.6, "maxAnswerBytes": 65536},
            **{"maxCopyBytes": 8388608, "maxPairs": 64},
        },
        "telemetry": {
            "accessLog": "Errors",
            "endpoint": "https://collector.example.com:4318",
            "headers": [{"name": "Authorization", "secretRef": {"name": "acme-keys", "key": "second"}}],
            "caFile": "/etc/collector/ca.crt",
            "traces": {"ratio": 0.25, "propagate": False},
            "metrics": True,
            "semanticConventions": "V1_41",
            "resourceAttributes": [{"name": "deployment.environment.name", "value": "staging"}],
        },
    }


def largest() -> Manifest:
    """Return a spec with as many items as the schema allows, each as long as an object's size permits."""
    models = [
        {
            "name": f"model-{number:03d}",
            "routes": [{"provider": "openai"}] * 8,
            "fallbacks": [{"provider": "openai"}] * 8,
        }
        for number in range(16)
    ]
    policies = [
        {"name": f"policy-{number:02d}", "url": f"https://example.com/{'u' * 490}"} for number in range(16)
    ]
    tenants = [
        {
            "name": f"tenant-{number}",
            "apiKeys": [
                {"name": f"key-{key}", "secretRef": {"name": "keys", "key": f"{number}-{key}"}}
                for key in range(32)
            ],
            "models": [model["name"] for model in models[-32:]],
            "modelBudgets": [{"model": model["name"], "dollarsPerDay": "1"} for model in models[-16:]],
            "policy": {"actions": [{"rules": [f"rule-{rule}" for rule in range(32)], "action": "Ignore"}]},
            "policies": [policy["name"] for policy in policies[-8:]],
        }
        for number in range(128)
    ]
    prices = [
        {
            **{"provider": "openai", "model": "m" * 96, "effectiveFrom": f"20{number:02d}-01-01"},
            **{"input": "1", "output": "1"},
        }
        for number in range(16)
    ]
    rules = [
        {
            "id": f"{'r' * 61}-{number:02d}",
            "reason": "r" * 256,
            "literals": [f"{'l' * 93}{literal:03d}" for literal in range(32)],
            "regex": "x" * 1024,
        }
        for number in range(32)
    ]
    claim = "c" * 509
    issuers = [
        {
            "issuer": f"{claim}{number:03d}",
            "audiences": [f"{claim}{audience:03d}" for audience in range(8)],
            "jwksURL": f"https://example.com/{'k' * 490}",
        }
        for number in range(8)
    ]
    ignored = [f"{'d' * 60}-{number:03d}" for number in range(128)]
    # With domains of the maximum length, the object would exceed etcd's size limit.
    allowed = [f"a{number:03d}.com" for number in range(128)]
    plans = [
        {
            "name": f"plan-{number}",
            "models": [model["name"] for model in models[-32:]],
            "policies": [policy["name"] for policy in policies[-8:]],
            # With the maximum number of names, the object would exceed etcd's size limit.
            "allowedNamespaces": {"names": [f"team-{number}"]},
            "perNamespace": {
                "tenants": 10_000,
                "limits": {
                    "requestsPerMinute": 1_000_000_000_000,
                    "tokensPerMinute": 1_000_000_000_000,
                    "tokensPerDay": 1_000_000_000_000,
                    "concurrency": 1_000_000_000_000,
                    "dollarsPerDay": "999999999.999999999",
                    "dollarsPerMonth": "999999999.999999999",
                },
            },
        }
        for number in range(32)
    ]
    providers = [
        {"name": name, "type": "OpenAI", "baseURL": "https://example.com", "objectsOf": f"tenant-{number}"}
        for number, name in enumerate(["openai", *(f"provider-{number}" for number in range(15))])
    ]
    return {
        "providers": providers,
        "models": models,
        "prices": prices,
        "plans": plans,
        "tenants": tenants,
        "allowedTenants": {"namespaces": {"from": "All"}},
        "jwt": {"issuers": issuers},
        "policy": {
            "rules": rules,
            "actions": [{"rules": ignored, "action": "Ignore"}],
            "allow": {"values": allowed, "domains": allowed, "patterns": allowed},
        },
        "policies": policies,
        "loadBalancer": {
            "acceptProxyProtocol": True,
            "allowFrom": [{"podSelector": {"matchLabels": {"app": "balancer"}}}] * 32,
            "insideFrom": [{"namespaceSelector": {"matchLabels": {"app": "client"}}}] * 32,
        },
        "cors": {"allowedOrigins": [f"https://{'o' * 240}{number:03d}.dev" for number in range(32)]},
        "auditor": {
            "signingKeySecretRef": {"name": "k" * 253, "key": "k" * 253},
            "memory": "512Mi",
            "index": {
                "readersSecretRef": {"name": "readers", "key": "readers.json"},
                "oidc": {
                    "issuer": f"https://login.example.com/{'i' * 480}",
                    "clientId": "c" * 256,
                    "clientSecretRef": {"name": "key", "key": "key"},
                    "redirectUri": f"https://auditor.example.com/{'r' * 460}/oidc/callback",
                    "groups": [
                        {"name": f"{'g' * 253}-{number:02d}", "tenant": f"team/{'t' * 250}"}
                        for number in range(16)
                    ],
                    "egress": {"allow": [f"192.0.{number}.0/24" for number in range(32)]},
                },
                "exportKey": {},
            },
            "allowFrom": [{"podSelector": {"matchLabels": {"app": "witness"}}}] * 32,
            "witnesses": {
                "policy": "quorum none\n",
                "egress": {"allow": [f"192.0.{number}.0/24" for number in range(32)]},
            },
            "mirrors": [
                {
                    **{"bucket": f"{'b' * 60}-{number}", "prefix": "p"},
                    "endpoint": "https://s3.example.com",
                    "objectLock": {"mode": "Compliance", "days": 36_500},
                    "credentialsSecretRef": {"name": "key"},
                    "egress": {"allow": ["192.0.2.0/24"]},
                }
                for number in range(4)
            ],
            "siem": [
                {
                    "url": f"otlp+https://example.com/{number}",
                    "authorizationSecretRef": {"name": "key", "key": "key"},
                    "egress": {"allow": ["192.0.2.0/24"]},
                }
                for number in range(4)
            ],
        },
        "keeping": {
            "signingKeySecretRef": {"name": "retention-key"},
            "retention": {
                "minimumDays": 1,
                "maximumDays": 36_500,
                "tenants": [
                    {"name": f"tenant-{number}", "minimumDays": 1, "maximumDays": 36_500}
                    for number in range(128)
                ],
            },
            "holds": [
                {
                    **{"name": f"hold-{number:02d}", "tenant": "acme", "reason": "r"},
                    **{"since": _NEVER, "until": _NEVER},
                }
                for number in range(32)
            ],
        },
        "limits": {"headBytes": 65536, "bodyBytes": 1 << 30, "uploadBytes": 1 << 40, "connections": 65536},
        "worker": {"memory": "16Gi"},
        "telemetry": {
            "endpoint": f"https://example.com/{'u' * 490}",
            "headers": [
                {"name": f"{'h' * 61}-{number:02d}", "secretRef": {"name": "collector", "key": "k" * 253}}
                for number in range(8)
            ],
            "resourceAttributes": [
                {"name": f"{'r' * 124}.{number:03d}", "value": "v" * 64} for number in range(32)
            ],
        },
        "analysis": {
            "tenants": [f"team/tenant-{number:02d}" for number in range(16)],
            "models": [f"model-{number:02d}" for number in range(16)],
        },
    }
