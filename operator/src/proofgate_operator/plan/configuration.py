"""Whether the spec, together with the Secrets it names, makes a configuration, and which."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proofgate_operator.api.types import Gateway
from proofgate_operator.build import ledger_key
from proofgate_operator.build.config import (
    ADMIN_TOKEN,
    SIGNING_KEY,
    KeyDigest,
    digest,
    fixed_config_text,
    worker_config_text,
)
from proofgate_operator.build.haproxy import rendered_config
from proofgate_operator.build.naming import Defaults, Manifest, names
from proofgate_operator.build.owners import Shares, read_shares
from proofgate_operator.plan.addresses import address_fault
from proofgate_operator.plan.observed import Observed
from proofgate_operator.plan.ownership import Ownership, classify, of_a_predecessor
from proofgate_operator.plan.pod_templates import pod_template_problems
from proofgate_operator.plan.policies import policy_problems
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.tenants import entry, read_tenant_keys
from proofgate_operator.plan.worker_memory import least_memory, memory_problems


@dataclass(frozen=True)
class Digests:
    """What tells one configuration from another: by what, and by whether its readers have to be replaced.

    `start`: what workers read only at their start. `config`: what they take on while they run. `haproxy`:
    what HAProxy reads only at its start. `certificate`: what HAProxy shows to clients.
    """

    start: str
    config: str
    haproxy: str
    certificate: str


@dataclass(frozen=True, repr=False)
class Configuration:
    """What the workers and HAProxy are to run with.

    `problems` are the user's to solve, `notes` may be meant as they are. `missing_secrets` are for the
    operator to generate; until they are there, there are no digests. `shares` is how much of its tenants each
    worker has had until now; None before there are any.
    """

    problems: tuple[Problem, ...]
    keys: Mapping[str, Sequence[KeyDigest]]
    missing_secrets: tuple[str, ...]
    verifying_key: str | None
    digests: Digests | None
    shares: Shares | None = None
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether pods can be started with it."""
        return not self.problems and self.digests is not None


def _generated(gateway: Gateway, seen: Observed, name: str) -> Manifest | None:
    """Return a generated Secret unless it is about to go."""
    secret = seen.child("Secret", name)
    if secret is None or classify(gateway, secret) is not Ownership.OURS or of_a_predecessor(gateway, secret):
        return None
    return secret


def _provider_keys(gateway: Gateway, seen: Observed) -> tuple[list[str], list[Problem]]:
    keys: list[str] = []
    problems: list[Problem] = []
    for provider in gateway.spec.providers:
        reference = provider.api_key_secret_ref
        if reference is None:
            continue
        field = f"spec.providers[{provider.name}].apiKeySecretRef"
        secret = seen.secrets.get(reference.name)
        if secret is None:
            problems.append(
                Problem("SecretMissing", f"Secret {reference.name}, named by {field}, does not exist")
            )
            continue
        key = entry(secret, reference.key)
        if not key:
            problems.append(
                Problem(
                    "SecretInvalid",
                    f"Secret {reference.name}, named by {field}, has no text under {reference.key}",
                )
            )
            continue
        # A line end around the key is cut by the workers; within it, the rest would be another header.
        if not re.fullmatch(r"[!-~]+", key.strip()):
            message = f"{reference.key} is not one line of printable ASCII without spaces"
            problems.append(Problem("SecretInvalid", f"Secret {reference.name}, named by {field}: {message}"))
            continue
        keys += [provider.name, key]
    return keys, problems


def _address_problems(gateway: Gateway) -> Iterator[Problem]:
    spec = gateway.spec
    places = [(f"spec.providers[{provider.name}].baseURL", provider.base_url) for provider in spec.providers]
    for issuer in spec.jwt.issuers if spec.jwt else ():
        places.append((f"spec.jwt.issuers[{issuer.issuer}].jwksURL", issuer.jwks_url))
    for origin in spec.cors.allowed_origins if spec.cors else ():
        if origin != "*":
            places.append((f"spec.cors.allowedOrigins[{origin}]", origin))
    for place, url in places:
        fault = address_fault(url)
        if fault:
            yield Problem("SpecInvalid", f"{place}: {fault}")


