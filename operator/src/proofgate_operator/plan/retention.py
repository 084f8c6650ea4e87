"""The objects of a gateway's retention job, when it may run, and what is known of its state.

The number of holds ever recorded in the state is kept outside the state's volume, like the auditor's
checkpoint. While no number is known, the job starts an empty state; later a state that is missing or has
fewer holds stops everything. The number of active holds is kept next to it: while there are any, the held
data is not deleted with the gateway. Nothing else has to be remembered, so the operator may be killed at any
time.
"""

from collections.abc import Iterator
from dataclasses import replace

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.volume import RetainPolicy
from proofgate_operator.build import retention
from proofgate_operator.build.auditor import held_aggregate_entry
from proofgate_operator.build.ledger_key import LedgerKey
from proofgate_operator.build.naming import Defaults, Manifest, names
from proofgate_operator.build.storage import is_deleted_with_gateway, retained_state_claim
from proofgate_operator.plan import retention_runs
from proofgate_operator.plan.auditor import trusted_retention_key
from proofgate_operator.plan.configuration import Configuration
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.ownership import Ownership, classify, is_owned_by_predecessor
from proofgate_operator.plan.problems import Fault
from proofgate_operator.plan.rfc3339 import seconds_of

#: Suffix of the entry with the number of active holds, according to the newest report.
_ACTIVE_HOLDS_SUFFIX = ".holds"
_RETAIN_POLICY_FIELD = "spec.ledger.volume.retainPolicy"


def retention_manifests(
    gateway: Gateway, seen: ObservedState, configuration: Configuration, defaults: Defaults
) -> Iterator[Manifest]:
    """Yield the objects of the retention job in the order of applying, except its network policy.

    Without a valid ledger key, an existing job stays unchanged. The claim of a removed job still follows the
    retain policy.
    """
    wanted = gateway.spec.keeping
    own, key, ledger = names(gateway).retention, configuration.retention_key, configuration.verifying_key
    data = retention_state(gateway, seen, key)
    if data:
        yield retention.state_config_map(gateway, data)
    if wanted is None:
        live = seen.child("PersistentVolumeClaim", own)
        if live is not None:
            yield retained_state_claim(gateway, retention.COMPONENT, live)
        return
    yield retention.service_account(gateway)
    if wanted.storage.existing_claim is None:
        yield retention.claim(gateway, wanted)
    if key and ledger:
        waits = waits_for_auditor(gateway, seen, configuration)
        # A run can also start while the CronJob is not suspended: manually, or while no operator runs.
        signer, known = "" if waits else key.verifying_text, known_hold_count(gateway, seen, key)
        suspend = wanted.suspend or waits
        # The auditor is identified by its key alone: while it cannot be asked, nothing that waits for it is
        # deleted.
        waited = configuration.auditor_key
        anchor = waited.verifying_file if gateway.enabled_auditor is not None and waited is not None else None
        yield retention.cronjob(gateway, wanted, ledger, signer, known, suspend, defaults, anchor)


def waits_for_auditor(gateway: Gateway, seen: ObservedState, configuration: Configuration) -> bool:
    """Return whether runs must wait for the auditor: it does not know the retention key yet and would report
    each tombstone as a loss, or its own key is unknown, so that no run could wait for its log."""
    if gateway.enabled_auditor is None:
        return False
    if configuration.auditor_key is None:
        return True
    key = trusted_retention_key(gateway, configuration)
    live = seen.child("StatefulSet", names(gateway).auditor)
    if live is None or key is None:
        return True
    pods = [live["spec"]["template"], *([seen.auditor_pod] if seen.auditor_pod else [])]
    return not all(_knows_retention_key(pod, key) for pod in pods)


def _knows_retention_key(pod: Manifest, key: str) -> bool:
    containers = (pod.get("spec") or {}).get("containers") or []
    return any(key in (container.get("command") or []) for container in containers)


def known_hold_count(gateway: Gateway, seen: ObservedState, key: LedgerKey) -> int | None:
    """Return the number of holds ever recorded in the state of this retention key; None if no state is
    known."""
    noted = retention_state(gateway, seen, key).get(held_aggregate_entry(key.name))
    return int(noted) if noted is not None else None


