"""The progress of the change to or from TLS between HAProxy and the workers, and the certificates in use.

Nothing is remembered: each step is derived from the pods and from the file that all workers accepted.
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
    """A pending write of the operator's certificate Secret with the entries `entries`.

    `version` is the observed version; None if there is no Secret. `settled` is the parameter of
    `renew_entries`.
    """

    entries: dict[str, str]
    version: str | None
    settled: bool


@dataclass(frozen=True, repr=False)
class InternalTlsState:
    """The state of the certificates. `worker` and `haproxy` are the texts that each side reads, without its
    private key; empty without TLS. `authorities` are the texts that HAProxy reads only at its start."""

    problems: tuple[Problem, ...] = ()
    worker: tuple[str, ...] = ()
    haproxy: tuple[str, ...] = ()
    authorities: tuple[str, ...] = ()
    #: Whether the operator's Secret, and so the objects that mount it, do not exist yet.
    is_pending: bool = False


#: The state of unencrypted connections.
NO_CERTIFICATES = InternalTlsState()


class _TransitionView:
    """The observed state of the change between unencrypted and TLS connections."""

    def __init__(self, gateway: Gateway, seen: ObservedState) -> None:
        self._gateway, self._seen = gateway, seen

    @cached_property
    def _accepted_modes(self) -> set[str]:
        """The modes that workers accept according to their files: `clear`, `both` or `tls`; an empty text if
        the mode of a worker is unknown."""
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
            # A starting worker reads the newest file.
            if not shard.terminating and (shard.ready or (shard.report and shard.report.reachable))
        }

    @property
    def all_accept_tls(self) -> bool:
        """Whether HAProxy may use TLS."""
        return self._accepted_modes <= {"both", "tls"}

    @property
    def all_accept_plaintext(self) -> bool:
        """Whether HAProxy may use unencrypted connections."""
        return self._accepted_modes <= {"both", "clear"}

    @property
    def is_mounted_everywhere(self) -> bool:
        """Whether every worker mounts the certificate."""
        secret = worker_endpoint(self._gateway).secret
        staying = [pod for pod in self._seen.worker_pods if not pod["metadata"].get("deletionTimestamp")]
        return all(_secret_of(pod.get("spec") or {}) == secret for pod in staying)

    @cached_property
    def haproxy_secrets(self) -> list[str | None]:
        """The certificate Secret of each HAProxy pod, including terminating ones; None if the pod does not
        use TLS."""
        return [_secret_of(pod.get("spec") or {}) for pod in self._seen.haproxy_pods]

    @cached_property
    def haproxy_volume(self) -> Manifest | None:
        """The certificate volume of new HAProxy pods; None if they do not use TLS."""
        return self._volume("Deployment", names(self._gateway).haproxy)

    @property
    def is_first_deployment(self) -> bool:
        """Whether no HAProxy Deployment exists yet."""
        return self._seen.child("Deployment", names(self._gateway).haproxy) is None

    @property
    def worker_volume(self) -> Manifest | None:
        """The certificate volume of new workers; None if they have none."""
        return self._volume("StatefulSet", names(self._gateway).worker)

    def _volume(self, kind: str, name: str) -> Manifest | None:
        live = self._seen.child(kind, name)
        if live is None or classify(self._gateway, live) is not Ownership.OURS:
            return None
        return _volume_of(live["spec"]["template"]["spec"])


def _modes_in_file(file: str) -> str:
    """Return the mode that workers with a configuration file accept."""
    lines = iter(file.splitlines())
    if "tls:" not in lines:
        return "clear"
    # Only this section: parsing a whole file takes a hundred times as long.
    section = yaml.safe_load("\n".join(takewhile(lambda line: line.startswith((" ", "-")), lines)))
    return "both" if section.get("acceptPlain") else "tls"


def _volume_of(spec: Manifest) -> Manifest | None:
    return next((found for found in spec.get("volumes") or [] if found["name"] == VOLUME), None)


def _secret_of(spec: Manifest) -> str | None:
    volume = _volume_of(spec)
    return str(volume["secret"]["secretName"]) if volume else None


def with_tls_transition(gateway: Gateway, seen: ObservedState) -> Gateway:
    """Return the gateway with the steps of the TLS transition that are possible now."""
    sight = _TransitionView(gateway, seen)
    off = gateway.spec.internal_tls.mode is InternalTlsMode.NONE
    wanted = None if off else haproxy_endpoint(gateway).secret
    template = _secret_of({"volumes": [sight.haproxy_volume]} if sight.haproxy_volume else {})
    others = {*sight.haproxy_secrets, template} - {None, wanted}
    hop = _toward_plaintext(sight) if off or others else _toward_tls(sight)
    return gateway.model_copy(update={"reached": hop})


def _toward_plaintext(sight: _TransitionView) -> TlsTransition:
    """Remove TLS: HAProxy stops using it once every worker accepts unencrypted connections, then the workers
    remove it."""
    still = any(sight.haproxy_secrets) or sight.haproxy_volume is not None
    spoken = sight.haproxy_volume is not None and not sight.all_accept_plaintext
    return TlsTransition(still, still, spoken, False, sight.worker_volume, sight.haproxy_volume)


def _toward_tls(sight: _TransitionView) -> TlsTransition:
    """Introduce TLS: HAProxy uses it once every worker accepts it, then the workers refuse unencrypted
    connections."""
    before = sight.haproxy_volume is not None
    served = before or sight.is_mounted_everywhere
    spoken = before or (served and (sight.is_first_deployment or sight.all_accept_tls))
    return TlsTransition(True, served, spoken, spoken and all(sight.haproxy_secrets))


def read_internal_tls(gateway: Gateway, seen: ObservedState) -> InternalTlsState:
    """Return the state of the certificates for the spec, and their faults."""
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
    """Return the operator's certificate Secret, unless it is being deleted or belongs to another owner."""
    secret = seen.child("Secret", names(gateway).internal_tls)
    if (
        secret is None
        or classify(gateway, secret) is not Ownership.OURS
        or is_owned_by_predecessor(gateway, secret)
    ):
        return None
    return secret


