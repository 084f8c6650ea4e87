"""Derives the configuration from the spec and the Secrets it names, and collects its faults."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from proofgate_schema.static_fields import MAX_BODY_FIELDS, MAX_BODY_FIELDS_LENGTH

from proofgate_operator.api.auth import SERVICE_ACCOUNT_KEY_FILE
from proofgate_operator.api.fields import SecretKeyRef
from proofgate_operator.api.gateway import MAX_REPLICAS, Gateway
from proofgate_operator.api.ledger import SigningKeyRef
from proofgate_operator.api.static_fields import HEADERS_FOLDER, find_reserved_header
from proofgate_operator.api.upstream import (
    CA_FILE,
    CLIENT_CERTIFICATE_FILE,
    CLIENT_KEY_FILE,
    PEM_FILES,
    Provider,
)
from proofgate_operator.build import export_key as export_keys
from proofgate_operator.build import ledger_key
from proofgate_operator.build.digests import keyed_digest
from proofgate_operator.build.gateway_secrets import ADMIN_TOKEN, ROUTING_KEY_FILE, auditor_token, routing_key
from proofgate_operator.build.haproxy import render_config
from proofgate_operator.build.haproxy_maps import TENANT_MAP
from proofgate_operator.build.naming import Defaults, Manifest, names
from proofgate_operator.build.owners import WorkerShares, read_shares
from proofgate_operator.build.storage import claim_names
from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.build.worker_config import fixed_config_text, worker_config_text
from proofgate_operator.plan.addresses import address_fault, no_proxy_fault, range_fault
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.audit_key import auditor_key, export_key, retention_key
from proofgate_operator.plan.certificates import authorities_fault, certificate_fault, lifetime
from proofgate_operator.plan.credentials import credential_faults
from proofgate_operator.plan.internal_tls import (
    NO_CERTIFICATES,
    CertificateRenewal,
    InternalTlsState,
    next_renewal,
    read_internal_tls,
)
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.oidc import client_secret
from proofgate_operator.plan.omitted_keys import omitted_key_faults
from proofgate_operator.plan.ownership import Ownership, classify, is_owned_by_predecessor
from proofgate_operator.plan.pod_templates import (
    auditor_template_faults,
    balancer_template_problems,
    worker_template_problems,
)
from proofgate_operator.plan.policies import policy_problems
from proofgate_operator.plan.presented_certificate import presented_certificate
from proofgate_operator.plan.problems import Fault, Problem
from proofgate_operator.plan.ranges import auditor_range_faults, balancer_range_problems
from proofgate_operator.plan.readers import index_readers
from proofgate_operator.plan.shred_keys import NO_SHRED_KEYS, ShredKeysState, read_shred_keys
from proofgate_operator.plan.tenants import expired_key_faults, read_tenant_keys
from proofgate_operator.plan.upstream_addresses import upstream_faults
from proofgate_operator.plan.witnesses import witness_ports
from proofgate_operator.plan.worker_memory import memory_problems, min_worker_memory


@dataclass(frozen=True)
class ConfigurationDigests:
    """Digests that identify a configuration, grouped by who reads it and whether that pod has to be replaced.

    `start`: the values that workers read only at their start; None without a signing key. `config`: the
    values that workers apply while they run. `haproxy`: the values that HAProxy reads only at its start.
    `certificate`: the certificate that HAProxy presents to clients.
    """

    start: str | None
    config: str
    haproxy: str
    certificate: str
    #: The values that the auditor reads only at its start; empty without an auditor or its key.
    auditor: str = ""


@dataclass(frozen=True, repr=False)
class Configuration:
    """The configuration of the workers and HAProxy.

    Only the user can fix a problem. Each problem blocks only the objects that need the faulty value: the
    workers' configuration file, their pod template, or HAProxy's objects. Problems of tenants that are left
    out block nothing.

    `faults` affect one tenant, provider or certificate alone. The operator generates `missing_secrets`;
    without the admin token, there are no digests. `routing_key` authenticates HAProxy to the workers; empty
    without the admin token. `shares` is the current share of its tenants that each worker serves; None before
    there are any.
    """

    file_problems: tuple[Problem, ...]
    worker_problems: tuple[Problem, ...]
    balancer_problems: tuple[Problem, ...]
    faults: tuple[Fault, ...]
    keys: Mapping[str, Sequence[KeyDigest]]
    missing_secrets: tuple[str, ...]
    verifying_key: str | None
    digests: ConfigurationDigests | None
    shares: WorkerShares | None = None
    #: The times in seconds since 1970 at which the status changes by itself: expiry of API keys or of
    #: HAProxy's certificate.
    change_times: frozenset[float] = frozenset()
    #: Verifying keys of former signing keys, from the key's Secret.
    former_keys: tuple[str, ...] = ()
    routing_key: str = ""
    shred_keys: ShredKeysState = NO_SHRED_KEYS
    #: The token by which the auditor reads workers' volumes in the mode PerWorker; empty without the admin
    #: token.
    auditor_token: str = ""
    #: The auditor's signing key; None if there is no valid one.
    auditor_key: ledger_key.LedgerKey | None = None
    #: The retention job's signing key; None if there is no valid one.
    retention_key: ledger_key.LedgerKey | None = None
    #: The ports of the witnesses; None while the spec's witnesses are invalid.
    witness_ports: tuple[int, ...] | None = ()
    internal_tls: InternalTlsState = NO_CERTIFICATES
    #: The renewal of the certificates of HAProxy and the workers; None if none is due.
    renewal: CertificateRenewal | None = None
    #: The file of readers of the auditor's index; None if they are invalid or there are none.
    readers: str | None = None
    #: The key that signs exports; None if there is no valid one.
    export_key: ledger_key.LedgerKey | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems of the spec itself."""
        return tuple(dict.fromkeys((*self.blocking_problems, *self.shred_keys.capacity_problems)))

    @property
    def blocking_problems(self) -> tuple[Problem, ...]:
        """All problems that block more than their own object."""
        return self.file_problems + self.worker_problems + self.balancer_problems


