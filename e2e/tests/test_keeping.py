"""A gateway's stored bodies and its retention job on a real volume: only a key outside the volume opens bodies, and the
manifest determines the job's runs.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core

from e2e import evidence
from e2e.commands import proofgate
from e2e.kubernetes import PATIENCE, Namespace, Object, ledger_directory, wait_until
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.night import looked_into
from e2e.tests.traffic import ask, wait_reachable

NAME = "kept"
RETENTION_JOB = f"{NAME}-retention"
HELD, OTHER = TENANTS[:2]
HOLD = {"name": "case", "tenant": HELD, "reason": "litigation"}
_ENDS = {"Complete", "Failed"}
TEXT = "a sentence that stands nowhere else"


@pytest.fixture
def kept(namespace: Namespace) -> Iterator[Gateway]:
    """A gateway of one worker that stores bodies, with a retention job that runs on request; its key is new."""
    key, _ = _core.generate_key("keeping.example.com/e2e")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keeping-key"},
        "stringData": {"signing-key": key},
    }
    keeping = {
        "signingKeySecretRef": {"name": "keeping-key"},
        "storage": {"storageClassName": "lab-shared"},
        # February 29: on no day in most years.
        "schedule": "0 0 29 2 *",
        "retention": {"minimumDays": 1, "maximumDays": 30},
        "holds": [HOLD],
    }
    ledger = {
        "volume": {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": "Retain"},
        "shredKeys": {},
        "payloads": {"mode": "Stored"},
    }
    manifest = fleet.gateway(NAME, 1, (HELD, OTHER), ledger=ledger, keeping=keeping, loadBalancer=fleet.ONE_BALANCER)
    namespace.apply(fleet.secret(HELD), fleet.secret(OTHER), secret, manifest)
    found = Gateway(namespace, NAME)
    try:
        yield found
    finally:
        found.delete()
        found.forget()
        namespace.delete("secret", f"{NAME}-shred-keys")


def run(gateway: Gateway, which: str, wanted: str = "Complete") -> None:
    """Runs the retention job now from its CronJob, and waits until it has ended with the expected condition."""
    namespace, name = gateway.namespace, f"{RETENTION_JOB}-{which}"
    namespace.kubectl("create", "job", f"--from=cronjob/{RETENTION_JOB}", name)

    def outcome() -> str:
        conditions = (namespace.get("job", name) or {}).get("status", {}).get("conditions", [])
        return next((one["type"] for one in conditions if one["status"] == "True" and one["type"] in _ENDS), "")

    assert wait_until(outcome, PATIENCE, f"{name} has ended") == wanted, namespace.logs(f"job-name={name}")


def kept_of(gateway: Gateway) -> tuple[str, str]:
    """The status and reason of the condition Kept."""
    found = gateway.namespace.condition(gateway.name, "Kept")
    return found.get("status", ""), found.get("reason", "")


def told(gateway: Gateway) -> Object:
    """The status of the retention job."""
    found = gateway.namespace.get("ggw", gateway.name) or {}
    keeping: Object = found.get("status", {}).get("keeping", {})
    return keeping


def shred_keys(namespace: Namespace, folder: Path) -> None:
    """Writes the folder of keys that workers mount, from the operator's Secret."""
    secret = namespace.get("secret", f"{NAME}-shred-keys")
    assert secret is not None
    folder.mkdir()
    for tenant, keys in secret["data"].items():
        (folder / tenant).write_bytes(base64.b64decode(keys))


def completion(ledger: Path) -> dict[str, Any]:
    """The completion record of the only exchange."""
    [found] = [record for record in evidence.records(ledger) if record["kind"] == "completion"]
    return found


def stands_in(ledger: Path, text: str) -> bool:
    """Whether a file of a ledger contains a text; files that are renamed or removed during the search are skipped."""
    for folder, _, names in os.walk(ledger):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                if text.encode() in (Path(folder) / name).read_bytes():
                    return True
    return False


def test_bodies_are_opened_by_a_key_off_the_volume_alone_and_holds_outlive_their_manifest(
    kept: Gateway, tmp_path: Path
) -> None:
    namespace = kept.namespace
    kept.wait_settled(1)
    wait_reachable(namespace, NAME)
    assert ask(namespace, NAME, key_of(HELD), TEXT) == 200
    ledger = ledger_directory(namespace, NAME)
    wait_until(
        lambda: any(record["kind"] == "completion" for record in evidence.records(ledger)), PATIENCE, "it is recorded"
    )
    done = completion(ledger)
    assert done["payloads"] == {"request": "stored", "response": "stored"}
    keys = tmp_path / "keys"
    shred_keys(namespace, keys)
    public = (namespace.get("ggw", NAME) or {})["status"]["ledger"]["verifyingKey"]
    show = ("ledger", "payload", "show", done["id"], "--ledger", str(ledger), "--key", public, "--request")

    def shown() -> bool:
        # The request is shown only after a checkpoint covers it.
        return TEXT in proofgate(*show, "--shred-keys", str(keys)).stdout

    wait_until(shown, PATIENCE, "the request can be opened", every=1)
    assert stands_in(ledger, done["id"]), "records can be read"
    assert not stands_in(ledger, TEXT), "it stands in clear"
    (keys / HELD).write_bytes((keys / OTHER).read_bytes())
    assert TEXT not in proofgate(*show, "--shred-keys", str(keys)).stdout, "another tenant's key opens it"

    assert kept_of(kept) == ("Unknown", "NeverRun")
    run(kept, "first")
    wait_until(lambda: kept_of(kept) == ("True", "Kept"), PATIENCE, "the run is told")
    assert told(kept)["holds"] == 1
    kept.patch({"keeping": {"holds": None}})
    kept.wait_settled(1)
    run(kept, "second")
    wait_until(
        lambda: kept_of(kept) == ("True", "HeldOutsideManifest"), PATIENCE, "the hold that nobody released is told"
    )
    assert (told(kept)["holds"], told(kept)["holdsNotInManifest"]) == (1, ["case"])
    kept.patch({"keeping": {"holds": [{**HOLD, "tenant": OTHER}]}})
    kept.wait_settled(1)
    run(kept, "changed", "Failed")
    wait_until(lambda: kept_of(kept) == ("False", "HoldChanged"), PATIENCE, "the hold that differs is reported")
    page = looked_into("ProofgateKeepingFailed", namespace, NAME)
    assert "HoldChanged" in page and HOLD["name"] in page and f"{RETENTION_JOB}-changed" in page
    # A hold in a manifest must not change its scope, but it can be removed, and another one with its name added.
    kept.patch({"keeping": {"holds": None}})
    kept.patch({"keeping": {"holds": [{**HOLD, "released": "settled"}]}})
    kept.wait_settled(1)
    run(kept, "third")
    wait_until(lambda: kept_of(kept) == ("True", "Kept"), PATIENCE, "the hold is over")
    assert told(kept)["holds"] == 0
    assert ask(namespace, NAME, key_of(HELD)) == 200
