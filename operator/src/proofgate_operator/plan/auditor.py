"""The auditor that a gateway shall have: what is made for it, and what is made no longer."""

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
    """Yield what an auditor of that many workers needs besides its network policy and its PodMonitor, in the
    order of applying.

    Without a key that can be used, of its own, of the ledger or of the retention job, and with additions to
    its pod that cannot be, an auditor that runs goes on as it is. The claim of one that is gone follows the
    retain policy all the same.
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
    # Before the set that mounts it. While what the spec names cannot be used, the readers before stay.
    if not auditor_workers.workers_serve_volumes(gateway):
        if configuration.readers is not None:
            yield readers.secret(gateway, configuration.readers)
    elif configuration.auditor_token:
        named = _index_readers_secret(gateway, seen, configuration)
        yield auditor_workers.secret(gateway, configuration.auditor_token, workers, defaults, named)
    key, ledger, digests = configuration.auditor_key, configuration.verifying_key, configuration.digests
    faulty = any(fault.field == AUDITOR_FIELD for fault in configuration.faults)
    # One that no longer knew whose tombstones hold would take each of them for a loss.
    unknown = gateway.spec.keeping is not None and configuration.retention_key is None
    unsigned = export_key.is_generated(wanted.enabled_index) and configuration.export_key is None
    faulty = faulty or unsigned
    if key and ledger and digests and digests.auditor and not faulty and not unknown:
        keeping = trusted_retention_key(gateway, configuration)
        yield auditor.statefulset(gateway, wanted, key.name, ledger, digests.auditor, defaults, keeping)


def _index_readers_secret(gateway: Gateway, seen: ObservedState, configuration: Configuration) -> str | None:
    """Return the readers of the index, in a Secret that has the workers, too: those before stay by being
    written again."""
    index = gateway.enabled_auditor.enabled_index if gateway.enabled_auditor else None
    if index is None or index.readers_secret_ref is None:
        return None
    if configuration.readers is not None:
        return configuration.readers
    live = seen.child("Secret", names(gateway).auditor)
    return None if live is None else entry(live, readers.READERS_FILE)


def trusted_retention_key(gateway: Gateway, configuration: Configuration) -> str | None:
    """Return the key by which the auditor knows whose tombstones hold; None where nobody removes anything."""
    if configuration.retention_key is not None:
        return configuration.retention_key.verifying_file
    return gateway.enabled_auditor.keeping_key if gateway.enabled_auditor else None


def workers_digest(gateway: Gateway, configuration: Configuration, workers: int) -> str | None:
    """Return a digest of the list of workers that an auditor's pod mounts; None where it mounts none.

    The kubelet renews the files of a pod that is marked with another one, and of others about once a minute.
    """
    if (
        gateway.enabled_auditor is None
        or not auditor_workers.workers_serve_volumes(gateway)
        or not configuration.auditor_token
    ):
        return None
    return keyed_digest(configuration.auditor_token.encode(), [str(workers)])


def should_stop_auditor(gateway: Gateway, seen: ObservedState) -> bool:
    """Return whether an auditor runs that the gateway is not to have.

    Its set is scaled to nobody: the operator may delete no StatefulSet, so that it never could the workers'.
    What is left of it goes with the gateway, but for its state and what is held of that.
    """
    live = seen.child("StatefulSet", names(gateway).auditor)
    ours = classify(gateway, live) is Ownership.OURS
    return gateway.enabled_auditor is None and live is not None and ours and live["spec"].get("replicas") != 0