def _generated_secret(gateway: Gateway, seen: ObservedState, name: str) -> Manifest | None:
    """Return a generated Secret unless it is being deleted."""
    secret = seen.child("Secret", name)
    if (
        secret is None
        or classify(gateway, secret) is not Ownership.OURS
        or is_owned_by_predecessor(gateway, secret)
    ):
        return None
    return secret


def _provider_keys(gateway: Gateway, seen: ObservedState) -> tuple[list[str], list[Fault]]:
    """Return the providers' names with their keys, and the faults of providers without a usable key."""
    keys: list[str] = []
    faults: list[Fault] = []
    for provider in gateway.spec.providers:
        owner = f"spec.providers[{provider.name}]"
        pem: dict[str, str] = {}
        for field, file, reference in provider.secrets():
            named = f"Secret {reference.name}, named by {owner}.{field}"
            secret = seen.secrets.get(reference.name)
            if secret is None:
                faults.append(Fault(owner, "SecretMissing", f"{named}, does not exist"))
                continue
            key = entry(secret, reference.key)
            if not key:
                faults.append(Fault(owner, "SecretInvalid", f"{named}, has no text under {reference.key}"))
            elif file in PEM_FILES:
                pem[file] = key
            elif file.startswith(f"{HEADERS_FOLDER}/"):
                if not re.fullmatch(r"[ -~]{1,4096}", key.strip()):
                    message = f"{reference.key} is not one line of at most 4096 characters of printable ASCII"
                    faults.append(Fault(owner, "SecretInvalid", f"{named}: {message}"))
            elif file == SERVICE_ACCOUNT_KEY_FILE:
                pass  # The workers say what is wrong with it.
            # Workers strip a line break around the key; a line break inside it would start another header.
            elif not re.fullmatch(r"[!-~]+", key.strip()):
                message = f"{reference.key} is not one line of printable ASCII without spaces"
                faults.append(Fault(owner, "SecretInvalid", f"{named}: {message}"))
            keys += [provider.name, key or ""]
        faults += _tls_faults(provider, pem)
    return keys, faults


