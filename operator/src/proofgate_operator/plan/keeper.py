"""The keeper that a gateway shall have: what is made for it, when it may run, and what is known of its state.

How many holds the state has had is remembered off its volume, as the auditor's heads are: while nothing is
known a state is begun, and later one that is not there, or has fewer, stops everything. Nothing else has to
be remembered, so it does not matter where an operator is killed.
"""

from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import keeper
from proofgate_operator.build.auditor import held_entry
from proofgate_operator.build.ledger_key import LedgerKey
from proofgate_operator.build.naming import Defaults, Manifest, names
from proofgate_operator.build.storage import kept_state_claim
from proofgate_operator.plan import keeping_runs
from proofgate_operator.plan.auditor import keeping_key
from proofgate_operator.plan.configuration import Configuration
from proofgate_operator.plan.observed import Observed
from proofgate_operator.plan.ownership import Ownership, classify, of_a_predecessor


def keeper_manifests(
    gateway: Gateway, seen: Observed, configuration: Configuration, defaults: Defaults
) -> Iterator[Manifest]:
    """Yield what a keeper needs besides its network policy, in the order of applying.

    Without a key of the ledger that can be used, one that is there goes on as it is. The claim of one that is
    gone follows the retain policy all the same.
    """
    wanted = gateway.spec.keeping
    own, key, ledger = names(gateway).keeper, configuration.keeper_key, configuration.verifying_key
    data = memory(gateway, seen, key)
    if data:
        yield keeper.memory(gateway, data)
    if wanted is None:
        live = seen.child("PersistentVolumeClaim", own)
        if live is not None:
            yield kept_state_claim(gateway, keeper.COMPONENT, live)
        return
    yield keeper.service_account(gateway)
    if wanted.storage.existing_claim is None:
        yield keeper.claim(gateway, wanted)
    if key and ledger:
        waits = waits_for_auditor(gateway, seen, configuration)
        # A run begins also while nobody suspends it: by hand, or while no operator is there.
        signer, known = "" if waits else key.verifying_text, known_holds(gateway, seen, key)
        suspend = wanted.suspend or waits
        yield keeper.cronjob(gateway, wanted, ledger, signer, known, suspend, defaults)


def waits_for_auditor(gateway: Gateway, seen: Observed, configuration: Configuration) -> bool:
    """Return whether the auditor does not know yet whose tombstones hold: it would take each for a loss."""
    if gateway.auditor is None:
        return False
    key = keeping_key(gateway, configuration)
    live = seen.child("StatefulSet", names(gateway).auditor)
    if live is None or key is None:
        return True
    pods = [live["spec"]["template"], *([seen.auditor_pod] if seen.auditor_pod else [])]
    return not all(_knows(pod, key) for pod in pods)


def _knows(pod: Manifest, key: str) -> bool:
    containers = (pod.get("spec") or {}).get("containers") or []
    return any(key in (container.get("command") or []) for container in containers)


def known_holds(gateway: Gateway, seen: Observed, key: LedgerKey) -> int | None:
    """Return how many holds the state of this key's keeper has had; None while nothing is known of one."""
    noted = memory(gateway, seen, key).get(held_entry(key.name))
    return int(noted) if noted is not None else None


def memory(gateway: Gateway, seen: Observed, key: LedgerKey | None) -> dict[str, str]:
    """Return what is to be remembered, by keeper, beside what is remembered already."""
    live = seen.child("ConfigMap", names(gateway).keeper)
    usable = classify(gateway, live) is Ownership.OURS and live is not None
    data = dict(live.get("data") or {}) if usable and live and not of_a_predecessor(gateway, live) else {}
    if key is None:
        return data
    entry = held_entry(key.name)
    # What somebody wrote there is none of ours, and no reason to begin.
    before = _number(data.get(entry)) if entry in data else None
    told = [run.known for run in keeping_runs.ended(seen.keeper_pods, key.name)]
    status = seen.kept.get("knownHolds") if seen.kept.get("keeper") == key.name else None
    known = [number for number in (before, status, *told) if number is not None]
    return data | {entry: str(max(known))} if known else data


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 17 else 0


def is_to_go(gateway: Gateway, seen: Observed, configuration: Configuration) -> bool:
    """Return whether a keeper is there that is not to run: the gateway is to have none, or something is wrong
    with its key. Its state and its holds stay."""
    live = seen.child("CronJob", names(gateway).keeper)
    return configuration.keeper_key is None and classify(gateway, live) is Ownership.OURS