def retention_state(gateway: Gateway, seen: ObservedState, key: LedgerKey | None) -> dict[str, str]:
    """Return the data to keep, by retention key, merged into the data already kept. Without a key, the
    retention key in the status applies."""
    live = seen.child("ConfigMap", names(gateway).retention)
    usable = classify(gateway, live) is Ownership.OURS and live is not None
    data = (
        dict(live.get("data") or {}) if usable and live and not is_owned_by_predecessor(gateway, live) else {}
    )
    name = key.name if key else str(seen.keeping_status.get("retentionKeyName", ""))
    if not name:
        return data
    entry, status = (
        held_aggregate_entry(name),
        seen.keeping_status if seen.keeping_status.get("retentionKeyName") == name else {},
    )
    # An invalid entry was not written by the operator, and must not restart the state.
    before = _number(data.get(entry)) if entry in data else None
    told = [run.known_hold_count for run in retention_runs.finished_runs(seen.retention_pods, name)]
    known = [number for number in (before, status.get("knownHolds"), *told) if number is not None]
    if known:
        data[entry] = str(max(known))
    standing = _active_holds(seen, name, status, data)
    if known or standing:
        data[f"{entry}{_ACTIVE_HOLDS_SUFFIX}"] = str(standing)
    return data


def _active_holds(seen: ObservedState, name: str, status: Manifest, data: dict[str, str]) -> int:
    """Return the number of active holds of this retention key, according to the newest run that reported it.
    Without such a run, all recorded holds count as active. A run that is unfinished or reported nothing may
    have added the holds of its plan."""
    entry = held_aggregate_entry(name)
    noted = data.get(f"{entry}{_ACTIVE_HOLDS_SUFFIX}")
    told = [] if noted is None else [_number(noted)]
    count = max([*told, *([status["holds"]] if "holds" in status else [])], default=_number(data.get(entry)))
    last = seconds_of(status.get("lastRunTime")) or 0.0
    for run in retention_runs.finished_runs(seen.retention_pods, name):
        # The pods of runs before the last one may be deleted.
        if run.started_at >= last:
            count = (
                max(count, run.planned_hold_count) if run.active_hold_count is None else run.active_hold_count
            )
    return max(
        count,
        *map(
            retention_runs.planned_hold_count, retention_runs.pods_without_report(seen.retention_pods, last)
        ),
        0,
    )


def has_active_holds(gateway: Gateway, seen: ObservedState, key: LedgerKey | None) -> bool:
    """Return whether any retention key, including former ones and planned holds, may have active holds."""
    wanted = gateway.spec.keeping
    if wanted is not None and any(hold.released is None for hold in wanted.holds):
        return True
    noted = retention_state(gateway, seen, key)
    return any(
        count != "0" for entry, count in noted.items() if f"{entry}{_ACTIVE_HOLDS_SUFFIX}" not in noted
    )


def override_retain_policy_for_holds(
    gateway: Gateway, seen: ObservedState, configuration: Configuration
) -> tuple[Gateway, Configuration]:
    """Return the gateway and configuration with the retain policy overridden while holds are active: the held
    data is not deleted with the gateway, and a fault reports this."""
    if not is_deleted_with_gateway(gateway) or not has_active_holds(
        gateway, seen, configuration.retention_key
    ):
        return gateway, configuration
    message = (
        f"{_RETAIN_POLICY_FIELD} is Delete, but holds are active: the ledger and the retention job's state are "
        "kept when the gateway is deleted, as with Retain. Set Retain, or release the holds: see "
        "status.keeping"
    )
    spec = gateway.spec
    volume = spec.ledger.volume.model_copy(update={"retain_policy": RetainPolicy.RETAIN})
    ledger = spec.ledger.model_copy(update={"volume": volume})
    kept = gateway.model_copy(update={"spec": spec.model_copy(update={"ledger": ledger})})
    fault = Fault(_RETAIN_POLICY_FIELD, "HoldsNeedRetain", message)
    return kept, replace(configuration, faults=(*configuration.faults, fault))


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 17 else 0


def should_remove_retention(gateway: Gateway, seen: ObservedState, configuration: Configuration) -> bool:
    """Return whether an existing retention job must not run, because the gateway has none any more or its key
    is invalid. The state and its holds stay."""
    live = seen.child("CronJob", names(gateway).retention)
    return configuration.retention_key is None and classify(gateway, live) is Ownership.OURS