def _service_account_annotations(gateway: Gateway) -> list[str]:
    """Return the annotations of the workers' ServiceAccount: webhooks read them when a pod is created."""
    account = gateway.spec.worker.service_account
    return [f"{key}={value}" for key, value in sorted(account.annotations.items())] if account else []


def _tls_faults(provider: Provider, pem: Mapping[str, str]) -> Iterator[Fault]:
    """Return the faults of a provider's existing certificates; `pem` has their texts by file."""
    owner, tls = f"spec.providers[{provider.name}]", provider.tls
    if tls is not None and tls.ca_secret_ref is not None and CA_FILE in pem:
        fault = authorities_fault(pem[CA_FILE])
        if fault:
            where = f"Secret {tls.ca_secret_ref.name}, named by {owner}.tls.caSecretRef,"
            yield Fault(owner, "CertificateInvalid", f"{where} {fault} under {tls.ca_secret_ref.key}")
    client = tls.client_certificate_secret_ref if tls else None
    if client is not None and CLIENT_CERTIFICATE_FILE in pem and CLIENT_KEY_FILE in pem:
        fault = certificate_fault(pem[CLIENT_CERTIFICATE_FILE], pem[CLIENT_KEY_FILE])
        if fault:
            where = f"Secret {client.name}, named by {owner}.tls.clientCertificateSecretRef,"
            yield Fault(owner, "CertificateInvalid", f"{where} {fault}")


def _proxy_faults(gateway: Gateway, seen: ObservedState) -> list[Fault]:
    """Return the faults of the credentials for the egress proxy that cannot be sent in a header."""

    def fault(file: str, value: str) -> str | None:
        if re.fullmatch(r"[!-~]+", value) and not (file == "username" and ":" in value):
            return None
        also = " and colons" if file == "username" else ""
        return f"is not one line of printable ASCII without spaces{also}"

    secrets = gateway.spec.egress.secrets() if gateway.spec.egress else ()
    return list(_text_faults("spec.egress", secrets, seen, fault))


def _telemetry_faults(gateway: Gateway, seen: ObservedState) -> list[Fault]:
    """Return the faults of header fields for a collector whose values cannot be sent."""

    def fault(_file: str, value: str) -> str | None:
        is_sendable = re.fullmatch(r"[ -~]{1,4096}", value)
        return None if is_sendable else "is not one line of at most 4096 characters of printable ASCII"

    secrets = gateway.spec.telemetry.secrets() if gateway.spec.telemetry else ()
    return list(_text_faults("spec.telemetry", secrets, seen, fault))


def _text_faults(
    owner: str,
    secrets: Iterable[tuple[str, str, SecretKeyRef]],
    seen: ObservedState,
    fault_of: Callable[[str, str], str | None],
) -> Iterator[Fault]:
    """Return the faults of texts in Secrets; a missing Secret is reported once.

    `secrets`: for each text its field, its file and its Secret entry. `fault_of` returns what is wrong with a
    file's text.
    """
    missing: set[str] = set()
    for field, file, reference in secrets:
        named = f"Secret {reference.name}, named by {owner}.{field}"
        secret = seen.secrets.get(reference.name)
        if secret is None:
            if reference.name not in missing:
                yield Fault(owner, "SecretMissing", f"{named}, does not exist")
            missing.add(reference.name)
            continue
        value = (entry(secret, reference.key) or "").strip()
        fault = fault_of(file, value) if value else None
        if not value:
            yield Fault(owner, "SecretInvalid", f"{named}, has no text under {reference.key}")
        elif fault:
            yield Fault(owner, "SecretInvalid", f"{named}: {reference.key} {fault}")


