"""Checks address ranges in network policies and Services that match their field's pattern but are invalid.
The API server refuses an object with such a range, so the restriction would not apply."""

import ipaddress
from collections.abc import Iterable, Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.load_balancer import Peer
from proofgate_operator.plan.audit_key import AUDITOR_FIELD
from proofgate_operator.plan.problems import Fault, Problem


def balancer_range_problems(gateway: Gateway) -> Iterator[Problem]:
    """Yield the problems of the ranges that may reach HAProxy."""
    balancer = gateway.spec.load_balancer
    for fault in _peer_faults(balancer.allow_from or ()):
        yield Problem("SpecInvalid", f"spec.loadBalancer.allowFrom: {fault}")
    for fault in _faults(balancer.service.load_balancer_source_ranges or ()):
        yield Problem("SpecInvalid", f"spec.loadBalancer.service.loadBalancerSourceRanges: {fault}")


def auditor_range_faults(gateway: Gateway) -> Iterator[Fault]:
    """Yield the faults of the auditor's ranges, which affect the auditor alone."""
    wanted = gateway.enabled_auditor
    if wanted is None:
        return
    found = [("allowFrom", fault) for fault in _peer_faults(wanted.allow_from or ())]
    if wanted.witnesses and wanted.witnesses.egress:
        found += [("witnesses.egress.allow", fault) for fault in _faults(wanted.witnesses.egress.allow)]
    for field, targets in (("mirrors", wanted.mirrors), ("siem", wanted.siem)):
        allowed = [cidr for target in targets if target.egress for cidr in target.egress.allow]
        found += [(f"{field}[].egress.allow", fault) for fault in _faults(allowed)]
    for field, fault in found:
        yield Fault(AUDITOR_FIELD, "SpecInvalid", f"{AUDITOR_FIELD}.{field}: {fault}")


def _peer_faults(peers: Iterable[Peer]) -> Iterator[str]:
    for block in (peer.ip_block for peer in peers if peer.ip_block):
        excepted = block.except_ or ()
        yield from _faults((block.cidr, *excepted))
        whole = _network(block.cidr)
        for cidr in excepted:
            part = _network(cidr)
            if whole is None or part is None:
                continue
            # The API server accepts only a proper subset as an exception.
            within = part.version == whole.version and part.subnet_of(whole)  # type: ignore[arg-type]
            if not within or part == whole:
                yield f"except {cidr} is not a part of {block.cidr}"


def _faults(ranges: Iterable[str]) -> Iterator[str]:
    yield from (f"{cidr} is not a range of addresses" for cidr in ranges if _network(cidr) is None)


def _network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return None
