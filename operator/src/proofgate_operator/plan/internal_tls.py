"""How far the connections between HAProxy and the workers have come to be TLS, and with which certificates.

Nothing is remembered: each step is seen in the pods and in the file that all workers took on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

import yaml
from cryptography import x509

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.internal_tls import InternalTlsMode, TlsTransition
from proofgate_operator.build.internal_authority import SECRET_ENTRIES, renew_entries
from proofgate_operator.build.internal_tls import (
    AUTHORITIES,
    VOLUME,
    TlsEndpoint,
    haproxy_endpoint,
    is_operator_managed,
    worker_endpoint,
)
from proofgate_operator.build.naming import START_ANNOTATION, Manifest, names
from proofgate_operator.build.worker_config import ACCEPTED_FILE, CONFIG_FILE, text_digest
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.certificates import authorities_fault, presented_certificate_fault
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.ownership import Ownership, classify, is_owned_by_predecessor
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.shards import read_shards


@dataclass(frozen=True, repr=False)
class CertificateRenewal:
    """The operator's Secret of certificates is to be written, as it follows from `held`.

    `version` is the one that was seen; None where there is no Secret. `settled` as for `renewed`.
    """

    entries: dict[str, str]
    version: str | None
    settled: bool


@dataclass(frozen=True, repr=False)
class InternalTlsState:
    """What the certificates say. `worker` and `haproxy` are what each side reads, but for its key; empty
    without TLS. `authorities` is what HAProxy reads only at its start."""

    problems: tuple[Problem, ...] = ()
    worker: tuple[str, ...] = ()
    haproxy: tuple[str, ...] = ()
    authorities: tuple[str, ...] = ()
    #: The Secret that the operator makes is not there yet, and neither is what mounts it.
    is_pending: bool = False


#: Where connections are in clear.
NO_CERTIFICATES = InternalTlsState()


class _TransitionView:
    """What is seen of the change from one kind of connection to the other."""

    def __init__(self, gateway: Gateway, seen: ObservedState) -> None:
        self._gateway, self._seen = gateway, seen

    @cached_property
    def _accepted_modes(self) -> set[str]:
        """What workers take, as the files say that they run with: `clear`, `both` or `tls`; with what cannot
        be known, or not now, as an empty text."""
        live = self._seen.child("ConfigMap", names(self._gateway).config)
        ours = live is not None and classify(self._gateway, live) is Ownership.OURS
        data = (live.get("data") or {}) if live and ours else {}
        known = {
            text_digest(data[name]): _modes_in_file(data[name])
            for name in (CONFIG_FILE, ACCEPTED_FILE)
            if name in data
        }
        return {
            known.get(shard.report.file_digest if shard.report else "", "")
            for shard in read_shards(self._seen, None)
            # One that starts reads the newest file.
            if not shard.terminating and (shard.ready or (shard.report and shard.report.reachable))
        }

    @property
    def all_accept_tls(self) -> bool:
        """Whether HAProxy may speak TLS."""
        return self._accepted_modes <= {"both", "tls"}

    @property
    def all_accept_plaintext(self) -> bool:
        """Whether HAProxy may speak in clear."""
        return self._accepted_modes <= {"both", "clear"}

    @property
    def is_mounted_everywhere(self) -> bool:
        """Whether every worker has the certificate."""
        secret = worker_endpoint(self._gateway).secret
        staying = [pod for pod in self._seen.worker_pods if not pod["metadata"].get("deletionTimestamp")]
        return all(_secret_of(pod.get("spec") or {}) == secret for pod in staying)

    @cached_property
    def haproxy_secrets(self) -> list[str | None]:
        """Of each HAProxy, also of one that stops: the Secret of its certificate; None in clear."""
        return [_secret_of(pod.get("spec") or {}) for pod in self._seen.haproxy_pods]

    @cached_property
    def haproxy_volume(self) -> Manifest | None:
        """The volume with the certificate of new HAProxies; None where they speak in clear."""
        return self._volume("Deployment", names(self._gateway).haproxy)

    @property
    def is_first_deployment(self) -> bool:
        """Whether there is no HAProxy yet, nor was one."""
        return self._seen.child("Deployment", names(self._gateway).haproxy) is None

    @property
    def worker_volume(self) -> Manifest | None:
        """The volume with the certificate of new workers; None where they have none."""
        return self._volume("StatefulSet", names(self._gateway).worker)

    def _volume(self, kind: str, name: str) -> Manifest | None:
        live = self._seen.child(kind, name)
        if live is None or classify(self._gateway, live) is not Ownership.OURS:
            return None
        return _volume_of(live["spec"]["template"]["spec"])


def _modes_in_file(file: str) -> str:
    """Return what workers take that run with a file."""
    lines = iter(file.splitlines())
    if "tls:" not in lines:
        return "clear"
    # The rest of the section; to parse the whole of a file takes a hundred times as long.
    section = yaml.safe_load("\n".join(takewhile(lambda line: line.startswith((" ", "-")), lines)))
    return "both" if section.get("acceptPlain") else "tls"


def _volume_of(spec: Manifest) -> Manifest | None:
    return next((found for found in spec.get("volumes") or [] if found["name"] == VOLUME), None)


def _secret_of(spec: Manifest) -> str | None:
    volume = _volume_of(spec)
    return str(volume["secret"]["secretName"]) if volume else None


def with_tls_transition(gateway: Gateway, seen: ObservedState) -> Gateway:
    """Return the gateway with the steps that its connections can take now."""
    sight = _TransitionView(gateway, seen)
    off = gateway.spec.internal_tls.mode is InternalTlsMode.NONE
    wanted = None if off else haproxy_endpoint(gateway).secret
    template = _secret_of({"volumes": [sight.haproxy_volume]} if sight.haproxy_volume else {})
    others = {*sight.haproxy_secrets, template} - {None, wanted}
    hop = _toward_plaintext(sight) if off or others else _toward_tls(sight)
    return gateway.model_copy(update={"reached": hop})


def _toward_plaintext(sight: _TransitionView) -> TlsTransition:
    """HAProxy speaks in clear once every worker takes that; workers forget TLS when nobody speaks it."""
    still = any(sight.haproxy_secrets) or sight.haproxy_volume is not None
    spoken = sight.haproxy_volume is not None and not sight.all_accept_plaintext
    return TlsTransition(still, still, spoken, False, sight.worker_volume, sight.haproxy_volume)


def _toward_tls(sight: _TransitionView) -> TlsTransition:
    """HAProxy speaks TLS once every worker takes that; workers refuse all else when nobody speaks it."""
    before = sight.haproxy_volume is not None
    served = before or sight.is_mounted_everywhere
    spoken = before or (served and (sight.is_first_deployment or sight.all_accept_tls))
    return TlsTransition(True, served, spoken, spoken and all(sight.haproxy_secrets))


def read_internal_tls(gateway: Gateway, seen: ObservedState) -> InternalTlsState:
    """Return what the certificates say that the spec asks for, and what is wrong with them."""
    if gateway.spec.internal_tls.mode is InternalTlsMode.NONE:
        return NO_CERTIFICATES
    worker, haproxy = worker_endpoint(gateway), haproxy_endpoint(gateway)
    if is_operator_managed(gateway):
        made = _generated_secret(gateway, seen)
        return replace(_state_from_secrets(worker, haproxy, made, made), is_pending=made is None)
    problems = (
        *_faults(worker, "spec.internalTLS.workerSecretRef", seen),
        *_faults(haproxy, "spec.internalTLS.haproxySecretRef", seen),
    )
    return _state_from_secrets(
        worker, haproxy, seen.secrets.get(worker.secret), seen.secrets.get(haproxy.secret), problems
    )


def _state_from_secrets(
    worker: TlsEndpoint,
    haproxy: TlsEndpoint,
    of_worker: Manifest | None,
    of_haproxy: Manifest | None,
    problems: tuple[Problem, ...] = (),
) -> InternalTlsState:
    return InternalTlsState(
        problems,
        (_text(of_worker, worker.chain), _text(of_worker, AUTHORITIES)),
        (_text(of_haproxy, haproxy.chain),),
        (_text(of_haproxy, AUTHORITIES),),
    )


def _generated_secret(gateway: Gateway, seen: ObservedState) -> Manifest | None:
    """Return the Secret that the operator makes, unless it is about to go or somebody else's."""
    secret = seen.child("Secret", names(gateway).internal_tls)
    if (
        secret is None
        or classify(gateway, secret) is not Ownership.OURS
        or is_owned_by_predecessor(gateway, secret)
    ):
        return None
    return secret