def _address_problems(gateway: Gateway) -> Iterator[Problem]:
    spec = gateway.spec
    places = [
        (f"spec.providers[{provider.name}].baseURL", provider.base_url)
        for provider in spec.providers
        if provider.base_url is not None
    ]
    for issuer in spec.jwt.issuers if spec.jwt else ():
        places.append((f"spec.jwt.issuers[{issuer.issuer}].jwksURL", issuer.jwks_url))
    if spec.egress is not None and spec.egress.proxy is not None:
        places.append(("spec.egress.proxy.url", spec.egress.proxy.url))
    for origin in spec.cors.allowed_origins if spec.cors else ():
        if origin != "*":
            places.append((f"spec.cors.allowedOrigins[{origin}]", origin))
    for policy in spec.policies:
        if policy.url is not None:
            places.append((f"spec.policies[{policy.name}].url", policy.url))
    if spec.telemetry is not None and spec.telemetry.endpoint is not None:
        places.append(("spec.telemetry.endpoint", spec.telemetry.endpoint))
    for place, url in places:
        fault = address_fault(url)
        if fault:
            yield Problem("SpecInvalid", f"{place}: {fault}")
    for provider in spec.providers:
        place = f"spec.providers[{provider.name}].bodyFields"
        fields = provider.body_fields or {}
        read = find_reserved_header(fields)
        if read is not None:
            yield Problem("SpecInvalid", f"{place}: {read} is a field that workers read themselves")
        elif len(fields) > MAX_BODY_FIELDS or len(json.dumps(fields)) > MAX_BODY_FIELDS_LENGTH:
            yield Problem(
                "SpecInvalid",
                f"{place}: more than {MAX_BODY_FIELDS} fields, or more than {MAX_BODY_FIELDS_LENGTH}"
                " characters of JSON",
            )
    for cidr in spec.egress.allow or () if spec.egress else ():
        fault = range_fault(cidr)
        if fault:
            yield Problem("SpecInvalid", f"spec.egress.allow: {fault}")
    for exempt in spec.egress.proxy.no_proxy if spec.egress and spec.egress.proxy else ():
        fault = no_proxy_fault(exempt)
        if fault:
            yield Problem("SpecInvalid", f"spec.egress.proxy.noProxy: {fault}")


def _signing_key(
    gateway: Gateway, seen: ObservedState, generated: Manifest | None
) -> tuple[ledger_key.LedgerKey | None, list[Problem]]:
    reference = gateway.spec.ledger.signing_key_secret_ref
    if reference is None:
        reference, secret = SigningKeyRef(name=names(gateway).ledger), generated
        named = f"Secret {reference.name}, generated by the operator"
        if secret is None:
            return None, []
    else:
        secret = seen.secrets.get(reference.name)
        named = f"Secret {reference.name}, named by spec.ledger.signingKeySecretRef"
    if secret is None:
        return None, [Problem("SecretMissing", f"{named}, does not exist")]
    text = entry(secret, reference.key)
    if text is None:
        return None, [Problem("SecretInvalid", f"{named}, has no text under {reference.key}")]
    try:
        key = ledger_key.read(text)
        if key.name == gateway.ledger_name:
            return key, []
        problem = f"is for the ledger {key.name}, but this gateway's ledger is named {gateway.ledger_name}"
        return None, [Problem("SecretInvalid", f"{named}: {reference.key} {problem}")]
    except ledger_key.InvalidSigningKey as error:
        return None, [Problem("SecretInvalid", f"{named}: {reference.key} is not a signing key: {error}")]


def _evidence(gateway: Gateway, seen: ObservedState) -> str | None:
    """Return a description of evidence that is, or may be, signed with the operator's key; None if there is
    none."""
    if seen.ledger_status.get("verifyingKey"):
        return f"all evidence that {seen.ledger_status['verifyingKey']} verifies"
    checkpoints = seen.child("ConfigMap", names(gateway).checkpoints)
    if checkpoints and checkpoints.get("data") and not is_owned_by_predecessor(gateway, checkpoints):
        return f"the checkpoints in ConfigMap {names(gateway).checkpoints}"
    if gateway.spec.ledger.volume.existing_claim is not None:
        # The claim does not show whether anything was signed.
        return None
    for name in claim_names(gateway, MAX_REPLICAS):
        claim = seen.child("PersistentVolumeClaim", name)
        # A claim is created only after the key. A claim that is deleted with a former gateway does not count.
        if (
            claim
            and classify(gateway, claim) is Ownership.OURS
            and not is_owned_by_predecessor(gateway, claim)
        ):
            return f"the logs on PersistentVolumeClaim {name}"
    return None


