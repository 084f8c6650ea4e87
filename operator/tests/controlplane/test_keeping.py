"""A retention job on a real API server with the Job controllers, with the chart's permissions."""

import json

import pytest

from tests.auditing import AUDITOR
from tests.auditing import KEY as AUDITORS_KEY
from tests.controlplane.api import secret
from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for
from tests.controlplane.test_operator import MADE, without_pods
from tests.retention import KEEPING, KEY, report

pytestmark = pytest.mark.controlplane

MADE_FOR_IT = {
    "cronjob.batch/demo-retention",
    "networkpolicy.networking.k8s.io/demo-retention",
    "persistentvolumeclaim/demo-retention",
    "serviceaccount/demo-retention",
}
COMPONENT = "app.kubernetes.io/component=retention"


@pytest.fixture
def kept(namespace: Namespace) -> Namespace:
    """A namespace with a Ready gateway that has a retention job, whose pods never run."""
    namespace.give_secrets()
    namespace.apply(secret("retention-key", signing_key=KEY.signing_text))
    namespace.start()
    # The schedule is far away, so the job runs only when the test starts it.
    namespace.apply(gateway_manifest(keeping={**KEEPING, "schedule": "0 0 1 1 *"}))
    namespace.settle()
    return namespace


def known(namespace: Namespace) -> str:
    template = namespace.there("cronjob", "demo-retention")["spec"]["jobTemplate"]["spec"]["template"]
    plan = json.loads(template["metadata"]["annotations"]["proofgate.dev/keeping-plan"])
    return str(plan.get("known", "nothing"))


def test_what_a_run_says_last_is_told_and_remembered_and_then_nothing_is_written_any_more(
    kept: Namespace,
) -> None:
    assert without_pods(kept.objects()) == MADE | MADE_FOR_IT
    assert kept.condition("Kept")[:2] == ("Unknown", "NeverRun")
    assert known(kept) == "nothing"
    kept.kubectl("create", "job", "--from=cronjob/demo-retention", "demo-retention-now")

    def pods() -> list[str]:
        return kept.names("pod", COMPONENT)

    wait_for(lambda: len(pods()) == 1, "the Job has its pod, which a restricted namespace lets in")
    said = report(holds=2, outside=["case-3"], outsideCount=1)
    ended = {"exitCode": 0, "finishedAt": "2026-12-01T02:31:00Z", "message": json.dumps(said)}
    container = {
        **{"name": "retention", "ready": False, "restartCount": 0, "image": "i", "imageID": "i"},
        **{"state": {"terminated": {**ended, "containerID": "containerd://x"}}},
    }
    status = {"phase": "Succeeded", "containerStatuses": [container]}
    kept.plane.api.patch_status("pod", pods()[0], status, kept.name)
    assert "case-3" in kept.wait_condition("Kept", "True", "HeldOutsideManifest")
    wait_for(lambda: known(kept) == "2", "the next run requires the same number of holds")
    kept.wait_event("HeldOutsideManifest")
    kept.rest()
    assert kept.operator
    log = kept.operator.log.read_text()
    assert "orbidden" not in log
    assert KEY.signing_text.split("+", 4)[4] not in log
    kept.apply(gateway_manifest())
    wait_for(
        lambda: kept.get("cronjob", "demo-retention") is None, "the CronJob is deleted without spec.keeping"
    )
    assert "persistentvolumeclaim/demo-retention" in kept.objects()


def test_a_retention_job_beside_an_auditor_waits_for_its_log_and_says_so(kept: Namespace) -> None:
    kept.apply(secret("auditor-key", signing_key=AUDITORS_KEY.signing_text))
    kept.apply(gateway_manifest(keeping={**KEEPING, "schedule": "0 0 1 1 *"}, auditor=AUDITOR))

    def command() -> list[str]:
        pod = kept.there("cronjob", "demo-retention")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        found: list[str] = pod["containers"][0]["command"]
        return found

    wait_for(lambda: "--auditor" in command(), "the job has the auditor's address")
    assert command()[-1] == AUDITORS_KEY.verifying_text
    wait_for(
        lambda: kept.there("cronjob", "demo-retention")["spec"]["suspend"] is False,
        "the job runs, because the auditor's template has the retention key",
    )
    names, asked = kept.there("networkpolicy", "demo-retention")["spec"]["egress"]
    assert ("to" in names, asked["ports"][0]["port"]) == (False, 9091)
    kept.kubectl("create", "job", "--from=cronjob/demo-retention", "demo-retention-now")
    wait_for(lambda: len(kept.names("pod", COMPONENT)) == 1, "the Job has its pod")
    why = "signed statements about 2 logs wait until the auditor's log contains them"
    said = report(result="not_anchored", message=why, anchor="auditor", staying={"not_anchored": 2})
    ended = {"exitCode": 10, "finishedAt": "2026-12-01T02:31:00Z", "message": json.dumps(said)}
    container = {
        **{"name": "retention", "ready": False, "restartCount": 0, "image": "i", "imageID": "i"},
        **{"state": {"terminated": {**ended, "containerID": "containerd://x"}}},
    }
    status = {"phase": "Failed", "containerStatuses": [container]}
    kept.plane.api.patch_status("pod", kept.names("pod", COMPONENT)[0], status, kept.name)
    assert why in kept.wait_condition("Kept", "False", "NotAnchored")
    assert kept.there("ggw", "demo")["status"]["keeping"]["anchor"] == "auditor"