def next_renewal(gateway: Gateway, seen: ObservedState, start: str) -> CertificateRenewal | None:
    """Return the due renewal of the operator's certificates; None if none is due.

    `start` is the digest of the values that HAProxy reads at its start: a new authority is used once all have
    it.
    """
    secret = _generated_secret(gateway, seen)
    if not is_operator_managed(gateway) or (
        secret is None and seen.child("Secret", names(gateway).internal_tls)
    ):
        # A foreign Secret is reported as a conflict; a former gateway's Secret is deleted automatically.
        return None
    held = {key: _text(secret, key) for key in secret.get("data") or {}} if secret else {}
    settled = all(_started_with(pod, start) for pod in seen.haproxy_pods)
    wanted = renew_entries(held, (worker_endpoint(gateway), haproxy_endpoint(gateway)), seen.now, settled)
    # Entries of other clients are kept and do not count.
    gone = (held.keys() & SECRET_ENTRIES) - wanted.keys()
    if secret and not gone and all(held.get(key) == text for key, text in wanted.items()):
        return None
    return CertificateRenewal(held, secret["metadata"]["resourceVersion"] if secret else None, settled)


def _started_with(pod: Manifest, digest: str) -> bool:
    return (pod["metadata"].get("annotations") or {}).get(START_ANNOTATION) == digest


def _text(secret: Manifest | None, key: str) -> str:
    return (entry(secret, key) if secret else None) or ""


def _faults(side: TlsEndpoint, field: str, seen: ObservedState) -> Iterator[Problem]:
    """Yield the faults of a Secret that the spec names."""
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
    """Return the DNS names of the first valid certificate of a chain."""
    certificate = x509.load_pem_x509_certificate(chain.encode())
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    return names.get_values_for_type(x509.DNSName)
