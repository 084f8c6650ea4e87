"""The objects of a gateway's auditor, and whether a running auditor has to be stopped."""

from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor, auditor_workers, export_key, readers
from proofgate_operator.build.digests import keyed_digest
from proofgate_operator.build.naming import Defaults, Manifest, names
from proofgate_operator.build.storage import retained_state_claim
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.audit_key import AUDITOR_FIELD
from proofgate_operator.plan.configuration import Configuration
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.ownership import Ownership, classify


def auditor_manifests(
    gateway: Gateway, seen: ObservedState, configuration: Configuration, workers: int, defaults: Defaults
) -> Iterator[Manifest]:
    """Yield the objects of an auditor of `workers` workers in the order of applying, except its network
    policy and its PodMonitor.

    A running auditor stays unchanged if its key, the ledger's key, the retention key or the additions to its
    pod are invalid. The claim of a removed auditor still follows the retain policy.
    """
    wanted = gateway.enabled_auditor
    if wanted is None:
        live = seen.child("PersistentVolumeClaim", names(gateway).auditor)
        if live is not None:
            yield retained_state_claim(gateway, auditor.COMPONENT, live)
        return
    yield auditor.service_account(gateway)
    yield auditor.service(gateway)
    if wanted.storage.existing_claim is None:
        yield auditor.claim(gateway, wanted)
    # Before the StatefulSet that mounts it. While the named readers are invalid, the previous ones stay.
    if not auditor_workers.workers_serve_volumes(gateway):
        if configuration.readers is not None:
            yield readers.secret(gateway, configuration.readers)
    elif configuration.auditor_token:
        named = _index_readers_secret(gateway, seen, configuration)
        yield auditor_workers.secret(gateway, configuration.auditor_token, workers, defaults, named)
    key, ledger, digests = configuration.auditor_key, configuration.verifying_key, configuration.digests
    faulty = any(fault.field == AUDITOR_FIELD for fault in configuration.faults)
    # An auditor that no longer knows the retention key would report each tombstone as a loss.
    unknown = gateway.spec.keeping is not None and configuration.retention_key is None
    unsigned = export_key.is_generated(wanted.enabled_index) and configuration.export_key is None
    faulty = faulty or unsigned
    if key and ledger and digests and digests.auditor and not faulty and not unknown:
        keeping = trusted_retention_key(gateway, configuration)
        yield auditor.statefulset(gateway, wanted, key.name, ledger, digests.auditor, defaults, keeping)


def _index_readers_secret(gateway: Gateway, seen: ObservedState, configuration: Configuration) -> str | None:
    """Return the readers of the index for a Secret that also lists the workers. If the readers are invalid,
    the previous ones are written again."""
    index = gateway.enabled_auditor.enabled_index if gateway.enabled_auditor else None
    if index is None or index.readers_secret_ref is None:
        return None
    if configuration.readers is not None:
        return configuration.readers
    live = seen.child("Secret", names(gateway).auditor)
    return None if live is None else entry(live, readers.READERS_FILE)


def trusted_retention_key(gateway: Gateway, configuration: Configuration) -> str | None:
    """Return the key whose tombstones the auditor accepts; None if there is no retention job."""
    if configuration.retention_key is not None:
        return configuration.retention_key.verifying_file
    return gateway.enabled_auditor.keeping_key if gateway.enabled_auditor else None


def workers_digest(gateway: Gateway, configuration: Configuration, workers: int) -> str | None:
    """Return a digest of the list of workers that the auditor's pod mounts; None if it mounts none.

    The kubelet updates the files of a pod when its annotation changes, and otherwise about once a minute.
    """
    if (
        gateway.enabled_auditor is None
        or not auditor_workers.workers_serve_volumes(gateway)
        or not configuration.auditor_token
    ):
        return None
    return keyed_digest(configuration.auditor_token.encode(), [str(workers)])


def should_stop_auditor(gateway: Gateway, seen: ObservedState) -> bool:
    """Return whether an auditor runs that the gateway no longer has.

    Its StatefulSet is scaled to zero: the operator has no permission to delete StatefulSets, so that it can
    never delete the workers'. The other objects of the auditor are deleted with the gateway, except its state
    and the held checkpoint of it.
    """
    live = seen.child("StatefulSet", names(gateway).auditor)
    ours = classify(gateway, live) is Ownership.OURS
    return gateway.enabled_auditor is None and live is not None and ours and live["spec"].get("replicas") != 0