def _change_times(keys: Mapping[str, Sequence[KeyDigest]], chain: str) -> frozenset[float]:
    found = {key.expires_at for own in keys.values() for key in own}
    life = lifetime(chain)
    return frozenset({*found, life.warn_at, life.expires_at} - {math.inf})


def _holders(live: Manifest | None) -> dict[str, str]:
    """Return the tenants by the digests of their keys, from the live Secret of digests."""
    lines = (entry(live, TENANT_MAP) or "").splitlines() if live else []
    return {words[0]: words[1] for line in lines if len(words := line.split()) == 2}


def _auditor_start_inputs(
    auditor: ledger_key.LedgerKey, exports: ledger_key.LedgerKey | None, oidc_secret: str
) -> list[str]:
    """Return the values from Secrets that the auditor reads only at its start."""
    return [
        auditor.signing_text,
        *([f"export key {exports.signing_text}"] if exports else []),
        *([f"client secret {oidc_secret}"] if oidc_secret else []),
    ]


def read_configuration(gateway: Gateway, seen: ObservedState, defaults: Defaults) -> Configuration:
    """Read the configuration that results from the spec and the Secrets."""
    own = names(gateway)
    shred_keys = read_shred_keys(gateway, seen)
    gateway = shred_keys.without_omitted_tenants(gateway)
    admin = _generated_secret(gateway, seen, own.admin)
    ledger = _generated_secret(gateway, seen, own.ledger)
    live = _generated_secret(gateway, seen, own.tenants)
    tenants = read_tenant_keys(gateway, seen.secrets, _holders(live), seen.unreadable_secrets, live)
    certificate, certificate_faults = presented_certificate(gateway, seen)
    provider_keys, provider_faults = _provider_keys(gateway, seen)
    signing_key, ledger_problems = _signing_key(gateway, seen, ledger)
    audit_key, audit_faults = auditor_key(gateway, seen, signing_key)
    keeping_key, retention_faults = retention_key(gateway, seen, signing_key, audit_key)
    ports, witness_faults = witness_ports(gateway, seen, audit_key)
    readers, readers_faults = index_readers(gateway, seen)
    exports_key, export_faults = export_key(gateway, seen, signing_key, (audit_key, keeping_key))
    oidc_secret, oidc_faults = client_secret(gateway, seen)
    token = entry(admin, ADMIN_TOKEN) if admin else None
    admin_problems = []
    if admin and not token:
        message = (
            f"Secret {own.admin} has no text under {ADMIN_TOKEN}: delete this Secret, and the operator creates "
            "a new one"
        )
        admin_problems.append(Problem("SecretInvalid", message))

    missing = []
    if admin is None:
        missing.append(own.admin)
    if ledger is None and gateway.spec.ledger.signing_key_secret_ref is None:
        evidence = _evidence(gateway, seen)
        claim = gateway.spec.ledger.volume.existing_claim
        if evidence is None and claim is not None:
            # Only a worker can see the volume's content, and a log of another key could not be continued.
            message = (
                f"PersistentVolumeClaim {claim} may already contain a log, so no key is generated: restore "
                f"Secret {own.ledger}, or name the log's key in spec.ledger.signingKeySecretRef; for "
                "an empty volume, name a key that `proofgate keys generate` created"
            )
            ledger_problems.append(Problem("SigningKeyRequired", message))
        elif evidence is None:
            missing.append(own.ledger)
        else:
            message = (
                f"Secret {own.ledger} is missing. It contained the key of {evidence}: restore the Secret "
                "from a backup. No new key is created, because a new key could not continue the signed logs"
            )
            ledger_problems.append(Problem("SigningKeyLost", message))

    index = gateway.enabled_auditor.enabled_index if gateway.enabled_auditor else None
    if export_keys.is_generated(index) and _generated_secret(gateway, seen, own.export_key) is None:
        missing.append(own.export_key)

    # The routing key is derived from the token; without the token, the current routing key stays.
    own_key = routing_key(token) if token else (entry(live, ROUTING_KEY_FILE) or "" if live else "")
    digests = None
    internal, renewal = NO_CERTIFICATES, None
    if token:
        lines = [part for name, keys in tenants.keys.items() for part in (name, *(key.line for key in keys))]
        secret = token.encode()
        memory = min_worker_memory(gateway, seen.worker_pods)
        start = None
        if signing_key:
            start = [
                fixed_config_text(gateway, defaults),
                signing_key.signing_text,
                *_service_account_annotations(gateway),
            ]
        internal = read_internal_tls(gateway, seen)
        at_start = [render_config(gateway, defaults)]
        if gateway.tls_transition.haproxy_uses_tls:
            at_start += internal.authorities
        balancer = keyed_digest(secret, at_start)
        renewal = next_renewal(gateway, seen, balancer)
        digests = ConfigurationDigests(
            start=keyed_digest(secret, start) if start else None,
            config=keyed_digest(
                secret,
                [
                    worker_config_text(gateway, memory, defaults),
                    own_key,
                    *lines,
                    *provider_keys,
                    *seen.tenants.digests,
                    *shred_keys.contents,
                    *internal.worker,
                ],
            ),
            haproxy=balancer,
            certificate=keyed_digest(secret, [certificate, *internal.haproxy]),
            auditor=keyed_digest(secret, _auditor_start_inputs(audit_key, exports_key, oidc_secret))
            if audit_key
            else "",
        )
    return Configuration(
        file_problems=(
            *_address_problems(gateway),
            *policy_problems(gateway),
            *memory_problems(gateway),
            *shred_keys.problems,
        ),
        worker_problems=(
            *worker_template_problems(gateway, defaults),
            *memory_problems(gateway),
            *internal.problems,
            *ledger_problems,
            *admin_problems,
            *shred_keys.problems,
        ),
        balancer_problems=(
            *balancer_template_problems(gateway, defaults),
            *balancer_range_problems(gateway),
            *internal.problems,
        ),
        faults=(
            *tenants.faults,
            *expired_key_faults(tenants.keys, seen.now),
            *(Fault("spec", found.reason, found.message) for found in seen.unavailable_kinds),
            *(Fault("spec.allowedTenants", found.reason, found.message) for found in seen.tenants.unreadable),
            *provider_faults,
            *upstream_faults(gateway),
            *credential_faults(gateway, seen),
            *omitted_key_faults(seen),
            *certificate_faults,
            *_proxy_faults(gateway, seen),
            *_telemetry_faults(gateway, seen),
            *audit_faults,
            *retention_faults,
            *witness_faults,
            *readers_faults,
            *export_faults,
            *oidc_faults,
            *shred_keys.faults,
            *auditor_template_faults(gateway, defaults),
            *auditor_range_faults(gateway),
        ),
        keys=tenants.keys,
        change_times=_change_times(tenants.keys, certificate),
        missing_secrets=tuple(missing),
        verifying_key=signing_key.verifying_text if signing_key else None,
        former_keys=signing_key.former_keys if signing_key else (),
        digests=digests,
        shares=read_shares(live["metadata"].get("annotations") or {}) if live else None,
        routing_key=own_key,
        shred_keys=shred_keys,
        auditor_token=auditor_token(token) if token else "",
        auditor_key=audit_key,
        retention_key=keeping_key,
        witness_ports=ports,
        readers=readers,
        export_key=exports_key,
        internal_tls=internal,
        renewal=renewal,
    )
