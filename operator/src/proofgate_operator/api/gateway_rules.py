"""CEL rules of a `GovernanceGateway`, for checks that a single field's schema cannot express."""

from typing import Any

from proofgate_schema.limits import CONNECTION_BYTES

from proofgate_operator.api.auditor import AUDITOR_RULES
from proofgate_operator.api.keeping import KEEPING_RULES
from proofgate_operator.api.worker import BASE_MEMORY, MIN_BODY, MIN_BUFFERED_BODIES, READ_BUFFER_FACTOR

#: The maximum length of a gateway's name: leaves space for `-worker-63` in a pod's name and for the revision
#: hash in its labels (63 characters).
MAX_NAME_LENGTH = 40

#: Rules over several fields of the spec. The API server limits the cost of rules: estimated from the bounds
#: above when the CRD is written, and counted when an object is written. The largest allowed spec must stay
#: below both limits.
SPEC_RULES: list[dict[str, Any]] = [
    {
        "rule": "[self.providers.map(p, p.name)].all(names, self.models.all(m,"
        " (!has(m.provider) || m.provider in names) && m.routes.all(r, r.provider in names) &&"
        " m.fallbacks.all(f, f.provider in names)))",
        "fieldPath": ".models",
        "message": "spec.models: every provider of a model must be in spec.providers",
    },
    {
        "rule": "self.models.all(m, has(m.provider) != (m.routes.size() > 0) &&"
        " (has(m.provider) || !has(m.upstreamModel)))",
        "fieldPath": ".models",
        "message": "spec.models: a model must have either provider or routes, and upstreamModel is only "
        "for a model with provider",
    },
    {
        "rule": "self.models.all(m, m.name.endsWith('*') ||"
        " (!has(m.upstreamModel) || !m.upstreamModel.contains('*')) &&"
        " m.routes.all(r, !has(r.upstreamModel) || !r.upstreamModel.contains('*')) &&"
        " m.fallbacks.all(f, !has(f.upstreamModel) || !f.upstreamModel.contains('*')))",
        "fieldPath": ".models",
        "message": "spec.models: an upstreamModel may contain '*' only if the model's own name ends with '*'",
    },
    {
        # A list of one item binds the names once; `in` costs one step per name, a comparison of strings many.
        "rule": "[self.models.map(m, m.name)].all(names,"
        " self.tenants.all(t, !has(t.models) || t.models.all(name, name in names)))",
        "fieldPath": ".tenants",
        "message": "spec.tenants: every model of a tenant must be in spec.models",
    },
    {
        "rule": "[self.models.map(m, m.name)].all(names,"
        " self.plans.all(p, !has(p.models) || p.models.all(name, name in names)))",
        "fieldPath": ".plans",
        "message": "spec.plans: every model of a plan must be in spec.models",
    },
    {
        "rule": "[self.models.map(m, m.name)].all(names,"
        " self.tenants.all(t, !has(t.modelBudgets) || t.modelBudgets.all(b, b.model in names)))",
        "fieldPath": ".tenants",
        "message": "spec.tenants: every model of a budget must be in spec.models",
    },
    {
        "rule": "[self.models.map(m, m.name)].all(names,"
        " self.plans.all(p, !has(p.modelBudgets) || p.modelBudgets.all(b, b.model in names)))",
        "fieldPath": ".plans",
        "message": "spec.plans: every model of a budget must be in spec.models",
    },
    {
        "rule": "[self.providers.map(p, p.name)].all(names,"
        " self.prices.all(p, !has(p.provider) || p.provider in names))",
        "fieldPath": ".prices",
        "message": "spec.prices: the provider of every price must be in spec.providers",
    },
    {
        "rule": "self.providers.all(p, !has(p.objectsOf) ||"
        " self.providers.exists_one(q, has(q.objectsOf) && q.objectsOf == p.objectsOf))",
        "fieldPath": ".providers",
        "message": "spec.providers: only one provider may store the objects of a tenant",
    },
    {
        "rule": "[self.tenants.map(t, t.name)].all(names, self.providers.all(p, !has(p.objectsOf) ||"
        " p.objectsOf in names || has(self.allowedTenants) && p.objectsOf.contains('/')))",
        "fieldPath": ".providers",
        "message": "spec.providers: every objectsOf must be a name in spec.tenants or, with "
        "spec.allowedTenants, NAMESPACE/NAME of a GatewayTenant",
    },
    {
        "rule": "self.prices.all(p, self.prices.exists_one(q, p.model == q.model &&"
        " p.effectiveFrom == q.effectiveFrom && has(p.provider) == has(q.provider) &&"
        " (!has(p.provider) || p.provider == q.provider)))",
        "fieldPath": ".prices",
        "message": "spec.prices: a model can have only one price for each provider and day",
    },
    {
        "rule": "[self.policies.map(p, p.name)].all(names,"
        " self.tenants.all(t, !has(t.policies) || t.policies.all(name, name in names)) &&"
        " self.plans.all(p, !has(p.policies) || p.policies.all(name, name in names)))",
        "fieldPath": ".policies",
        "message": "spec.policies: every policy of a tenant or a plan must be in spec.policies",
    },
    {
        "rule": "!self.plans.exists(p, has(p.guardedTools)) && !self.tenants.exists(t, has(t.guardedTools))"
        " || has(self.policy) && self.policy.packs.exists(p,"
        " p in ['prompt-injection', 'jailbreak', 'exfiltration', 'obfuscation'])",
        "fieldPath": ".policy",
        "message": "spec.policy.packs: guardedTools need prompt-injection, jailbreak, exfiltration or "
        "obfuscation, because these packs flag the texts against which tools are guarded",
    },
    {
        "rule": "[self.plans.map(p, p.name)].all(names,"
        " self.tenants.all(t, !has(t.plan) || t.plan in names))",
        "fieldPath": ".tenants",
        "message": "spec.tenants: every tenant's plan must be in spec.plans",
    },
    {
        "rule": "self.tenants.size() > 0 || has(self.allowedTenants)",
        "fieldPath": ".tenants",
        "message": "spec.tenants: list a tenant, or let GatewayTenants attach with spec.allowedTenants",
    },
    {
        "rule": "has(self.jwt) || self.tenants.all(t, has(t.apiKeys))",
        "fieldPath": ".tenants",
        "message": "spec.tenants: every tenant needs apiKeys unless spec.jwt is set",
    },
    {
        "rule": "self.timeouts.connectionAgeSeconds * 11 <="
        " (self.loadBalancer.terminationGracePeriodSeconds - 30) * 10",
        "fieldPath": ".timeouts.connectionAgeSeconds",
        "message": "spec.timeouts.connectionAgeSeconds, plus a tenth, must be at least 30 less than "
        "spec.loadBalancer.terminationGracePeriodSeconds; otherwise a replaced HAProxy closes connections "
        "in use",
    },
    {
        "rule": "has(self.ledger.shredKeys) ||"
        " (!has(self.ledger.payloads) || self.ledger.payloads.mode == 'Committed') &&"
        " self.plans.all(p, !has(p.payloads) || p.payloads == 'Committed') &&"
        " self.tenants.all(t, !has(t.payloads) || t.payloads == 'Committed')",
        "fieldPath": ".ledger",
        "message": (
            "spec.ledger.shredKeys must be set, because stored payloads are encrypted with the keys of "
            "their tenants"
        ),
    },
    {
        "rule": "self.networkPolicies == 'Managed' || !has(self.loadBalancer.allowFrom)",
        "fieldPath": ".loadBalancer.allowFrom",
        "message": "spec.loadBalancer.allowFrom needs spec.networkPolicies: Managed",
    },
    {
        "rule": "!has(self.loadBalancer.insideFrom) ||"
        " self.loadBalancer.acceptProxyProtocol && has(self.loadBalancer.allowFrom)",
        "fieldPath": ".loadBalancer.insideFrom",
        "message": "spec.loadBalancer.insideFrom needs spec.loadBalancer.acceptProxyProtocol and allowFrom",
    },
    {
        "rule": "has(self.ledger.origin) == has(oldSelf.ledger.origin) &&"
        " (!has(self.ledger.origin) || self.ledger.origin == oldSelf.ledger.origin)",
        "message": "spec.ledger.origin is immutable",
    },
    {
        "rule": "!has(oldSelf.ledger.signingKeySecretRef) || has(self.ledger.signingKeySecretRef) &&"
        " self.ledger.signingKeySecretRef == oldSelf.ledger.signingKeySecretRef",
        "message": "spec.ledger.signingKeySecretRef is immutable once it is set",
    },
    {
        # A worker also needs 10 s to close remaining connections and to seal.
        "rule": "self.timeouts.lameDuckSeconds + self.timeouts.drainSeconds + 10 <="
        " self.worker.terminationGracePeriodSeconds",
        "fieldPath": ".timeouts.drainSeconds",
        "message": "spec.timeouts: drainSeconds and lameDuckSeconds together must be at least 10 less than "
        "spec.worker.terminationGracePeriodSeconds; otherwise a worker is killed before it has sealed its "
        "log",
    },
    {
        # Numbers are not converted to text: the cost of parsing that text could not be estimated.
        "rule": f"!quantity(self.worker.memory).sub({BASE_MEMORY} +"
        f" self.limits.connections * ({CONNECTION_BYTES} + self.limits.headBytes) +"
        f" {READ_BUFFER_FACTOR + MIN_BUFFERED_BODIES} *"
        f" (has(self.limits.bodyBytes) ? self.limits.bodyBytes : {MIN_BODY}))"
        ".isLessThan(quantity('0'))",
        "fieldPath": ".worker.memory",
        "message": "spec.worker.memory must be at least the sum of "
        f"{BASE_MEMORY >> 20}Mi, ({CONNECTION_BYTES >> 10}Ki + limits.headBytes) times limits.connections, and "
        f"{READ_BUFFER_FACTOR + MIN_BUFFERED_BODIES} times limits.bodyBytes ({MIN_BODY >> 20}Mi if absent)",
    },
    *AUDITOR_RULES,
    *KEEPING_RULES,
]

#: Rules over several fields of the whole object.
ROOT_RULES: list[dict[str, Any]] = [
    {
        "rule": f"self.metadata.name.size() <= {MAX_NAME_LENGTH} &&"
        " self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "message": f"metadata.name must be at most {MAX_NAME_LENGTH} lower-case letters, digits and dashes, "
        "starting with a letter, because Services and pods are named after the gateway",
    },
]
