"""Checks the witnesses, mirrors and sinks of the spec, to which the auditor connects, and collects the
witnesses' ports."""

from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.witnesses import Witnesses
from proofgate_operator.build import witness_policy
from proofgate_operator.build.ledger_key import LedgerKey
from proofgate_operator.build.witness_policy import InvalidWitnessPolicy
from proofgate_operator.plan.addresses import range_fault
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.audit_key import AUDITOR_FIELD
from proofgate_operator.plan.certificates import authorities_fault
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Fault

_FIELD = f"{AUDITOR_FIELD}.witnesses"


def witness_ports(
    gateway: Gateway, seen: ObservedState, key: LedgerKey | None
) -> tuple[tuple[int, ...] | None, list[Fault]]:
    """Return the ports of the witnesses, and the faults of their section in the spec.

    Without ports (None), there is a fault: a running auditor keeps its configuration. `key` is the auditor's
    key, None if it is invalid.
    """
    witnesses = gateway.enabled_auditor.witnesses if gateway.enabled_auditor else None
    outlet_faults = [*_egress_range_faults(gateway)]
    if witnesses is None:
        return (None if outlet_faults else ()), outlet_faults
    faults = [*outlet_faults, *_range_faults(witnesses), *_authorities_faults(witnesses, seen)]
    try:
        own = key.verifying_text if key else None
        ports = witness_policy.parse_witness_ports(witnesses.policy, own, witnesses.allow_http)
    except InvalidWitnessPolicy as error:
        return None, [Fault(AUDITOR_FIELD, "WitnessPolicyInvalid", f"{_FIELD}.policy: {error}"), *faults]
    return None if faults else ports, faults


def _range_faults(witnesses: Witnesses) -> Iterator[Fault]:
    for cidr in witnesses.egress.allow if witnesses.egress else ():
        fault = range_fault(cidr)
        if fault:
            yield Fault(AUDITOR_FIELD, "SpecInvalid", f"{_FIELD}.egress.allow: {fault}")


def _egress_range_faults(gateway: Gateway) -> Iterator[Fault]:
    auditor = gateway.enabled_auditor
    if auditor is None:
        return
    ranges = [("mirrors", mirror.egress.allow) for mirror in auditor.mirrors if mirror.egress]
    ranges += [("siem", sink.egress.allow) for sink in auditor.siem if sink.egress]
    oidc = auditor.enabled_index.oidc if auditor.enabled_index else None
    ranges += [("index.oidc", oidc.egress.allow)] if oidc and oidc.egress else []
    for field, cidr in ((field, cidr) for field, allowed in ranges for cidr in allowed):
        fault = range_fault(cidr)
        if fault:
            yield Fault(AUDITOR_FIELD, "SpecInvalid", f"{AUDITOR_FIELD}.{field}: egress.allow: {fault}")


def _authorities_faults(witnesses: Witnesses, seen: ObservedState) -> Iterator[Fault]:
    reference = witnesses.ca_secret_ref
    if reference is None:
        return
    named = f"Secret {reference.name}, named by {_FIELD}.caSecretRef"
    secret = seen.secrets.get(reference.name)
    if secret is None:
        yield Fault(AUDITOR_FIELD, "SecretMissing", f"{named}, does not exist")
        return
    text = entry(secret, reference.key)
    fault = authorities_fault(text) if text else "has no text"
    if fault:
        reason = "CertificateInvalid" if text else "SecretInvalid"
        yield Fault(AUDITOR_FIELD, reason, f"{named}, {fault} under {reference.key}")