def _signing_key(
    gateway: Gateway, seen: Observed, generated: Manifest | None
) -> tuple[ledger_key.SigningKey | None, list[Problem]]:
    reference = gateway.spec.ledger.signing_key_secret_ref
    if reference is None:
        name, secret, where = names(gateway).ledger, generated, "generated by the operator"
        if secret is None:
            return None, []
    else:
        name, secret = reference.name, seen.secrets.get(reference.name)
        where = "named by spec.ledger.signingKeySecretRef"
    if secret is None:
        return None, [Problem("SecretMissing", f"Secret {name}, {where}, does not exist")]
    text = entry(secret, SIGNING_KEY)
    if text is None:
        return None, [Problem("SecretInvalid", f"Secret {name}, {where}, has no text under {SIGNING_KEY}")]
    try:
        key = ledger_key.read(text)
        if key.name == gateway.ledger_name:
            return key, []
        problem = f"is for the ledger {key.name}, and this gateway's is named {gateway.ledger_name}"
        return None, [Problem("SecretInvalid", f"Secret {name}, {where}: {SIGNING_KEY} {problem}")]
    except ledger_key.InvalidSigningKey as error:
        return None, [
            Problem("SecretInvalid", f"Secret {name}, {where}: {SIGNING_KEY} is no signing key: {error}")
        ]


def _certificate(gateway: Gateway, seen: Observed) -> tuple[str, list[Problem]]:
    """Return the chain that HAProxy is to show; the key beside it is for HAProxy alone to judge."""
    tls = gateway.spec.load_balancer.tls
    if tls is None:
        return "", []
    where = f"Secret {tls.secret_name}, named by spec.loadBalancer.tls.secretName,"
    secret = seen.secrets.get(tls.secret_name)
    if secret is None:
        return "", [Problem("SecretMissing", f"{where} does not exist")]
    missing = [name for name in ("tls.crt", "tls.key") if not entry(secret, name)]
    if missing:
        return "", [Problem("SecretInvalid", f"{where} has no text under {' and '.join(missing)}")]
    return entry(secret, "tls.crt") or "", []


def _shares(gateway: Gateway, seen: Observed) -> Shares | None:
    """Return how much of its tenants each worker has had until now, as the live Secret tells."""
    live = _generated(gateway, seen, names(gateway).tenants)
    return read_shares(live["metadata"].get("annotations") or {}) if live else None


def read_configuration(gateway: Gateway, seen: Observed, defaults: Defaults) -> Configuration:
    """Read the configuration that the spec and the Secrets make together."""
    own = names(gateway)
    admin = _generated(gateway, seen, own.admin)
    ledger = _generated(gateway, seen, own.ledger)
    tenants = read_tenant_keys(gateway, seen.secrets)
    certificate, certificate_problems = _certificate(gateway, seen)
    provider_keys, provider_problems = _provider_keys(gateway, seen)
    signing_key, ledger_problems = _signing_key(gateway, seen, ledger)
    problems = (
        *_address_problems(gateway),
        *policy_problems(gateway),
        *pod_template_problems(gateway, defaults),
        *memory_problems(gateway),
        *tenants.problems,
        *provider_problems,
        *ledger_problems,
        *certificate_problems,
    )

    missing = []
    if admin is None:
        missing.append(own.admin)
    if ledger is None and gateway.spec.ledger.signing_key_secret_ref is None:
        missing.append(own.ledger)

    token = entry(admin, ADMIN_TOKEN) if admin else None
    if admin and not token:
        problems += (
            Problem("SecretInvalid", f"Secret {own.admin} has no text under {ADMIN_TOKEN}: delete it"),
        )
    digests = None
    if token and signing_key:
        lines = [part for name, keys in tenants.keys.items() for part in (name, *(key.line for key in keys))]
        secret = token.encode()
        memory = least_memory(gateway, seen.worker_pods)
        digests = Digests(
            start=digest(secret, [fixed_config_text(gateway), signing_key.signing_text]),
            config=digest(secret, [worker_config_text(gateway, memory), *lines, *provider_keys]),
            haproxy=digest(secret, [rendered_config(gateway, defaults)]),
            certificate=digest(secret, [certificate]),
        )
    return Configuration(
        problems=problems,
        keys=tenants.keys,
        missing_secrets=tuple(missing),
        verifying_key=signing_key.verifying_text if signing_key else None,
        digests=digests,
        shares=_shares(gateway, seen),
        notes=tenants.notes,
    )