def next_renewal(gateway: Gateway, seen: ObservedState, start: str) -> CertificateRenewal | None:
    """Return what of the operator's certificates is due; None while nothing is.

    `start` is the digest of what HAProxy reads at its start: a new authority is used when all have it.
    """
    secret = _generated_secret(gateway, seen)
    if not is_operator_managed(gateway) or (
        secret is None and seen.child("Secret", names(gateway).internal_tls)
    ):
        # Somebody else's is told of as a conflict; a predecessor's goes by itself.
        return None
    held = {key: _text(secret, key) for key in secret.get("data") or {}} if secret else {}
    settled = all(_started_with(pod, start) for pod in seen.haproxy_pods)
    wanted = renew_entries(held, (worker_endpoint(gateway), haproxy_endpoint(gateway)), seen.now, settled)
    # What somebody else put there stays, and is none of what is held.
    gone = (held.keys() & SECRET_ENTRIES) - wanted.keys()
    if secret and not gone and all(held.get(key) == text for key, text in wanted.items()):
        return None
    return CertificateRenewal(held, secret["metadata"]["resourceVersion"] if secret else None, settled)


def _started_with(pod: Manifest, digest: str) -> bool:
    return (pod["metadata"].get("annotations") or {}).get(START_ANNOTATION) == digest


def _text(secret: Manifest | None, key: str) -> str:
    return (entry(secret, key) if secret else None) or ""


def _faults(side: TlsEndpoint, field: str, seen: ObservedState) -> Iterator[Problem]:
    """Yield what is wrong with a Secret that the spec names."""
    where = f"Secret {side.secret}, named by {field},"
    secret = seen.secrets.get(side.secret)
    if secret is None:
        yield Problem("SecretMissing", f"{where} does not exist")
        return
    missing = [key for key in (side.chain, side.key, AUTHORITIES) if not entry(secret, key)]
    if missing:
        yield Problem("SecretInvalid", f"{where} has no text under {' and '.join(missing)}")
        return
    chain = _text(secret, side.chain)
    fault = presented_certificate_fault(chain, _text(secret, side.key))
    if fault is None and (wrong := authorities_fault(_text(secret, AUTHORITIES))):
        fault = f"{wrong} under {AUTHORITIES}"
    if fault is None and side.host not in _hosts(chain):
        fault = f"has a certificate under tls.crt that is not for the DNS name {side.host}"
    if fault:
        yield Problem("CertificateInvalid", f"{where} {fault}")


def _hosts(chain: str) -> Iterable[str]:
    """Return the DNS names of the first certificate of a chain that can be read."""
    certificate = x509.load_pem_x509_certificate(chain.encode())
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    return names.get_values_for_type(x509.DNSName)
